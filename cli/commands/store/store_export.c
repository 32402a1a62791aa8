/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store export: a selection as one Parquet or CSV file of resolved stacks. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/run_query.h"
#include "cli/commands/store/store_command.h"
#include "common/clock.h"
#include "common/files/output_file.h"
#include "common/text.h"
#include "common/text/number_text.h"
#include "query/engine/unit_text.h"
#include "query/operations/export.h"
#include "symbol-index/lookup.h"

#define DEFAULT_STEP_NS (3600 * INT64_C(1000000000))

static enum status parse_export_options(const struct store_command *c, const char *selector, struct export_options *o,
                                        struct error *err)
{
        int64_t now = wall_clock_ns();
        enum status st = ST_OK;

        *o = (struct export_options){ .selector = selector,
                                      .type = c->type,
                                      .from_unix_ns = INT64_MIN,
                                      .to_unix_ns = INT64_MAX,
                                      .step_ns = DEFAULT_STEP_NS,
                                      .fd = STDOUT_FILENO,
                                      .name = "standard output" };
        if (c->from)
                st = time_text_parse(c->from, now, &o->from_unix_ns, err);
        if (!st && c->to)
                st = time_text_parse(c->to, now, &o->to_unix_ns, err);
        if (!st && o->from_unix_ns >= o->to_unix_ns)
                st = error_set(err, ST_USAGE, "the time range is empty: --from is not before --to");
        if (!st && c->step)
                st = duration_text_parse(c->step, &o->step_ns, err);
        if (!st && o->step_ns < EXPORT_STEP_LEAST_NS)
                st = error_set(err, ST_USAGE, "--step '%s' is less than a second", c->step);
        if (st)
                return st;
        o->csv = c->format ? strcmp(c->format, "csv") == 0 : c->output && ends_with(c->output, ".csv");
        if (o->csv)
                return ST_OK;
        if (c->format && strcmp(c->format, "parquet") != 0)
                return error_set(err, ST_USAGE, "--format '%.40s' is not one of parquet, csv", c->format);
        if (!c->output)
                return error_set(err, ST_USAGE, "--output names the Parquet file to write");
        return c->format ? ST_OK : check_output_suffix(c->output, ".parquet, .csv", err);
}

static enum status export_to_file(struct profile_store *store, struct export_options *o, const char *path,
                                  struct export_result *ret, struct error *err)
{
        struct output_file file;
        enum status st = output_file_open(path, OUTPUT_OF_COMMAND, &file, err);

        if (st)
                return st;
        o->fd = file.fd;
        o->name = path;
        st = export_stacks(store, o, ret, err);
        if (!st)
                return output_file_publish(&file, err);
        output_file_discard(&file);
        return st;
}

enum status store_export_command(const struct store_command *c, const char *selector, struct error *err)
{
        _cleanup_free_ char *base = NULL;
        struct profile_store_options options = { .size = sizeof options, .read_only = true };
        struct profile_store *store = NULL;
        struct export_result r = { 0 };
        struct export_options o;
        enum status st = parse_export_options(c, selector, &o, err);

        if (st)
                return st;
        st = service_debuginfo_path(&c->service, c->data, &base, err);
        if (!st)
                st = open_optional_index(base, SAMPLES_WITHOUT_INDEX, &options.symbols, err);
        if (!st)
                st = profile_store_open(c->dir, &options, &store, err);
        if (!st)
                st = c->output ? export_to_file(store, &o, c->output, &r, err) : export_stacks(store, &o, &r, err);
        if (store)
                profile_store_close(store);
        if (options.symbols)
                symbol_index_close(options.symbols);
        if (!st && c->output) /* the output may be standard output by another name */
                fprintf(stderr, "%s: %s of %s\n", c->output, COUNTED(r.rows, "row", "rows"),
                        r.samples.are_stacks ? COUNTED(sample_count_round(r.samples), "stack", "stacks")
                                             : COUNTED(sample_count_round(r.samples), "sample", "samples"));
        return st;
}
