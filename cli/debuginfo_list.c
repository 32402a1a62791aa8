/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo list and show: what is stored, and the state of its symbols. */
#include <inttypes.h>
#include <json-c/json.h>

#include "cli/debuginfo.h"
#include "common/utf8.h"
#include "common/limits.h"
#include "server/debuginfo_list.h"

static const char *text(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_object_get_ex(o, key, &v) && v ? json_object_get_string(v) : "";
}

static int64_t number(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : 0;
}

static void print_object(struct json_object *o)
{
        struct json_object *index = NULL;

        json_object_object_get_ex(o, "index", &index);
        printf("%-40s  %-10s  %-13s  %12" PRId64 "  %-8s  %s\n", PRINTABLE(text(o, "build_id")), PRINTABLE(text(o, "kind")),
               PRINTABLE(text(o, "quality")),
               number(o, "size"), index ? PRINTABLE(text(index, "state")) : "", PRINTABLE(text(o, "name")));
        if (index && *text(index, "error"))
                printf("%-40s  %s\n", "", PRINTABLE(text(index, "error")));
        if (index && *text(index, "partial"))
                printf("%-40s  partial: %s\n", "", PRINTABLE(text(index, "partial")));
}

static enum status print_table(struct buf *body, struct error *err)
{
        struct json_object *root = buf_cstr(body) ? json_tokener_parse(buf_cstr(body)) : NULL, *items;

        if (!json_object_object_get_ex(root, "objects", &items) || !json_object_is_type(items, json_type_array)) {
                json_object_put(root);
                return error_set(err, ST_BAD_DATA, "the service's answer is not what was asked for");
        }
        printf("%-40s  %-10s  %-13s  %12s  %-8s  %s\n", "build-id", "kind", "quality", "bytes", "index", "name");
        for (size_t i = 0; i < json_object_array_length(items); i++)
                print_object(json_object_array_get_idx(items, i));
        json_object_put(root);
        return ST_OK;
}

static enum status print_answer(const struct debuginfo_options *o, struct buf *body, struct error *err)
{
        if (!o->json)
                return print_table(body, err);
        printf("%.*s\n", (int)body->size, (const char *)body->data);
        return ST_OK;
}

/* Of one build-id, or with NULL of all. */
static enum status list(const struct debuginfo_options *o, const struct build_id *id, struct error *err)
{
        _cleanup_buf_ struct buf body = { 0 };
        char path[64 + BUILD_ID_HEX_MAX], hex[BUILD_ID_HEX_MAX];
        struct debuginfo_dir dir;
        enum status st;

        buf_init(&body, LIMIT_RESPONSE_BYTES);
        if (o->ask.data) {
                st = debuginfo_dir_open(o->ask.data, false, &dir, err);
                if (st)
                        return st;
                st = id ? debuginfo_show_json(dir.objects, dir.symbols, id, &body, err)
                        : debuginfo_list_json(dir.objects, dir.symbols, &body, err);
                debuginfo_dir_close(&dir);
        } else {
                snprintf(path, sizeof path, "/api/v1/debuginfo%s%s", id ? "/" : "", id ? build_id_hex(id, hex) : "");
                st = debuginfo_request(o, "GET", path, NULL, &body, err);
        }
        return st ? st : print_answer(o, &body, err);
}

enum status debuginfo_list(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        (void)ids;
        (void)count;
        return list(o, NULL, err);
}

enum status debuginfo_show(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        (void)count;
        return list(o, &ids[0], err);
}
