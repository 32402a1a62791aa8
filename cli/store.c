/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store status: what the profile store of a data directory holds. */
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "common/file.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "profile-store/store.h"

static const struct usage usage = {
        .synopsis = "cairn store status --data DIR [--json]",
        .about = "Say how many samples, stacks and locations the tables of DIR hold and what still waits in the "
                 "queue. "
                 "Works while the service runs.",
        .examples = "  cairn store status --data ./cairn-data",
};

static void time_text(int64_t unix_ns, char ret[static 40])
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

static void print_text(const struct profile_store_stat *s)
{
        char oldest[40], newest[40];

        time_text(s->oldest_unix_ns, oldest);
        time_text(s->newest_unix_ns, newest);
        printf("%-22s %12" PRIu64 " rows %8" PRIu64 " files\n", "samples", s->sample_rows, s->sample_files);
        printf("%-22s %12" PRIu64 " rows %8" PRIu64 " files\n", "stacks", s->stack_rows, s->stack_files);
        printf("%-22s %12" PRIu64 " rows %8" PRIu64 " files\n", "locations", s->location_rows, s->location_files);
        printf("%-22s %12" PRIu64 "\n", "  without symbols", s->unresolved_locations);
        printf("%-22s %12" PRIu64 " bytes\n", "tables", s->bytes);
        printf("%-22s %12" PRIu64 " batches, %" PRIu64 " bytes on disk\n", "queue", s->queued_batches,
               s->queue_disk_bytes);
        printf("%-22s %s to %s\n", "time", oldest, newest);
}

static enum status print_json(const struct profile_store_stat *s, struct error *err)
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
        json_out_uint(&j, "queued_batches", s->queued_batches);
        json_out_uint(&j, "queue_bytes", s->queue_disk_bytes);
        json_out_int(&j, "oldest_unix_ns", s->oldest_unix_ns);
        json_out_int(&j, "newest_unix_ns", s->newest_unix_ns);
        json_out_object_end(&j);
        st = buf_status(&out, err, "the answer");
        if (!st)
                printf("%.*s\n", (int)out.size, (const char *)out.data);
        return st;
}

static enum status status_of(const char *data, bool json, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options, .read_only = true };
        _cleanup_free_ char *dir = path_join(data, "profiles");
        struct profile_store *store;
        struct profile_store_stat stat;
        enum status st = dir ? profile_store_open(dir, &options, &store, err) : error_no_memory(err);

        if (st)
                return st;
        st = profile_store_stat(store, &stat, err);
        profile_store_close(store);
        if (st)
                return st;
        if (json)
                return print_json(&stat, err);
        print_text(&stat);
        return ST_OK;
}

int command_store(int argc, char **argv)
{
        const char *data = "./cairn-data";
        bool json = false;
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &data, "the service's data directory (default ./cairn-data)"),
                OPTION_FLAG("json", 0, &json, "print JSON"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st && (argc != 1 || strcmp(argv[0], "status") != 0))
                st = error_set(&err, ST_USAGE, "what to do with the store? 'status' is what there is");
        if (!st)
                st = status_of(data, json, &err);
        return st ? command_fail("store", st, &err) : EXIT_DONE;
}
