/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store: status, files, check, copy, export, compaction, retention and quarantine of a profile store. */
#include "cli/commands/store/store_command.h"

#include <stdio.h>
#include <time.h>

#include "cli/commands/command.h"
#include "cli/commands/store/bucket_directory.h"
#include "common/cleanup.h"
#include "common/limits.h"
#include "query/engine/unit_text.h"
#include "storage/s3/s3_location.h"

/* ---- pages of the verbs ---- */

static const struct usage usage = {
        .about = "Show and maintain the profile store of a service, of its data directory, or of an object store, for\n"
                 "which --data is s3://BUCKET/PREFIX. The service must be stopped for quarantine retry and remove,\n"
                 "compact --data, and expire --data without --dry-run.",
        .examples = "  cairn store status --data ./cairn-data\n"
                    "  cairn store status --data s3://profiles/fleet\n"
                    "  cairn store files --sql --data ./cairn-data >files.sql\n"
                    "  cairn store snapshot /backup/cairn-monday --data ./cairn-data\n"
                    "  cairn store expire --dry-run --retain-samples age=30d,size=200G --data ./cairn-data\n"
                    "  cairn store quarantine --data ./cairn-data\n"
                    "  cairn store quarantine retry all --data ./cairn-data",
};

static const struct usage status_usage = {
        .synopsis = "cairn store status [--data DIR | --server URL] [--json]",
        .about = "Print rows, files, bytes and times of the tables, the locations without symbols, and the queued and\n"
                 "quarantined batches. A service does not say how large the logs of the tables are.",
        .examples = "  cairn store status --data ./cairn-data\n"
                    "  cairn store status --server https://cairn.example --token-file read.token --json",
};

static const struct usage files_usage = {
        .synopsis = "cairn store files [--table TABLE] [--json | --sql] [--data DIR | --server URL]",
        .about = "List the files of the tables. Of a service these are URLs, without rows and times.\n"
                 "--sql prints them for deploy/sql/duckdb.sql.",
        .examples = "  cairn store files --sql --data ./cairn-data >files.sql\n"
                    "  cairn store files --table samples --server https://cairn.example",
};

static const struct usage verify_usage = {
        .synopsis = "cairn store verify [--json] [--data DIR]",
        .about =
                "Check each file of the tables against the log and its statistics, and all references between tables.\n"
                "It works while the service runs. Exit status: 0 no problem, 1 failed, 2 problems were found.",
        .examples = "  cairn store verify --data /var/lib/cairn",
};

static const struct usage snapshot_usage = {
        .synopsis = "cairn store snapshot TARGET [--json] [--data DIR]",
        .about = "Copy the data directory, of all tenants, to the new directory TARGET, with hard links to files that\n"
                 "never change. It works while the service runs.",
        .examples = "  cairn store snapshot /backup/cairn-monday --data /var/lib/cairn",
};

static const struct usage copy_usage = {
        .synopsis = "cairn store copy FROM TO [--json]",
        .about =
                "Copy tables and debuginfo of all tenants from a data directory or object store to another one, which\n"
                "is empty or has an earlier part of this copy: what is there is not copied again. FROM and TO are a\n"
                "directory or s3://BUCKET/PREFIX. The service of a directory must have ended, so that its queue is "
                "empty.",
        .examples = "  cairn store copy /var/lib/cairn s3://profiles/fleet\n"
                    "  cairn store copy s3://profiles/fleet /var/lib/cairn",
};

static const struct usage export_usage = {
        .synopsis = "cairn store export --output FILE | --format csv [--from T] [--to T] [--type T] [--step D] "
                    "[--data DIR] [SELECTOR]",
        .about =
                "Write the resolved stacks of a selection as one Parquet or CSV file. It works while the service runs.",
        .examples = "  cairn store export --output api.parquet --from now-7d '{service.name=\"api\"}'\n"
                    "  cairn store export --format csv --type cpu --step 1d",
};

static const struct usage compact_usage = {
        .synopsis = "cairn store compact [--server URL | --data DIR] [--json]",
        .about =
                "Merge small files of the tables now. The service does so by itself after each day and when there are\n"
                "many small files. With --data the service must be stopped.",
        .examples = "  cairn store compact --server https://cairn.example --token-file admin.token\n"
                    "  cairn store compact --data /var/lib/cairn",
};

static const struct usage expire_usage = {
        .synopsis = "cairn store expire [--dry-run] [--retain-samples RULE]... [--data DIR | --server URL] [--json]",
        .about = "Remove samples past their retention, by the service's rules or those of --retain-samples, and print\n"
                 "what was removed. With --data the service must be stopped, unless it is a dry run.",
        .examples = "  cairn store expire --dry-run --retain-samples age=30d --server https://cairn.example\n"
                    "  cairn store expire --dry-run --retain-samples age=30d,size=200G --data ./cairn-data",
};

