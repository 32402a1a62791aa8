/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo gc: remove what is past its retention. */
#include <inttypes.h>
#include <json-c/json.h>

#include "cli/debuginfo.h"
#include "common/utf8.h"
#include "common/clock.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "server/gc_answer.h"
#include "server/index_needs.h"

static enum status in_directory(const struct debuginfo_options *o, struct buf *ret, struct error *err)
{
        struct retention_rule rules[RETENTION_RULES_MAX];
        struct gc_options options = { .rules = rules, .rule_count = o->retain.count, .dry_run = o->dry_run, .sweep = true,
                                      .now_unix_s = wall_clock_ns() / 1000000000, .needed = index_needs };
        struct debuginfo_dir dir;
        struct gc_result r;
        enum status st = retention_rules_parse(o->retain.items, o->retain.count, rules, err);

        if (!st && !o->retain.count)
                st = error_set(err, ST_USAGE, "a directory has no rules of its own: give --retain, or ask the service");
        if (!st)
                st = debuginfo_dir_open(o->ask.data, !o->dry_run, &dir, err);
        if (st)
                return st;
        options.context = dir.symbols;
        st = gc_answer(dir.objects, &options, &r, ret, err);
        debuginfo_dir_close(&dir);
        return st;
}

static enum status at_server(const struct debuginfo_options *o, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf request;
        struct json_out j;
        enum status st;

        buf_init(&request, MiB(1));
        json_out_init(&j, &request);
        json_out_object(&j, NULL);
        json_out_bool(&j, "dry_run", o->dry_run);
        if (o->retain.count) {
                json_out_array(&j, "rules");
                for (size_t i = 0; i < o->retain.count; i++)
                        json_out_str(&j, NULL, o->retain.items[i]);
                json_out_array_end(&j);
        }
        json_out_object_end(&j);
        st = buf_cstr(&request) ? ST_OK : buf_status(&request, err, "request");
        return st ? st : debuginfo_request(o, "POST", "/api/v1/debuginfo/gc", buf_cstr(&request), ret, err);
}

static int64_t number(struct json_object *o, const char *key)
{
        return json_object_get_int64(json_object_object_get(o, key));
}

static const char *text(struct json_object *o, const char *key)
{
        const char *s = json_object_get_string(json_object_object_get(o, key));

        return s ? s : "";
}

static enum status print_report(struct buf *body, struct error *err)
{
        struct json_object *root = buf_cstr(body) ? json_tokener_parse(buf_cstr(body)) : NULL, *removed;
        bool dry_run;

        if (!json_object_object_get_ex(root, "removed", &removed) || !json_object_is_type(removed, json_type_array)) {
                json_object_put(root);
                return error_set(err, ST_BAD_DATA, "the service's answer is not what was asked for");
        }
        dry_run = json_object_get_boolean(json_object_object_get(root, "dry_run"));
        for (size_t i = 0; i < json_object_array_length(removed); i++) {
                struct json_object *r = json_object_array_get_idx(removed, i);

                printf("%-40s  %-10s  %-6s  %12" PRId64 "  %s%s%s\n", text(r, "build_id"), text(r, "kind"), text(r, "reason"),
                       number(r, "stored_bytes"), PRINTABLE(text(r, "name")), *text(r, "label") ? "  " : "", PRINTABLE(text(r, "label")));
        }
        printf("%s %zu objects, %" PRId64 " bytes, and %" PRId64 " files without a record, %" PRId64 " bytes\n",
               dry_run ? "would remove" : "removed", json_object_array_length(removed), number(root, "removed_bytes"),
               number(root, "strays"), number(root, "stray_bytes"));
        printf("%" PRId64 " objects stay, %" PRId64 " bytes; past their rule, but pinned: %" PRId64
               ", or not in the symbol index yet: %" PRId64 "\n",
               number(root, "objects"), number(root, "bytes"), number(root, "pinned"), number(root, "needed"));
        json_object_put(root);
        return ST_OK;
}

enum status debuginfo_gc(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        _cleanup_buf_ struct buf body;
        enum status st;

        (void)ids;
        (void)count;
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = o->ask.data ? in_directory(o, &body, err) : at_server(o, &body, err);
        if (st || !o->json)
                return st ? st : print_report(&body, err);
        printf("%.*s\n", (int)body.size, (const char *)body.data);
        return ST_OK;
}
