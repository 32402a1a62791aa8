/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store status: rows, files and bytes of the tables and the queue, of a directory or a service. */
#include <inttypes.h>
#include <string.h>

#include "cli/commands/store/store_command.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/profile_store.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/tables.h"

#define NS_PER_S INT64_C(1000000000)

/* Statistics of the tables and of the logs of each, which a service does not tell. */
struct store_status {
        struct profile_store_stat stat;
        bool has_logs;
        uint64_t log_files[TABLE_COUNT], log_bytes[TABLE_COUNT];
};

static struct profile_store_table_stat *get_table_stat(struct profile_store_stat *s, int table)
{
        struct profile_store_table_stat *const stats[TABLE_COUNT] = { [TABLE_SAMPLES] = &s->samples,
                                                                      [TABLE_STACKS] = &s->stacks,
                                                                      [TABLE_LOCATIONS] = &s->locations,
                                                                      [TABLE_HISTORY] = &s->history };

        return stats[table];
}

/* ---- output ---- */

static void print_table_text(struct store_status *s, int table)
{
        const struct profile_store_table_stat *t = get_table_stat(&s->stat, table);
        char oldest[40], newest[40], bytes[40], log_bytes[40];

        printf("%-22s %12" PRIu64 " rows %8" PRIu64 " files %12s", table_name(table), t->rows, t->files,
               format_store_bytes(t->bytes, bytes));
        if (s->has_logs)
                printf(", log %s %s", COUNTED(s->log_files[table], "file", "files"),
                       format_store_bytes(s->log_bytes[table], log_bytes));
        printf("\n");
        if (!t->oldest_unix_ns)
                return;
        format_store_time(t->oldest_unix_ns, oldest);
        format_store_time(t->newest_unix_ns, newest);
        printf("%-22s %s to %s\n", "", oldest, newest);
}

static void print_store_text(struct store_status *all)
{
        const struct profile_store_stat *s = &all->stat;
        char oldest[40], newest[40], bytes[40];

        for (int t = 0; t < TABLE_COUNT; t++)
                print_table_text(all, t);
        format_store_time(s->oldest_unix_ns, oldest);
        format_store_time(s->newest_unix_ns, newest);
        printf("%-22s %12" PRIu64 "\n", "  without symbols", s->unresolved_locations);
        printf("%-22s %12s\n", "tables", format_store_bytes(s->bytes, bytes));
        printf("%-22s %12s in %" PRIu64 " files\n", "  to be compacted",
               format_store_bytes(s->compaction_backlog_bytes, bytes), s->compaction_backlog_files);
        printf("%-22s %12" PRIu64 " batches, %s on disk\n", "queue", s->queued_batches,
               format_store_bytes(s->queue_disk_bytes, bytes));
        if (s->health.quarantined_batches)
                printf("%-22s %12" PRIu64 " batches, %s: see cairn store quarantine\n", "quarantine",
                       s->health.quarantined_batches, format_store_bytes(s->health.quarantined_bytes, bytes));
        printf("%-22s %s to %s\n", "time", oldest, newest);
}

static void append_table_json(struct json_out *j, struct store_status *s, int table)
{
        const struct profile_store_table_stat *t = get_table_stat(&s->stat, table);

        json_out_object(j, table_name(table));
        json_out_uint(j, "rows", t->rows);
        json_out_uint(j, "files", t->files);
        json_out_uint(j, "bytes", t->bytes);
        json_out_int(j, "oldest_unix_ns", t->oldest_unix_ns);
        json_out_int(j, "newest_unix_ns", t->newest_unix_ns);
        if (s->has_logs) {
                json_out_uint(j, "log_files", s->log_files[table]);
                json_out_uint(j, "log_bytes", s->log_bytes[table]);
        }
        json_out_object_end(j);
}

static enum status print_store_json(struct store_status *all, struct error *err)
{
        const struct profile_store_stat *s = &all->stat;
        _cleanup_buf_ struct buf out;
        struct json_out j;
        enum status st;

        buf_init(&out, KiB(64));
        json_out_init(&j, &out);
        json_out_object(&j, NULL);
        json_out_uint(&j, "sample_rows", s->sample_rows);
        json_out_uint(&j, "sample_files", s->sample_files);
        json_out_uint(&j, "stack_rows", s->stack_rows);
        json_out_uint(&j, "stack_files", s->stack_files);
        json_out_uint(&j, "location_rows", s->location_rows);
        json_out_uint(&j, "location_files", s->location_files);
        json_out_uint(&j, "unresolved_locations", s->unresolved_locations);
        json_out_uint(&j, "table_bytes", s->bytes);
        json_out_uint(&j, "compaction_backlog_files", s->compaction_backlog_files);
        json_out_uint(&j, "compaction_backlog_bytes", s->compaction_backlog_bytes);
        json_out_uint(&j, "queued_batches", s->queued_batches);
        json_out_uint(&j, "queue_bytes", s->queue_disk_bytes);
        json_out_uint(&j, "quarantined_batches", s->health.quarantined_batches);
        json_out_uint(&j, "quarantined_bytes", s->health.quarantined_bytes);
        json_out_int(&j, "oldest_unix_ns", s->oldest_unix_ns);
        json_out_int(&j, "newest_unix_ns", s->newest_unix_ns);
        json_out_object(&j, "tables");
        for (int t = 0; t < TABLE_COUNT; t++)
                append_table_json(&j, all, t);
        json_out_object_end(&j);
        json_out_object_end(&j);
        st = buf_status(&out, err, "the answer");
        if (!st)
                printf("%.*s\n", (int)out.size, (const char *)out.data);
        return st;
}

