/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store expire: remove samples past their retention, at a service or in a directory. */
#include <inttypes.h>
#include <string.h>

#include "cli/commands/store/store_command.h"
#include "common/cleanup.h"
#include "common/json/json_node.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/text/number_text.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "query/engine/sample_rules.h"

static enum status expire_in_directory(const struct store_command *c, struct buf *ret, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options,
                                                       .read_only = c->dry_run,
                                                       .flush_interval_ms = UINT64_MAX };
        _cleanup_sample_rules_ struct sample_rules rules = { 0 };
        const struct expiry_request request = { .limits = &rules.limits,
                                                .dry_run = c->dry_run,
                                                .sweeps_locations = true };
        struct expiry removed = { 0 };
        struct profile_store *store;
        enum status st = ST_OK;

        for (size_t i = 0; i < c->retain.count && !st; i++)
                st = sample_rules_add(&rules, c->retain.items[i], err);
        if (!st && !c->retain.count)
                st = error_set(err, ST_USAGE,
                               "a data directory has no retention rules: give --retain-samples, or use --server");
        if (!st)
                st = profile_store_check_exists(c->dir, err);
        if (!st)
                st = profile_store_open(c->dir, &options, &store, err);
        if (st)
                return st;
        st = profile_store_expire(store, &request, &removed, err);
        profile_store_close(store);
        if (!st)
                st = expiry_write_report(&removed, c->dry_run, ret, err);
        expiry_deinit(&removed);
        return st;
}

static enum status write_expire_request(const struct store_command *c, struct buf *out, struct error *err)
{
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        json_out_bool(&j, "dry_run", c->dry_run);
        if (c->retain.count) {
                json_out_array(&j, "rules");
                for (size_t i = 0; i < c->retain.count; i++)
                        json_out_str(&j, NULL, c->retain.items[i]);
                json_out_array_end(&j);
        }
        json_out_object_end(&j);
        return buf_status(out, err, "the request");
}

static enum status expire_at_server(const struct store_command *c, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf body;
        enum status st;

        buf_init(&body, LIMIT_HTTP_JSON_BYTES);
        st = write_expire_request(c, &body, err);
        return st ? st : service_post_json(&c->service, "/api/v1/store/expire", &body, ret, err);
}

/* Ends a line of the report. */
static void print_rewritten_files(const struct json_node *o, bool dry_run)
{
        int64_t files = json_node_int(o, "rewritten");

        if (files)
                printf(", %s %s", dry_run ? "would rewrite" : "rewrote", COUNTED(files, "file", "files"));
        printf("\n");
}

static enum status print_expire_report(struct buf *body, struct error *err)
{
        _cleanup_arena_ struct arena memory = { 0 };
        const struct json_node *root, *r;
        bool dry_run;

        root = json_node_parse(body->data, body->size, &memory);
        if (!json_node_is_array(json_node_member(root, "removed")))
                return error_set(err, ST_BAD_DATA, "the service's response does not match the request");
        dry_run = json_node_flag(root, "dry_run");
        for (struct json_node_list l = json_node_list(root, "removed"); (r = json_node_next(&l));) {
                printf("%-10.20s %-10.20s %-6.20s %8" PRId64 " files %12" PRId64 " rows %14" PRId64 " bytes",
                       json_node_text(r, "date"), json_node_text(r, "table"), json_node_text(r, "reason"),
                       json_node_int(r, "files"), json_node_int(r, "rows"), json_node_int(r, "bytes"));
                print_rewritten_files(r, dry_run);
        }
        printf("%s %" PRId64 " files, %" PRId64 " rows, %" PRId64 " bytes", dry_run ? "would remove" : "removed",
               json_node_int(root, "files"), json_node_int(root, "rows"), json_node_int(root, "bytes"));
        print_rewritten_files(root, dry_run);
        if (json_node_int(root, "skipped_files"))
                printf("%s left unchanged\n",
                       COUNTED(json_node_int(root, "skipped_files"), "unreadable file was", "unreadable files were"));
        return ST_OK;
}

enum status store_expire_command(const struct store_command *c, const char *argument, struct error *err)
{
        _cleanup_buf_ struct buf body;
        enum status st;

        (void)argument;

        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = c->at_service ? expire_at_server(c, &body, err) : expire_in_directory(c, &body, err);
        if (st || !c->json)
                return st ? st : print_expire_report(&body, err);
        printf("%.*s\n", (int)(body.size - (body.size && body.data[body.size - 1] == '\n')), (const char *)body.data);
        return ST_OK;
}
