/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store: status, compaction, retention and quarantine of a data directory's profile store. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands/command.h"
#include "cli/commands/store.h"
#include "cli/commands/store_compact.h"
#include "common/file.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "common/text.h"
#include "common/utf8.h"
#include "profile-formats/otlp.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/queue/quarantine.h"
#include "profile-store/store.h"
#include "profile-store/table_schema.h"

static const struct usage usage = {
        .synopsis =
                "cairn store status --data DIR [--json]\n"
                "       cairn store files [--table TABLE] [--json | --sql] --data DIR\n"
                "       cairn store verify [--json] --data DIR\n"
                "       cairn store snapshot TARGET [--json] --data DIR\n"
                "       cairn store export --output FILE | --format csv [--from T] [--to T] [--type T] "
                "[--step D] [SELECTOR] --data DIR\n"
                "       cairn store compact [--server URL | --data DIR] [--json]\n"
                "       cairn store expire [--dry-run] [--retain-samples RULE]... --data DIR | --server URL [--json]\n"
                "       cairn store quarantine [list | retry ID | remove ID | export ID --output PATH] --data DIR "
                "[--json]",
        .about = "Commands:\n"
                 "  status      rows, files and bytes of the tables, and the queued batches\n"
                 "  files       list the files of the tables; --sql prints them for deploy/sql/duckdb.sql\n"
                 "  verify      check each file against the log and its statistics, and all references between tables\n"
                 "  snapshot    copy DIR to the new directory TARGET, with hard links to files that never change\n"
                 "  export      write the resolved stacks of a selection as one Parquet or CSV file\n"
                 "  compact     merge small files of the tables now; the service does so by itself after each day\n"
                 "              and when there are many small files\n"
                 "  expire      remove samples past their retention, by the service's rules or those of\n"
                 "              --retain-samples, and print what was removed\n"
                 "  quarantine  list the batches that could not be flushed; retry puts them back into the queue,\n"
                 "              remove discards them, export writes them as OTLP files. ID is a batch id or 'all'\n"
                 "The service must be stopped for quarantine retry and remove, compact --data, and expire --data\n"
                 "without --dry-run.",
        .examples = "  cairn store status --data ./cairn-data\n"
                    "  cairn store files --sql --data ./cairn-data >files.sql\n"
                    "  cairn store snapshot /backup/cairn-monday --data ./cairn-data\n"
                    "  cairn store expire --dry-run --retain-samples age=30d,size=200G --data ./cairn-data\n"
                    "  cairn store quarantine --data ./cairn-data\n"
                    "  cairn store quarantine retry all --data ./cairn-data",
};

