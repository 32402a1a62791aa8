/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/debuginfo_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/files/output_file.h"
#include "common/json/json_node.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "debuginfo-store/debuginfo_store.h"
#include "http/http_client.h"
#include "pipeline/stored_offsets.h"

/* ---- get ---- */

#define PIECE_BYTES MiB(1)

struct sink {
        int fd;
        const char *name;
        uint64_t bytes;
        enum status failed; /* to write */
        struct error err;
};

static enum status take_download(void *context, const void *data, size_t n)
{
        struct sink *s = context;

        s->bytes += n;
        s->failed = file_write_all(s->fd, data, n, s->name, &s->err);
        return s->failed;
}

static enum status get_from_server(const struct debuginfo_options *o, const char *hex, struct sink *sink,
                                   struct error *err)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        char path[64 + BUILD_ID_HEX_MAX];
        /* The service may request it from an upstream first. */
        const struct http_client_options how = { .size = sizeof how, .attempts = 1, .idle_timeout_s = 300 };
        const struct http_client_request request = { .method = "GET",
                                                     .path = path,
                                                     .max_response = LIMIT_OBJECT_BYTES,
                                                     .write = take_download,
                                                     .write_context = sink };
        enum status st = service_connect(&o->ask.service, &how, &client, err);

        snprintf(path, sizeof path, "/buildid/%s/%s", hex, object_kind_name(o->kind));
        return st ? st : service_send(client, &request, &response, err);
}

static enum status copy_object_pieces(struct object_reader *r, uint64_t size, struct sink *sink, struct error *err)
{
        _cleanup_free_ void *bytes = malloc(PIECE_BYTES);

        if (!bytes)
                return error_no_memory(err);
        while (sink->bytes < size) {
                ssize_t n = object_reader_pread(r, bytes, PIECE_BYTES, sink->bytes, err);

                if (n <= 0)
                        return n < 0 ? ST_BAD_DATA : error_set(err, ST_BAD_DATA, "the stored object is cut off");
                if (take_download(sink, bytes, (size_t)n))
                        return sink->failed;
        }
        return ST_OK;
}

static enum status get_from_directory(const struct debuginfo_options *o, const struct build_id *id, struct sink *sink,
                                      struct error *err)
{
        struct stored_object object;
        struct object_reader *r;
        struct debuginfo_dir dir;
        enum status st = debuginfo_dir_open(o, false, &dir, err);

        if (st)
                return st;
        st = object_reader_open(dir.objects, id, o->kind, &r, &object, err);
        if (!st) {
                st = copy_object_pieces(r, object.size_bytes, sink, err);
                object_reader_close(r);
        }
        debuginfo_dir_close(&dir);
        return st;
}

static enum status get_object(const struct debuginfo_options *o, const struct build_id *id, struct sink *sink,
                              struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];
        enum status st = o->ask.data ? get_from_directory(o, id, sink, err)
                                     : get_from_server(o, build_id_hex(id, hex), sink, err);

        if (sink->failed && err)
                *err = sink->err;
        return st;
}

/* The file appears complete or not at all. */
enum status debuginfo_get(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                          struct error *err)
{
        char name[BUILD_ID_HEX_MAX + 16], hex[BUILD_ID_HEX_MAX];
        const char *path = o->output ? o->output : name;
        struct sink sink = { .fd = STDOUT_FILENO, .name = "standard output" };
        struct output_file file;
        enum status st;

        (void)count;
        if (strcmp(path, "-") == 0)
                return get_object(o, &ids[0], &sink, err);
        snprintf(name, sizeof name, "%s.%s", build_id_hex(&ids[0], hex), object_kind_name(o->kind));
        sink.name = path;
        st = output_file_open(path, OUTPUT_OF_COMMAND, &file, err);
        if (st)
                return st;
        sink.fd = file.fd;
        st = get_object(o, &ids[0], &sink, err);
        if (st) {
                output_file_discard(&file);
                return st;
        }
        st = output_file_publish(&file, err);
        if (!st)
                fprintf(stderr, "%s: %" PRIu64 " bytes\n", path, sink.bytes);
        return st;
}

/* ---- verify ---- */

struct tally {
        const struct debuginfo_options *options;
        struct debuginfo_store *objects;
        struct json_out j;
        struct buf out;
        uint64_t good, bad, bytes;
        struct error *err;
};

static void report_damage(struct tally *t, const struct stored_object *o, const struct error *why)
{
        char hex[BUILD_ID_HEX_MAX];

        build_id_hex(&o->build_id, hex);
        if (!t->options->json) {
                printf("%s  %-10s  %s: %s\n", hex, object_kind_name(o->kind), PRINTABLE(o->name), PRINTABLE(why->text));
                return;
        }
        json_out_object(&t->j, NULL);
        json_out_str(&t->j, "build_id", hex);
        json_out_str(&t->j, "kind", object_kind_name(o->kind));
        json_out_str(&t->j, "name", o->name);
        json_out_str(&t->j, "error", why->text);
        json_out_object_end(&t->j);
}

static enum status verify_stored_object(void *context, const struct stored_object *object)
{
        const struct object_name name = { object->build_id, object->kind };
        struct tally *t = context;
        struct error why;
        enum status st = debuginfo_store_check_object(t->objects, &name, &why);