static const struct usage quarantine_usage = {
        .synopsis = "cairn store quarantine [list | retry ID | remove ID | export ID --output PATH] [--json] "
                    "[--data DIR]",
        .about = "List the batches that could not be flushed; retry puts them back into the queue, remove discards\n"
                 "them, export writes them as OTLP files. ID is a batch id or 'all'. The service must be stopped for\n"
                 "retry and remove.",
        .examples = "  cairn store quarantine --data ./cairn-data\n"
                    "  cairn store quarantine retry all --data ./cairn-data\n"
                    "  cairn store quarantine export all --output ./batches --data ./cairn-data",
};

/* ---- verbs ---- */

#define SERVER_OPTIONS "server token-file ca "

enum {
        VERB_STATUS,
        VERB_FILES,
        VERB_VERIFY,
        VERB_SNAPSHOT,
        VERB_COPY,
        VERB_EXPORT,
        VERB_COMPACT,
        VERB_EXPIRE,
        VERB_QUARANTINE,
        VERB_QUARANTINE_LIST,
        VERB_QUARANTINE_RETRY,
        VERB_QUARANTINE_REMOVE,
        VERB_QUARANTINE_EXPORT,
        VERB_COUNT
};

static const struct option_verb verbs[VERB_COUNT] = {
        [VERB_STATUS] = { "status", SERVER_OPTIONS "data tenant json",
                          "rows, files and bytes of the tables, and the queued batches", &status_usage },
        [VERB_FILES] = { "files", SERVER_OPTIONS "data tenant table sql json", "list the files of the tables",
                         &files_usage },
        [VERB_VERIFY] = { "verify", "data tenant json", "check the files of the tables and the references between them",
                          &verify_usage },
        [VERB_SNAPSHOT] = { "snapshot", "data json", "copy the data directory to the new directory TARGET",
                            &snapshot_usage },
        [VERB_COPY] = { "copy", "json", "copy tables and debuginfo between directories and object stores",
                        &copy_usage },
        [VERB_EXPORT] = { "export", "data tenant output format from to type step",
                          "write the resolved stacks of a selection as one Parquet or CSV file", &export_usage },
        [VERB_COMPACT] = { "compact", SERVER_OPTIONS "data tenant json", "merge small files of the tables now",
                           &compact_usage },
        [VERB_EXPIRE] = { "expire", SERVER_OPTIONS "data tenant retain-samples dry-run json",
                          "remove samples past their retention, and print what was removed", &expire_usage },
        [VERB_QUARANTINE] = { "quarantine", "data tenant json",
                              "list, retry, remove or export batches that could not be flushed", &quarantine_usage },
        [VERB_QUARANTINE_LIST] = { "quarantine list", "data tenant json", NULL, &quarantine_usage },
        [VERB_QUARANTINE_RETRY] = { "quarantine retry", "data tenant json", NULL, &quarantine_usage },
        [VERB_QUARANTINE_REMOVE] = { "quarantine remove", "data tenant json", NULL, &quarantine_usage },
        [VERB_QUARANTINE_EXPORT] = { "quarantine export", "data tenant output json", NULL, &quarantine_usage },
};

static const struct {
        store_verb *run;
        const char *needs;   /* argument that it needs, for the message; NULL: none */
        bool takes_argument; /* one, which may be left out unless needs is set */
        bool default_server; /* the service is the default, in place of ./cairn-data */
        bool takes_two;      /* needs a second argument, and opens no directory before it runs */
} runs[VERB_COUNT] = {
        [VERB_STATUS] = { .run = store_status_command },
        [VERB_FILES] = { .run = store_files_command },
        [VERB_VERIFY] = { .run = store_verify_command },
        [VERB_SNAPSHOT] = { .run = store_snapshot_command, .needs = "TARGET, the new directory for the copy" },
        [VERB_COPY] = { .run = store_copy_command,
                        .needs = "FROM and TO: directories, or s3://BUCKET/PREFIX",
                        .takes_two = true },
        [VERB_EXPORT] = { .run = store_export_command, .takes_argument = true },
        [VERB_COMPACT] = { .run = store_compact_command, .default_server = true },
        [VERB_EXPIRE] = { .run = store_expire_command },
        [VERB_QUARANTINE] = { .run = quarantine_list_command },
        [VERB_QUARANTINE_LIST] = { .run = quarantine_list_command },
        [VERB_QUARANTINE_RETRY] = { .run = quarantine_retry_command, .needs = "a batch id, or all" },
        [VERB_QUARANTINE_REMOVE] = { .run = quarantine_remove_command, .needs = "a batch id, or all" },
        [VERB_QUARANTINE_EXPORT] = { .run = quarantine_export_command, .needs = "a batch id, or all" },
};

/* ---- shared by the verbs ---- */

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

const char *format_store_bytes(uint64_t bytes, char ret[static 40])
{
        if (bytes > INT64_MAX)
                bytes = INT64_MAX;
        if (bytes)
                return format_value((int64_t)bytes, "bytes", ret, 40);
        snprintf(ret, 40, "0 B");
        return ret;
}

enum status store_request(const struct store_command *c, const char *path, struct buf *ret, struct error *err)
{
        const struct http_client_options how = { .size = sizeof how };
        const struct http_client_request request = { .method = "GET",
                                                     .path = path,
                                                     .max_response = LIMIT_RESPONSE_BYTES };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        enum status st = service_connect(&c->service, &how, &client, err);

