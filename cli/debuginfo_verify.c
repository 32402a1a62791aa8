/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo verify: are the stored objects still what they were? */
#include <inttypes.h>
#include <unistd.h>

#include "cli/debuginfo.h"
#include "common/utf8.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "debuginfo-store/check.h"

struct tally {
        const struct debuginfo_options *options;
        struct debuginfo_store *objects;
        struct json_out j;
        struct buf out;
        uint64_t good, bad, bytes;
        struct error *err;
};

static void tell(struct tally *t, const struct stored_object *o, const struct error *why)
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

static enum status check_one(void *context, const struct stored_object *object)
{
        const struct object_name name = { object->build_id, object->kind };
        struct tally *t = context;
        struct error why;
        enum status st = debuginfo_store_check(t->objects, &name, &why);

        if (st == ST_NOT_FOUND) /* removed meanwhile */
                return ST_OK;
        if (st == ST_NO_MEMORY)
                return error_no_memory(t->err);
        if (st) {
                t->bad++;
                tell(t, object, &why);
        } else {
                t->good++;
        }
        t->bytes += object->size_bytes;
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rcairn debuginfo verify: %" PRIu64 " objects, %" PRIu64 " MB", t->good + t->bad,
                        t->bytes / 1000000);
        return ST_OK;
}

static enum status check_named(struct tally *t, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];
        unsigned found = 0;

        for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
                struct stored_object object;
                enum status st = debuginfo_store_stat(t->objects, id, kind, &object, t->err);

                if (st == ST_NOT_FOUND)
                        continue;
                if (!st)
                        st = check_one(t, &object);
                if (st)
                        return st;
                found++;
        }
        return found ? ST_OK : error_set(t->err, ST_NOT_FOUND, "nothing is stored under build-id %s", build_id_hex(id, hex));
}

static enum status check_all(struct tally *t, const struct build_id *ids, size_t count)
{
        enum status st = count ? ST_OK : debuginfo_store_list(t->objects, check_one, t, t->err);

        for (size_t i = 0; i < count && !st; i++)
                st = check_named(t, &ids[i]);
        if (isatty(STDERR_FILENO))
                fputc('\n', stderr);
        return st;
}

enum status debuginfo_verify(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        struct tally t = { .options = o, .err = err };
        struct debuginfo_dir dir;
        enum status st;

        if (!o->ask.data)
                return error_set(err, ST_USAGE, "verify reads the objects themselves: give --data DIR; the service may be running");
        st = debuginfo_dir_open(o->ask.data, false, &dir, err);
        if (st)
                return st;
        t.objects = dir.objects;
        buf_init(&t.out, LIMIT_RESPONSE_BYTES);
        json_out_init(&t.j, &t.out);
        json_out_object(&t.j, NULL);
        json_out_array(&t.j, "damaged");
        st = check_all(&t, ids, count);
        json_out_array_end(&t.j);
        json_out_uint(&t.j, "good", t.good);
        json_out_object_end(&t.j);
        if (!st)
                st = buf_status(&t.out, err, "report");
        if (!st && o->json)
                printf("%.*s\n", (int)t.out.size, (const char *)t.out.data);
        else if (!st)
                printf("%" PRIu64 " objects are whole, %" PRIu64 " damaged\n", t.good, t.bad);
        buf_deinit(&t.out);
        debuginfo_dir_close(&dir);
        if (!st && t.bad)
                return error_set(err, ST_BAD_DATA, "%" PRIu64 " objects are damaged: remove them with 'cairn debuginfo rm' and "
                                 "upload them again", t.bad);
        return st;
}
