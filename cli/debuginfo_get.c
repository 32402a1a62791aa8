/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo get: an object into a file, from a service (its upstreams included) or a directory. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/debuginfo.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "http/client.h"

#define PIECE_BYTES MiB(1)

struct sink {
        int fd;
        const char *name;
        uint64_t bytes;
        struct error *err;
};

static enum status take(void *context, const void *data, size_t n)
{
        struct sink *s = context;

        s->bytes += n;
        return file_write_all(s->fd, data, n, s->name, s->err);
}

static enum status from_server(const struct debuginfo_options *o, const char *hex, struct sink *sink, struct error *err)
{
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        char path[64 + BUILD_ID_HEX_MAX];
        /* An upstream may be asked first. */
        const struct http_client_options how = { .size = sizeof how, .attempts = 1, .idle_timeout_s = 300 };
        const struct http_client_request request = { .method = "GET", .path = path, .max_response = LIMIT_OBJECT_BYTES,
                                                     .write = take, .write_context = sink };
        enum status st = service_connect(&o->ask.service, &how, &client, err);

        snprintf(path, sizeof path, "/buildid/%s/%s", hex, object_kind_name(o->kind));
        return st ? st : http_client_send(client, &request, &response, err);
}

static enum status copy(struct object_reader *r, uint64_t size, struct sink *sink, struct error *err)
{
        _cleanup_free_ void *bytes = malloc(PIECE_BYTES);

        if (!bytes)
                return error_no_memory(err);
        while (sink->bytes < size) {
                ssize_t n = object_reader_pread(r, bytes, PIECE_BYTES, sink->bytes, err);
                enum status st;

                if (n <= 0)
                        return n < 0 ? ST_BAD_DATA : error_set(err, ST_BAD_DATA, "the stored object is cut off");
                st = take(sink, bytes, (size_t)n);
                if (st)
                        return st;
        }
        return ST_OK;
}

static enum status from_directory(const struct debuginfo_options *o, const struct build_id *id, struct sink *sink,
                                  struct error *err)
{
        struct stored_object object;
        struct object_reader *r;
        struct debuginfo_dir dir;
        enum status st = debuginfo_dir_open(o->ask.data, false, &dir, err);

        if (st)
                return st;
        st = object_reader_open(dir.objects, id, o->kind, &r, &object, err);
        if (!st) {
                st = copy(r, object.size_bytes, sink, err);
                object_reader_close(r);
        }
        debuginfo_dir_close(&dir);
        return st;
}

static enum status get(const struct debuginfo_options *o, const struct build_id *id, struct sink *sink, struct error *err)
{
        char hex[BUILD_ID_HEX_MAX];

        sink->err = err;
        return o->ask.data ? from_directory(o, id, sink, err) : from_server(o, build_id_hex(id, hex), sink, err);
}

/* The file is there whole or not at all. */
enum status debuginfo_get(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        char name[BUILD_ID_HEX_MAX + 16], hex[BUILD_ID_HEX_MAX];
        const char *path = o->output ? o->output : name;
        struct sink sink = { .fd = STDOUT_FILENO, .name = "standard output" };
        _cleanup_free_ char *tmp = NULL;
        enum status st;

        (void)count;
        if (strcmp(path, "-") == 0)
                return get(o, &ids[0], &sink, err);
        snprintf(name, sizeof name, "%s.%s", build_id_hex(&ids[0], hex), object_kind_name(o->kind));
        sink.name = path;
        st = file_create_temporary(path, &tmp, &sink.fd, err);
        if (st)
                return st;
        st = get(o, &ids[0], &sink, err);
        if (st) {
                close(sink.fd);
                unlink(tmp);
                return st;
        }
        st = file_publish(sink.fd, tmp, path, err);
        if (!st)
                fprintf(stderr, "%s: %" PRIu64 " bytes\n", path, sink.bytes);
        return st;
}