void format_store_time(int64_t unix_ns, char ret[static 40])
{
        time_t s = (time_t)(unix_ns / 1000000000);
        struct tm tm;

        if (!unix_ns) {
                snprintf(ret, 40, "-");
                return;
        }
        gmtime_r(&s, &tm);
        strftime(ret, 40, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Statistics of one table. */
struct table_status {
        const struct profile_store_table_stat *stat;
        uint64_t log_files, log_bytes;
};

static enum status measure_table_logs(const char *dir, const struct profile_store_stat *s,
                                      struct table_status ret[static TABLE_COUNT], struct error *err)
{
        const struct profile_store_table_stat *const stats[TABLE_COUNT] = {
                [TABLE_SAMPLES] = &s->samples, [TABLE_STACKS] = &s->stacks, [TABLE_LOCATIONS] = &s->locations
        };
        _cleanup_free_ char *tables = path_join(dir, "tables");
        enum status st = tables ? ST_OK : error_no_memory(err);

        for (int t = 0; !st && t < TABLE_COUNT; t++) {
                _cleanup_free_ char *table = path_join(tables, table_name(t));

                ret[t].stat = stats[t];
                st = table ? delta_log_measure(table, &ret[t].log_files, &ret[t].log_bytes, err) : error_no_memory(err);
        }
        return st;
}

static void print_store_text(const struct profile_store_stat *s, const struct table_status tables[static TABLE_COUNT])
{
        char oldest[40], newest[40];

        for (int t = 0; t < TABLE_COUNT; t++) {
                const struct table_status *i = &tables[t];

                printf("%-22s %12" PRIu64 " rows %8" PRIu64 " files %14" PRIu64 " bytes, log %" PRIu64 " files %" PRIu64
                       " bytes\n",
                       table_name(t), i->stat->rows, i->stat->files, i->stat->bytes, i->log_files, i->log_bytes);
                if (i->stat->oldest_unix_ns) {
                        format_store_time(i->stat->oldest_unix_ns, oldest);
                        format_store_time(i->stat->newest_unix_ns, newest);
                        printf("%-22s %s to %s\n", "", oldest, newest);
                }
        }
        format_store_time(s->oldest_unix_ns, oldest);
        format_store_time(s->newest_unix_ns, newest);
        printf("%-22s %12" PRIu64 "\n", "  without symbols", s->unresolved_locations);
        printf("%-22s %12" PRIu64 " bytes\n", "tables", s->bytes);
        printf("%-22s %12" PRIu64 " bytes in %" PRIu64 " files\n", "  to be compacted", s->compaction_backlog_bytes,
               s->compaction_backlog_files);
        printf("%-22s %12" PRIu64 " batches, %" PRIu64 " bytes on disk\n", "queue", s->queued_batches,
               s->queue_disk_bytes);
        if (s->health.quarantined_batches)
                printf("%-22s %12" PRIu64 " batches, %" PRIu64 " bytes: see cairn store quarantine\n", "quarantine",
                       s->health.quarantined_batches, s->health.quarantined_bytes);
        printf("%-22s %s to %s\n", "time", oldest, newest);
}

static void append_table_json(struct json_out *j, int t, const struct table_status *i)
{
        json_out_object(j, table_name(t));
        json_out_uint(j, "rows", i->stat->rows);
        json_out_uint(j, "files", i->stat->files);
        json_out_uint(j, "bytes", i->stat->bytes);
        json_out_int(j, "oldest_unix_ns", i->stat->oldest_unix_ns);
        json_out_int(j, "newest_unix_ns", i->stat->newest_unix_ns);
        json_out_uint(j, "log_files", i->log_files);
        json_out_uint(j, "log_bytes", i->log_bytes);
        json_out_object_end(j);
}

static enum status print_store_json(const struct profile_store_stat *s,
                                    const struct table_status tables[static TABLE_COUNT], struct error *err)
{
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
                append_table_json(&j, t, &tables[t]);
        json_out_object_end(&j);
        json_out_object_end(&j);
        st = buf_status(&out, err, "the answer");
        if (!st)
                printf("%.*s\n", (int)out.size, (const char *)out.data);
        return st;
}

static enum status read_store_status(const struct store_command *c, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options, .read_only = true };
        struct table_status tables[TABLE_COUNT];
        struct profile_store *store;
        struct profile_store_stat stat;
        enum status st = profile_store_open(c->dir, &options, &store, err);

        if (st)
                return st;
        st = profile_store_stat(store, &stat, err);
        profile_store_close(store);
        if (!st)
                st = measure_table_logs(c->dir, &stat, tables, err);
        if (st)
                return st;
        if (c->json)
                return print_store_json(&stat, tables, err);
        print_store_text(&stat, tables);
        return ST_OK;
}

/* ---- quarantine ---- */

/* Untrusted bytes must not reach the terminal unescaped. */
static void print_masked(const char *text)
{
        for (; *text; text++)
                putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

/* Print labels that identify the sender of a batch, from its first sample. */
static void describe_sender(const struct store_command *c, const struct quarantine_item *item, char *ret, size_t size,
                            uint64_t *samples_ret)
{
        static const char *const keys[] = { "host.name", "host_name", "service.name", "service_name" };
        struct profile p;
        size_t n = 0;

        snprintf(ret, size, "unknown");
        *samples_ret = 0;
        if (item->damaged || quarantine_decode(c->dir, item, &p, NULL))
                return;
        *samples_ret = p.samples.count;
        for (uint32_t i = 0; p.samples.count && i < p.samples.items[0].label_count; i++) {
                const struct profile_label *l = &p.labels.items[p.samples.items[0].first_label + i];

                for (size_t k = 0; k < sizeof keys / sizeof *keys && n < size; k++)
                        if (strcmp(profile_text(&p, l->key), keys[k]) == 0)
                                n += (size_t)snprintf(ret + n, size - n, "%s%s=%s", n ? " " : "", keys[k],
                                                      profile_text(&p, l->value));
        }
        profile_deinit(&p);
}

static void print_quarantined_item(const struct store_command *c, const struct quarantine_item *item,
                                   struct json_out *j)
{
        char id[33], received[40], sender[200];
        uint64_t samples;

        hex_encode(item->batch_id.bytes, sizeof item->batch_id.bytes, id);
        format_store_time(item->received_unix_ns, received);
        describe_sender(c, item, sender, sizeof sender, &samples);
        if (c->json) {
                json_out_object(j, NULL);
                json_out_str(j, "batch_id", id);
                json_out_uint(j, "position", item->position);
                json_out_uint(j, "bytes", item->bytes);
                json_out_uint(j, "samples", samples);
                json_out_str(j, "sender", sender);
                json_out_int(j, "received_unix_ns", item->received_unix_ns);
                json_out_int(j, "quarantined_unix_ns", item->quarantined_unix_ns);
                json_out_bool(j, "damaged", item->damaged);
                json_out_str(j, "reason", item->reason);
                json_out_object_end(j);
                return;
        }
        printf("%s %s %" PRIu64 " bytes, %" PRIu64 " samples, sender ", id, received, item->bytes, samples);
        print_masked(sender);
        printf("\n  ");
        print_masked(item->reason);
        printf("\n");
}

static enum status list_quarantine(const struct store_command *c, const struct quarantine_item *items, size_t count,
                                   struct error *err)
{
        _cleanup_buf_ struct buf out;
        struct json_out j;
        enum status st;

        buf_init(&out, LIMIT_RESPONSE_BYTES);
        json_out_init(&j, &out);
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count; i++)
                print_quarantined_item(c, &items[i], &j);
        json_out_array_end(&j);
        st = buf_status(&out, err, "the list");
        if (!st && c->json)
                printf("%.*s\n", (int)out.size, (const char *)out.data);
        return st;
}

static enum status export_quarantined_item(const struct store_command *c, const struct quarantine_item *item,
                                           const char *path, struct error *err)
{
        _cleanup_buf_ struct buf plain;
        struct profile p;
        enum status st;

        buf_init(&plain, LIMIT_PROFILE_MEMORY_BYTES);
        st = quarantine_decode(c->dir, item, &p, err);
        if (st)
                return st;
        st = otlp_encode(&p, &plain, err);
        profile_deinit(&p);
        return st ? st : file_write_durable(path, plain.data, plain.size, err);
}

static bool is_quarantine_match(const struct quarantine_item *item, const char *id)
{
        char hex[33];

        return strcmp(id, "all") == 0 ||
               strcmp(hex_encode(item->batch_id.bytes, sizeof item->batch_id.bytes, hex), id) == 0;
}

/*
 * Write one batch to the file --output, or each batch to a file of its own in the directory --output. Batches with the
 * same id are distinguished by their position.
 */
static enum status export_quarantine(const struct store_command *c, const char *id, const struct quarantine_item *items,
                                     size_t count, struct error *err)
{
        struct stat info;
        bool to_directory = c->output && stat(c->output, &info) == 0 && S_ISDIR(info.st_mode);
        size_t found = 0, failed = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < count; i++)
                found += is_quarantine_match(&items[i], id);
        if (!c->output)
                return error_set(err, ST_USAGE, "--output names the file or directory to export to");
        if (found > 1 && !to_directory)
                return error_set(err, ST_USAGE, "%zu batches need an existing directory: '%s' is not one", found,
                                 c->output);
        if (!found && strcmp(id, "all") != 0)
                return error_set(err, ST_NOT_FOUND, "no batch '%.40s' is in the quarantine", id);
        for (size_t i = 0; !st && i < count; i++) {
                char hex[33], name[64];
                _cleanup_free_ char *path = NULL;
                struct error why;

                if (!is_quarantine_match(&items[i], id))
                        continue;
                hex_encode(items[i].batch_id.bytes, sizeof items[i].batch_id.bytes, hex);
                snprintf(name, sizeof name, "%020" PRIu64 "-%s.otlp", items[i].position, hex);
                path = to_directory ? path_join(c->output, name) : strdup(c->output);
                if (!path)
                        return error_no_memory(err);
                st = export_quarantined_item(c, &items[i], path, &why);
                if (st == ST_BAD_DATA && found > 1) { /* the others are still exported */
                        fprintf(stderr, "cairn store: %s: %s\n", hex, PRINTABLE(why.text));
                        failed++;
                        st = ST_OK;
                } else if (st && err) {
                        *err = why;
                }
        }
        if (st)
                return st;
        printf("%zu batches: export done\n", found - failed);
        return failed ? error_set(err, ST_BAD_DATA, "%zu batches of %zu are damaged", failed, found) : ST_OK;
}