        if (st == ST_NOT_FOUND) /* removed since it was listed */
                return ST_OK;
        if (st == ST_NO_MEMORY)
                return error_no_memory(t->err);
        if (st) {
                t->bad++;
                report_damage(t, object, &why);
        } else {
                t->good++;
        }
        t->bytes += object->size_bytes;
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rcairn debuginfo verify: %" PRIu64 " objects, %" PRIu64 " MB", t->good + t->bad,
                        t->bytes / 1000000);
        return ST_OK;
}

static enum status verify_named_objects(struct tally *t, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];
        unsigned found = 0;

        for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
                struct stored_object object;
                enum status st = debuginfo_store_stat(t->objects, id, kind, &object, t->err);

                if (st == ST_NOT_FOUND)
                        continue;
                if (!st)
                        st = verify_stored_object(t, &object);
                if (st)
                        return st;
                found++;
        }
        return found ? ST_OK
                     : error_set(t->err, ST_NOT_FOUND, "nothing is stored under build-id %s", build_id_hex(id, hex));
}

static enum status verify_all_objects(struct tally *t, const struct build_id *ids, size_t count)
{
        enum status st = count ? ST_OK : debuginfo_store_list(t->objects, verify_stored_object, t, t->err);

        for (size_t i = 0; i < count && !st; i++)
                st = verify_named_objects(t, &ids[i]);
        if (isatty(STDERR_FILENO))
                fputc('\n', stderr);
        return st;
}

enum status debuginfo_verify(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                             struct error *err)
{
        struct tally t = { .options = o, .err = err };
        struct debuginfo_dir dir;
        enum status st;

        if (!o->ask.data)
                return error_set(err, ST_USAGE,
                                 "verify reads the stored objects: give --data DIR; the service may be running");
        st = debuginfo_dir_open(o, false, &dir, err);
        if (st)
                return st;
        t.objects = dir.objects;
        buf_init(&t.out, LIMIT_RESPONSE_BYTES);
        json_out_init(&t.j, &t.out);
        json_out_object(&t.j, NULL);
        json_out_array(&t.j, "damaged");
        st = verify_all_objects(&t, ids, count);
        json_out_array_end(&t.j);
        json_out_uint(&t.j, "good", t.good);
        json_out_object_end(&t.j);
        if (!st)
                st = buf_status(&t.out, err, "report");
        if (!st && o->json)
                printf("%.*s\n", (int)t.out.size, (const char *)t.out.data);
        else if (!st)
                printf("%s, %" PRIu64 " damaged\n", COUNTED(t.good, "object is whole", "objects are whole"), t.bad);
        buf_deinit(&t.out);
        debuginfo_dir_close(&dir);
        if (!st && t.bad)
                return error_set(err, ST_BAD_DATA, "%s: remove them with 'cairn debuginfo rm' and upload them again",
                                 COUNTED(t.bad, "object is damaged", "objects are damaged"));
        return st;
}

/* ---- offsets ---- */

static enum status request_offsets(const struct debuginfo_options *o, const struct build_id *id, struct buf *ret,
                                   struct error *err)
{
        _cleanup_buf_ struct buf path;
        char hex[BUILD_ID_HEX_MAX];

        buf_init(&path, KiB(32));
        buf_printf(&path, "/api/v1/offsets?build_id=%s&field=", build_id_hex(id, hex));
        for (size_t i = 0; i < o->field_count; i++)
                buf_printf(&path, "%s%s", i ? "," : "", o->fields[i]);
        return buf_cstr(&path) ? debuginfo_request(o, "GET", buf_cstr(&path), NULL, ret, err)
                               : buf_status(&path, err, "the request");
}

static enum status print_offsets(struct buf *body, struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *root = json_node_parse(body->data, body->size, &memory), *f;
        size_t missing = 0;

        if (!json_node_is_array(json_node_member(root, "fields")))
                return error_set(err, ST_BAD_DATA, "the service's response does not match the request");
        for (struct json_node_list l = json_node_list(root, "fields"); (f = json_node_next(&l));) {
                const char *state = json_node_text(f, "state");
                bool is_found = strcmp(state, "found") == 0;

                missing += !is_found;
                if (is_found)
                        printf("%-60s  %8" PRIu64 "  %8" PRIu64 "\n", PRINTABLE(json_node_text(f, "field")),
                               json_node_uint(f, "offset"), json_node_uint(f, "size"));
                else
                        printf("%-60s  %s\n", PRINTABLE(json_node_text(f, "field")), PRINTABLE(state));
        }
        return missing ? error_set(err, ST_NOT_FOUND, "%s not found", COUNTED(missing, "field was", "fields were"))
                       : ST_OK;
}

enum status debuginfo_offsets(const struct debuginfo_options *o, const struct build_id *ids, size_t count,
                              struct error *err)
{
        _cleanup_buf_ struct buf body;
        struct debuginfo_dir dir;
        enum status st = ST_OK;

        (void)count;
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        for (size_t i = 0; i < o->field_count; i++)
                if (!struct_field_is_valid(o->fields[i]))
                        return error_set(err, ST_USAGE, "'%.100s' is not STRUCT.FIELD", o->fields[i]);
        if (o->ask.data) {
                st = debuginfo_dir_open(o, false, &dir, err);
                if (st)
                        return st;
                st = stored_offsets_write(dir.objects, &ids[0], o->fields, o->field_count, NULL, &body, err);
                debuginfo_dir_close(&dir);
        } else {
                st = request_offsets(o, &ids[0], &body, err);
        }
        if (st || !o->json)
                return st ? st : print_offsets(&body, err);
        printf("%.*s\n", (int)body.size, (const char *)body.data);
        return ST_OK;
}
