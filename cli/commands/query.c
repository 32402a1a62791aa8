/* SPDX-License-Identifier: Apache-2.0 */
/* cairn query, top, flame and diff: the commands on the query API. */
#include <string.h>

#include "cli/commands/run_query.h"
#include "cli/commands/command.h"
#include "common/limits.h"
#include "common/text.h"

/* ---- cairn query ---- */

static const struct usage query_usage = {
        .synopsis = "cairn query [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] "
                    "[--types | --labels | --values LABEL | --series | --spans | --missing | --lines | --disassembly | "
                    "--sandwich REGEX] "
                    "[--json | --csv] [SELECTOR]",
        .about = "Print the merged call tree of the samples that SELECTOR matches. Other views: cost over time\n"
                 "(--series), by source line (--lines) or by instruction (--disassembly); the most expensive spans\n"
                 "and traces (--spans); callers and callees of functions (--sandwich); profile types (--types),\n"
                 "labels (--labels) and their values (--values); objects without debuginfo (--missing).",
        .examples = "  cairn query '{comm=~\"post.*\"}'\n"
                    "  cairn query --series --step 1m '{service.name=\"api\"}'\n"
                    "  cairn query --series --by host.name --groups 5 --csv\n"
                    "  cairn query --spans --limit 10 '{service.name=\"api\"}'\n"
                    "  cairn query '{trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"}'\n"
                    "  cairn query --lines --function 'parse.*'\n"
                    "  cairn query --disassembly --function parse_number\n"
                    "  cairn query --values comm\n"
                    "  cairn query --missing\n",
};

int command_query(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { 0 };
        struct query_view view = { 0 };
        bool types = false, labels = false, series = false, spans = false, missing = false, lines = false, json = false,
             csv = false, disassembly = false;
        const char *values = NULL, *step = NULL, *limit = NULL, *sandwich = NULL, *function = NULL, *file = NULL,
                   *selector, *output = NULL, *operation, *build_id = NULL, *start = NULL, *end = NULL, *syntax = NULL;
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o),
                OPTION_FLAG("types", 0, &types, "list the profile types"),
                OPTION_FLAG("labels", 0, &labels, "list the label names"),
                OPTION_STRING("values", 0, "LABEL", &values, "list the values of a label"),
                OPTION_FLAG("series", 0, &series, "print the cost over time"),
                OPTION_STRING("step", 0, "DURATION", &step, "with --series: interval, as 15s or 1m"),
                OPTION_FLAG("spans", 0, &spans, "list the most expensive spans; with --by trace_id the traces"),
                OPTION_FLAG("missing", 0, &missing, "list objects without debuginfo, most sampled first"),
                OPTION_FLAG("lines", 0, &lines, "print the cost of each source line of --function or --file"),
                OPTION_FLAG("disassembly", 0, &disassembly, "print the cost of each instruction of --function"),
                OPTION_STRING("function", 0, "REGEX", &function,
                              "with --lines and --disassembly: functions whose whole name matches"),
                OPTION_STRING("file", 0, "REGEX", &file,
                              "with --lines and --disassembly: files with a match in their path"),
                OPTION_STRING("build-id", 0, "ID", &build_id,
                              "with --disassembly: this object (default: the most expensive)"),
                OPTION_STRING("start", 0, "ADDRESS", &start,
                              "with --disassembly, instead of --function: first address"),
                OPTION_STRING("end", 0, "ADDRESS", &end, "with --disassembly: end address, exclusive"),
                OPTION_STRING("syntax", 0, "S", &syntax, "with --disassembly on x86: intel (default) or att"),
                OPTION_STRING("sandwich", 0, "REGEX", &sandwich,
                              "print callers and callees of the functions whose whole name matches"),
                QUERY_FRAME_OPTIONS(&view),
                QUERY_GROUP_OPTIONS(&view),
                OPTION_STRING("limit", 'n', "N", &limit, "maximum number of rows"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                OPTION_FLAG("json", 0, &json, "print JSON"),
                OPTION_FLAG("csv", 0, &csv, "print CSV; with --series, --spans, --lines, --disassembly and lists"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&query_usage, specs, &argc, &argv, &err);

        if (!st &&
            types + labels + series + spans + missing + lines + disassembly + (values != NULL) + (sandwich != NULL) > 1)
                st = error_set(&err, ST_USAGE,
                               "--types, --labels, --values, --series, --spans, --missing, --lines, --disassembly and "
                               "--sandwich exclude each other");
        if (!st && (function || file) && !lines && !disassembly)
                st = error_set(&err, ST_USAGE, "--function and --file are options of --lines and --disassembly");
        if (!st && (build_id || start || end || syntax) && !disassembly)
                st = error_set(&err, ST_USAGE, "--build-id, --start, --end and --syntax are options of --disassembly");
        if (!st && json && csv)
                st = error_set(&err, ST_USAGE, "--json and --csv exclude each other");
        if (!st)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st) {
                operation = types         ? "types"
                            : labels      ? "labels"
                            : values      ? "values"
                            : series      ? "series"
                            : spans       ? "spans"
                            : missing     ? "missing"
                            : lines       ? "lines"
                            : disassembly ? "disassembly"
                            : sandwich    ? "sandwich"
                                          : "flame";
                query_param_add(&params, "selector", selector);
                query_param_add(&params, "name", values);
                query_param_add(&params, "step", step);
                query_param_add(&params, "limit", limit);
                query_param_add(&params, "function", sandwich ? sandwich : function);
                query_param_add(&params, "file", file);
                query_param_add(&params, "build_id", build_id);
                query_param_add(&params, "start", start);
                query_param_add(&params, "end", end);
                query_param_add(&params, "syntax", syntax);
                query_param_add(&params, "server", lines || disassembly ? o.service.server : NULL);
                query_param_add(&params, "source", lines && !json && !csv ? "file" : NULL); /* searches upstreams too */
                query_view_add(&params, &view);
                query_param_add(&params, "format", json ? "json" : csv ? "csv" : "text");
                st = run_and_write_query(&o, operation, &params, output, &err);
        }
        return st ? command_fail("query", st, &err) : EXIT_DONE;
}