/* Requeue or discard; the service must be stopped. */
static enum status change_quarantine(const struct store_command *c, const char *action, const char *id,
                                     const struct quarantine_item *items, size_t count, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct profile_store *store = NULL;
        size_t found = 0;
        enum status st = profile_store_open(c->dir, &options, &store, err);

        for (size_t i = 0; !st && i < count; i++) {
                if (!is_quarantine_match(&items[i], id))
                        continue;
                found++;
                st = strcmp(action, "retry") == 0 ? profile_store_requeue(store, &items[i], err)
                                                  : profile_store_discard(store, &items[i], err);
        }
        profile_store_close(store);
        if (!st && !found && strcmp(id, "all") != 0)
                return error_set(err, ST_NOT_FOUND, "no batch '%.40s' is in the quarantine", id);
        if (!st)
                printf("%zu batches: %s done\n", found, action);
        return st;
}

static enum status quarantine_command(const struct store_command *c, int argc, char **argv, struct error *err)
{
        _cleanup_free_ struct quarantine_item *items = NULL;
        const char *action = argc > 0 ? argv[0] : "list";
        bool list = strcmp(action, "list") == 0;
        size_t count;
        enum status st;

        if (!list && strcmp(action, "retry") != 0 && strcmp(action, "remove") != 0 && strcmp(action, "export") != 0)
                return error_set(err, ST_USAGE, "'%.40s' is not one of list, retry, remove, export", action);
        if (argc != (list ? argc > 0 : 2))
                return error_set(err, ST_USAGE,
                                 list ? "list takes no argument" : "no batch is given: give its id, or all");
        st = profile_store_check_exists(c->dir, err);
        if (!st)
                st = quarantine_list(c->dir, &items, &count, err);
        if (st)
                return st;
        if (list)
                return list_quarantine(c, items, count, err);
        return strcmp(action, "export") == 0 ? export_quarantine(c, argv[1], items, count, err)
                                             : change_quarantine(c, action, argv[1], items, count, err);
}