/* ---- from a directory ---- */

static enum status read_store_status(const struct store_command *c, struct store_status *ret, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options, .read_only = true };
        _cleanup_storage_ struct storage *tables = NULL;
        struct profile_store *store;
        enum status st = profile_store_open(c->dir, &options, &store, err);

        if (st)
                return st;
        st = profile_store_stat(store, &ret->stat, err);
        profile_store_close(store);
        if (!st)
                st = open_table_storage(c->dir, &tables, err);
        for (int t = 0; !st && t < TABLE_COUNT; t++)
                st = delta_log_measure(tables, table_name(t), &ret->log_files[t], &ret->log_bytes[t], err);
        ret->has_logs = true;
        return st;
}

/* ---- from a service ---- */

static int64_t get_unix_ns(const struct json_value *object, const char *key)
{
        return (int64_t)(json_value_uint(object, key, 0) % (INT64_MAX / NS_PER_S)) * NS_PER_S;
}

static void read_table_stats(const struct json_value *storage, struct profile_store_stat *ret)
{
        struct json_value list, item;
        struct json_scan items;
        char name[32];

        if (!json_value_member(storage, "tables", &list) || !json_value_open_array(&list, &items))
                return;
        while (json_value_next(&items, &item)) {
                if (!json_value_text(&item, "table", name, sizeof name))
                        continue;
                for (int t = 0; t < TABLE_COUNT; t++)
                        if (strcmp(name, table_name(t)) == 0)
                                *get_table_stat(ret, t) = (struct profile_store_table_stat){
                                        .rows = json_value_uint(&item, "rows", 0),
                                        .files = json_value_uint(&item, "files", 0),
                                        .bytes = json_value_uint(&item, "bytes", 0),
                                        .oldest_unix_ns = get_unix_ns(&item, "oldest_unix_s"),
                                        .newest_unix_ns = get_unix_ns(&item, "newest_unix_s"),
                                };
        }
        ret->sample_rows = ret->samples.rows;
        ret->sample_files = ret->samples.files;
        ret->stack_rows = ret->stacks.rows;
        ret->stack_files = ret->stacks.files;
        ret->location_rows = ret->locations.rows;
        ret->location_files = ret->locations.files;
}

/* docs/formats/status.md */
static enum status request_store_status(const struct store_command *c, struct profile_store_stat *ret,
                                        struct error *err)
{
        struct json_value root, queue, storage, compaction, symbols;
        _cleanup_buf_ struct buf body;
        enum status st;

        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = store_request(c, "/api/v1/status", &body, err);
        if (st)
                return st;
        if (json_value_parse(body.data, body.size, &root, NULL) || !json_value_member(&root, "queue", &queue) ||
            !json_value_member(&root, "storage", &storage) || !json_value_member(&root, "compaction", &compaction) ||
            !json_value_member(&root, "resymbolization", &symbols))
                return error_set(err, ST_BAD_DATA,
                                 "unexpected response of /api/v1/status; is the server a Cairn service?");
        ret->queued_batches = json_value_uint(&queue, "batches", 0);
        ret->queue_disk_bytes = json_value_uint(&queue, "disk_bytes", 0);
        ret->health.quarantined_batches = json_value_uint(&queue, "quarantined_batches", 0);
        ret->health.quarantined_bytes = json_value_uint(&queue, "quarantined_bytes", 0);
        ret->bytes = json_value_uint(&storage, "bytes", 0);
        ret->oldest_unix_ns = get_unix_ns(&storage, "oldest_unix_s");
        ret->newest_unix_ns = get_unix_ns(&storage, "newest_unix_s");
        ret->compaction_backlog_files = json_value_uint(&compaction, "backlog_files", 0);
        ret->compaction_backlog_bytes = json_value_uint(&compaction, "backlog_bytes", 0);
        ret->unresolved_locations = json_value_uint(&symbols, "unresolved_locations", 0);
        read_table_stats(&storage, ret);
        return ST_OK;
}

/* ---- the verb ---- */

enum status store_status_command(const struct store_command *c, const char *argument, struct error *err)
{
        struct store_status s = { 0 };
        enum status st = c->at_service ? request_store_status(c, &s.stat, err) : read_store_status(c, &s, err);

        (void)argument;
        if (st)
                return st;
        if (c->json)
                return print_store_json(&s, err);
        print_store_text(&s);
        return ST_OK;
}