/* ---- cairn top ---- */

static const struct usage top_usage = {
        .synopsis = "cairn top [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] [--limit N] "
                    "[--focus REGEX] [--by LABEL,...] [--json | --csv] [SELECTOR]",
        .about = "Print the most expensive functions: flat is the cost of the function itself, cumulative includes\n"
                 "its callees. Inlined functions are counted as functions of their own.",
        .examples = "  cairn top\n"
                    "  cairn top --from now-5m '{comm=\"python3\"}'\n"
                    "  cairn top --by service.name,version --focus 'runtime' --limit 5\n"
                    "  cairn top --json --limit 10 --type memory --data ./cairn-data\n",
};

int command_top(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { 0 };
        struct query_view view = { 0 };
        const char *limit = NULL, *selector, *output = NULL, *names = NULL, *function = NULL;
        bool json = false, csv = false;
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o),
                OPTION_STRING("limit", 'n', "N", &limit,
                              "maximum number of rows (default 30, all with --json and --csv)"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                QUERY_FRAME_OPTIONS(&view),
                QUERY_GROUP_OPTIONS(&view),
                OPTION_STRING("function", 0, "REGEX", &function,
                              "only functions whose full, short or linkage name matches as a whole"),
                OPTION_STRING("names", 0, "N", &names, "full (default) or short, without parameters and arguments"),
                OPTION_FLAG("json", 0, &json, "print a JSON array of {function, file, line, flat, cumulative, ...}"),
                OPTION_FLAG("csv", 0, &csv, "print CSV with a line of column names"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&top_usage, specs, &argc, &argv, &err);

        if (!st && json && csv)
                st = error_set(&err, ST_USAGE, "--json and --csv exclude each other");
        if (!st)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st) {
                query_param_add(&params, "selector", selector);
                query_param_add(&params, "limit", limit);
                query_param_add(&params, "function", function);
                query_param_add(&params, "names", names);
                query_view_add(&params, &view);
                query_param_add(&params, "format", json ? "rows" : csv ? "csv" : "text");
                st = run_and_write_query(&o, "top", &params, output, &err);
        }
        return st ? command_fail("top", st, &err) : EXIT_DONE;
}

/* ---- cairn flame ---- */