int command_store(int argc, char **argv)
{
        struct store_command c = { 0 };
        _cleanup_free_ char *dir = NULL;
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &c.data, "data directory of the service (default ./cairn-data)"),
                OPTION_STRING("output", 0, "FILE", &c.output,
                              "export: output file or directory (default for CSV: standard output)"),
                OPTION_STRING("format", 0, "F", &c.format, "export: parquet (default) or csv"),
                OPTION_STRING("from", 0, "T", &c.from, "export: start (default: the oldest sample)"),
                OPTION_STRING("to", 0, "T", &c.to, "export: end (default: after the newest sample)"),
                OPTION_STRING("type", 0, "T", &c.type, "export: profile type (default: all)"),
                OPTION_STRING("step", 0, "D", &c.step, "export: sum samples over this time (default 1h)"),
                OPTION_STRING("table", 0, "TABLE", &c.table, "files: only those of samples, stacks or locations"),
                OPTION_FLAG("sql", 0, &c.sql, "files: print a statement for DuckDB: SET VARIABLE cairn_files = ..."),
                OPTION_LIST("retain-samples", 0, "RULE", &c.retain,
                            "expire: keep samples by this rule, as age=30d, size=200G or '{env=\"dev\"},age=3d'; "
                            "repeatable"),
                OPTION_FLAG("dry-run", 0, &c.dry_run, "expire: print what would be removed, remove nothing"),
                OPTION_STRING("server", 0, "URL", &c.service.server,
                              "compact, expire: URL of the service (default for compact: " DEFAULT_SERVER ")"),
                SERVICE_OPTIONS(&c.service),
                TENANT_OPTION(&c.service),
                OPTION_FLAG("json", 0, &c.json, "print JSON"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st && argc == 1 && strcmp(argv[0], "compact") == 0) {
                st = run_store_compact(&c.service, c.data, c.json, &err);
                options_list_deinit(&c.retain);
                return st ? command_fail("store", st, &err) : EXIT_DONE;
        }
        if (!c.data)
                c.data = "./cairn-data";
        if (!st)
                st = service_profiles_path(&c.service, c.data, &dir, &err);
        c.dir = dir;
        if (st)
                ;
        else if (argc == 1 && strcmp(argv[0], "status") == 0)
                st = read_store_status(&c, &err);
        else if (argc == 1 && strcmp(argv[0], "files") == 0)
                st = store_files_command(&c, &err);
        else if (argc == 1 && strcmp(argv[0], "verify") == 0)
                st = store_verify_command(&c, &err);
        else if (argc >= 1 && argc <= 2 && strcmp(argv[0], "export") == 0) {
                c.selector = argc == 2 ? argv[1] : NULL;
                st = store_export_command(&c, &err);
        } else if (argc == 2 && strcmp(argv[0], "snapshot") == 0)
                st = store_snapshot_command(&c, argv[1], &err);
        else if (argc == 1 && strcmp(argv[0], "expire") == 0)
                st = store_expire_command(&c, &err);
        else if (argc >= 1 && strcmp(argv[0], "quarantine") == 0)
                st = quarantine_command(&c, argc - 1, argv + 1, &err);
        else
                st = error_set(
                        &err, ST_USAGE,
                        "expected status, files, verify, snapshot TARGET, export, compact, expire or quarantine");
        options_list_deinit(&c.retain);
        return st ? command_fail("store", st, &err) : EXIT_DONE;
}