        if (!st)
                st = service_send(client, &request, &response, err);
        if (!st)
                st = buf_append(ret, response.body.data, response.body.size);
        return st;
}

/* ---- the command ---- */

static enum status check_store_arguments(const struct option_verb *verb, int argc, char **argv, struct error *err)
{
        size_t v = (size_t)(verb - verbs);
        int least = !!runs[v].needs + runs[v].takes_two, most = runs[v].takes_argument ? 1 : least;

        if (v == VERB_QUARANTINE && argc)
                return error_set(err, ST_USAGE, "'%.40s' is not one of list, retry, remove, export", argv[0]);
        if (argc < least)
                return error_set(err, ST_USAGE, "'%s' needs %s", verb->name, runs[v].needs);
        if (argc > most)
                return error_set(err, ST_USAGE, "unexpected argument '%.80s' of '%s'", argv[most], verb->name);
        return ST_OK;
}

/* The command works on a temporary directory whose tables and objects are those of the store. */
static enum status open_bucket_directory(struct store_command *c, const struct option_verb *verb,
                                         struct bucket_directory *ret, struct error *err)
{
        enum status st;

        if (verb >= &verbs[VERB_QUARANTINE])
                return error_set(err, ST_USAGE,
                                 "queue and quarantine are on the disk of the service: give --data DIR there");
        st = bucket_directory_create(c->data, c->service.tenant, ret, err);
        if (!st && verb == &verbs[VERB_SNAPSHOT])
                st = bucket_directory_load_records(ret, err);
        c->data = ret->path;
        return st;
}

static enum status run_store_verb(struct store_command *c, const struct option_verb *verb, int argc, char **argv,
                                  struct error *err)
{
        size_t v = (size_t)(verb - verbs);
        _cleanup_bucket_directory_ struct bucket_directory bucket = { 0 };
        _cleanup_free_ char *dir = NULL;
        enum status st = check_store_arguments(verb, argc, argv, err);

        if (!st && runs[v].takes_two) {
                c->second = argv[1];
                return runs[v].run(c, argv[0], err);
        }
        if (!st && c->service.server && c->data)
                st = error_set(err, ST_USAGE, "--server and --data exclude each other");
        c->at_service = c->service.server || (runs[v].default_server && !c->data);
        if (!c->data)
                c->data = "./cairn-data";
        c->place = c->data;
        if (!st && is_s3_url(c->data))
                st = open_bucket_directory(c, verb, &bucket, err);
        if (!st && !c->at_service)
                st = service_profiles_path(&c->service, c->data, &dir, err);
        c->dir = dir;
        return st ? st : runs[v].run(c, argc ? argv[0] : NULL, err);
}

int command_store(int argc, char **argv)
{
        static const struct option_verbs all = {
                .command = "cairn store", .usage = &usage, .items = verbs, .count = VERB_COUNT
        };
        struct store_command c = { 0 };
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &c.data,
                              "data directory of the service, or s3://BUCKET/PREFIX (default ./cairn-data)"),
                OPTION_STRING("output", 0, "FILE", &c.output,
                              "export: output file or directory (default for CSV: standard output)"),
                OPTION_STRING("format", 0, "F", &c.format,
                              "export: parquet or csv (default: by the suffix of the output file, else parquet)"),
                OPTION_STRING("from", 0, "T", &c.from, "export: start (default: the oldest sample)"),
                OPTION_STRING("to", 0, "T", &c.to, "export: end (default: after the newest sample)"),
                OPTION_STRING("type", 0, "T", &c.type, "export: profile type, or a part of it (default: all)"),
                OPTION_STRING("step", 0, "D", &c.step, "export: sum samples over this time (default 1h)"),
                OPTION_STRING("table", 0, "TABLE", &c.table, "files: only those of samples, stacks or locations"),
                OPTION_FLAG("sql", 0, &c.sql, "files: print a statement for DuckDB: SET VARIABLE cairn_files = ..."),
                OPTION_LIST("retain-samples", 0, "RULE", &c.retain,
                            "expire: keep samples by this rule, as age=30d, size=200G or '{env=\"dev\"},age=3d'; "
                            "repeatable"),
                OPTION_FLAG("dry-run", 0, &c.dry_run, "expire: print what would be removed, remove nothing"),
                OPTION_STRING("server", 0, "URL", &c.service.server,
                              "status, files, compact, expire: URL of the service (compact: default " DEFAULT_SERVER
                              ")"),
                SERVICE_OPTIONS(&c.service),
                TENANT_OPTION(&c.service),
                OPTION_FLAG("json", 0, &c.json, "print JSON"),
                OPTION_END,
        };
        const struct option_verb *verb;
        struct error err;
        enum status st = options_parse_verb(&all, specs, &argc, &argv, &verb, &err);

        if (!st)
                st = run_store_verb(&c, verb, argc, argv, &err);
        options_list_deinit(&c.retain);
        return st ? command_fail("store", st, &err) : EXIT_DONE;
}