static const struct usage flame_usage = {
        .synopsis =
                "cairn flame [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] [--format F] "
                "[--output FILE] [SELECTOR]",
        .about = "Write a flame graph. Unless --format is given, the suffix of FILE selects the format (.html,\n"
                 ".json, .pb.gz, .txt; any other: folded). The default on standard output is folded stacks.",
        .examples = "  cairn flame --output cpu.html '{service.name=\"api\"}'\n"
                    "  cairn flame | flamegraph.pl > cpu.svg\n"
                    "  cairn flame --format text --callees-of PyEval_EvalCode\n"
                    "  cairn flame --focus 'json' --hide '^runtime\\.' --by service.name --output cpu.html\n",
};

static const char *flame_format_of(const char *output)
{
        static const char *const endings[][2] = { { ".html", "html" },   { ".htm", "html" },    { ".json", "json" },
                                                  { ".pb.gz", "pprof" }, { ".pprof", "pprof" }, { ".txt", "text" } };

        for (size_t i = 0; output && i < sizeof endings / sizeof *endings; i++)
                if (ends_with(output, endings[i][0]))
                        return endings[i][1];
        return "folded";
}

static enum status write_flame(const struct query_options *o, const char *format, struct query_params *params,
                               const char *output, struct error *err)
{
        static const char *const formats[][2] = { { "folded", "folded" },   { "pprof", "pprof" },
                                                  { "autofdo", "autofdo" }, { "firefox", "firefox" },
                                                  { "html", "flame" },      { "json", "flame" },
                                                  { "text", "flame" } };

        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
                if (strcmp(formats[i][0], format) != 0)
                        continue;
                if (strcmp(formats[i][1], "flame") == 0)
                        query_param_add(params, "format", format);
                if (strcmp(format, "pprof") == 0 && (!output || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO))
                        return error_set(err, ST_USAGE, "pprof is binary: give --output FILE");
                return run_and_write_query(o, formats[i][1], params, output, err);
        }
        return error_set(err, ST_USAGE,
                         "format '%.40s' is not one of html, folded, json, pprof, autofdo, firefox, text",
                         format);
}

int command_flame(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { 0 };
        const char *format = NULL, *output = NULL, *callees = NULL, *callers = NULL, *max_nodes = NULL, *names = NULL,
                   *callees_matching = NULL, *callers_matching = NULL, *labels = NULL, *selector;
        struct query_view view = { 0 };
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o),
                OPTION_STRING("format", 0, "F", &format, "html, folded, json, pprof, autofdo, firefox or text"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                OPTION_STRING("callees-of", 0, "FUNCTION", &callees, "only callees of this function"),
                OPTION_STRING("callers-of", 0, "FUNCTION", &callers, "only callers of this function, inverted"),
                OPTION_STRING("callees-matching", 0, "REGEX", &callees_matching,
                              "only callees of all functions whose names match"),
                OPTION_STRING("callers-matching", 0, "REGEX", &callers_matching,
                              "only callers of all functions whose names match, inverted"),
                QUERY_FRAME_OPTIONS(&view),
                QUERY_GROUP_OPTIONS(&view),
                OPTION_STRING("sample-labels", 0, "all|none", &labels,
                              "pprof: write all labels of samples (default) or none"),
                OPTION_STRING("max-nodes", 0, "N", &max_nodes, "keep the N heaviest nodes (default 20000); 0: all"),
                OPTION_STRING("names", 0, "N", &names, "short or full (default: short in html, else full)"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&flame_usage, specs, &argc, &argv, &err);

        if (!st)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st) {
                query_param_add(&params, "selector", selector);
                query_param_add(&params, "callees_of", callees);
                query_param_add(&params, "callers_of", callers);
                query_param_add(&params, "callees_matching", callees_matching);
                query_param_add(&params, "callers_matching", callers_matching);
                query_param_add(&params, "labels", labels);
                query_view_add(&params, &view);
                query_param_add(&params, "max_nodes", max_nodes);
                query_param_add(&params, "names", names);
                st = write_flame(&o, format ? format : flame_format_of(output), &params, output, &err);
        }
        return st ? command_fail("flame", st, &err) : EXIT_DONE;
}

/* ---- cairn diff ---- */

static const struct usage diff_usage = {
        .synopsis = "cairn diff [--server URL | --data DIR | --profile FILE] [--base-from T] [--base-to T] [--base "
                    "SELECTOR] [--from T] "
                    "[--to T] [--type T] [--format F] [--output FILE] [SELECTOR]\n"
                    "       cairn diff [--format F] [--output FILE] BEFORE AFTER",
        .about = "Compare two selections: before (the base) and after. Parts of the base that are not given are\n"
                 "those of after. Functions are sorted by how much their flat cost changed. Two files written by\n"
                 "cairn record are compared without a service.",
        .examples = "  cairn diff --base-from now-2h --base-to now-1h '{service.name=\"api\"}'\n"
                    "  cairn diff --base '{version=\"1\"}' '{version=\"2\"}' --output diff.html\n"
                    "  cairn diff before.otlp after.otlp\n",
};

static const char *diff_format_of(const char *output)
{
        const char *dot = output ? strrchr(output, '.') : NULL;

        return !dot                        ? "text"
               : strcmp(dot, ".html") == 0 ? "html"
               : strcmp(dot, ".json") == 0 ? "json"
               : strcmp(dot, ".csv") == 0  ? "csv"
                                           : "text";
}

static enum status compare_files(const char *before, const char *after, const struct query_options *o,
                                 struct query_params *params, const char *output, struct error *err)
{
        _cleanup_buf_ struct buf answer;
        enum status st;

        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        query_param_add(params, "type", o->type);
        st = query_difference(before, after, params, &answer, err);
        return st ? st : write_query_answer(&answer, output, err);
}

int command_diff(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { 0 };
        const char *base = NULL, *from = NULL, *to = NULL, *limit = NULL, *format = NULL, *output = NULL, *names = NULL,
                   *function = NULL, *selector = NULL;
        struct query_view view = { 0 };
        bool json = false, relative = false;
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o),
                OPTION_STRING("base", 0, "SELECTOR", &base, "selector of the base"),
                OPTION_STRING("base-from", 0, "T", &from, "start of the base"),
                OPTION_STRING("base-to", 0, "T", &to, "end of the base"),
                OPTION_STRING("limit", 'n', "N", &limit, "maximum number of rows (default 30, all with --json)"),
                QUERY_FRAME_OPTIONS(&view),
                QUERY_GROUP_OPTIONS(&view),
                OPTION_FLAG("relative", 0, &relative, "scale the base to the total of after"),
                OPTION_STRING("format", 0, "F", &format,
                              "text, rows (JSON of the table), csv, json (flame graph) or html (default: by the suffix "
                              "of FILE, else text)"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                OPTION_STRING("function", 0, "REGEX", &function,
                              "in tables only functions whose full, short or linkage name matches as a whole"),
                OPTION_STRING("names", 0, "N", &names, "short or full (default: short in html, else full)"),
                OPTION_FLAG("json", 0, &json, "same as --format rows"),
                OPTION_END,
        };
        struct error err;
        bool files;
        enum status st = options_parse(&diff_usage, specs, &argc, &argv, &err);

        files = argc == 2;
        if (!st && !files)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st && !files && !base && !from && !to)
                st = error_set(&err, ST_USAGE,
                               "nothing to compare with: give --base, --base-from or --base-to, or two files");
        if (!st && files && (base || from || to || o.service.server || o.data || o.profile))
                st = error_set(&err, ST_USAGE,
                               "two files are compared as a whole: no --base, --server, --data or --profile");
        if (!st) {
                query_param_add(&params, "selector", selector);
                query_param_add(&params, "base_selector", base);
                query_param_add(&params, "base_from", from);
                query_param_add(&params, "base_to", to);
                query_param_add(&params, "limit", limit);
                query_param_add(&params, "function", function);
                query_param_add(&params, "names", names);
                query_view_add(&params, &view);
                query_param_add(&params, "relative", relative ? "1" : NULL);
                query_param_add(&params, "format", json ? "rows" : format ? format : diff_format_of(output));
                st = files ? compare_files(argv[0], argv[1], &o, &params, output, &err)
                           : run_and_write_query(&o, "diff", &params, output, &err);
        }
        return st ? command_fail("diff", st, &err) : EXIT_DONE;
}
