/* SPDX-License-Identifier: Apache-2.0 */
/* cairn query, top, flame and diff: the commands on the query API. */
#include <string.h>

#include "cli/commands/command.h"
#include "cli/commands/run_query.h"
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
        .examples = "  cairn query '{process.executable.name=~\"post.*\"}'\n"
                    "  cairn query --series --step 1m '{service.name=\"api\"}'\n"
                    "  cairn query --series --by host.name --groups 5 --csv\n"
                    "  cairn query --spans --limit 10 '{service.name=\"api\"}'\n"
                    "  cairn query '{trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"}'\n"
                    "  cairn query --lines --function 'parse.*'\n"
                    "  cairn query --disassembly --function parse_number\n"
                    "  cairn query --values process.executable.name\n"
                    "  cairn query --missing\n",
};

#define SELECTION_OPTIONS "server data profile token-file ca tenant from to output "
#define FRAME_OPTIONS "focus ignore hide show "

/* Operations that an option chooses, and the options that each uses; the last without one. */
static const struct {
        const char *option; /* NULL: none */
        const char *operation, *used;
} query_operations[] = {
        { "types", "types", SELECTION_OPTIONS "types limit json csv" },
        { "labels", "labels", SELECTION_OPTIONS "labels limit json csv" },
        { "values", "values", SELECTION_OPTIONS "values type limit json csv" },
        { "series", "series", SELECTION_OPTIONS FRAME_OPTIONS "series type step by groups json csv" },
        { "spans", "spans", SELECTION_OPTIONS "spans type by limit json csv" },
        { "missing", "missing", SELECTION_OPTIONS "missing limit json csv" },
        { "lines", "lines", SELECTION_OPTIONS FRAME_OPTIONS "lines type function file limit json csv" },
        { "disassembly", "disassembly",
          SELECTION_OPTIONS FRAME_OPTIONS "disassembly type function file build-id start end syntax json csv" },
        { "sandwich", "sandwich", SELECTION_OPTIONS FRAME_OPTIONS "sandwich type limit json" },
        { NULL, "flame", SELECTION_OPTIONS FRAME_OPTIONS "type by groups json" },
};
#define QUERY_OPERATION_COUNT (sizeof query_operations / sizeof *query_operations)

static bool is_given(const struct option_spec *specs, const bool *given, const char *name)
{
        for (size_t i = 0; specs[i].kind != OPTION_KIND_END; i++)
                if (given[i] && strcmp(specs[i].name, name) == 0)
                        return true;
        return false;
}

static enum status check_groups(const struct query_view *view, struct error *err)
{
        return view->groups && !view->by ? error_set(err, ST_USAGE, "--groups needs --by") : ST_OK;
}

static enum status choose_query_operation(const struct option_spec *specs, const bool *given, const char **ret,
                                          struct error *err)
{
        char subject[40];
        size_t chosen = QUERY_OPERATION_COUNT - 1, count = 0;
        enum status st;

        for (size_t i = 0; i + 1 < QUERY_OPERATION_COUNT; i++) {
                if (!is_given(specs, given, query_operations[i].option))
                        continue;
                chosen = i;
                count++;
        }
        if (count > 1)
                return error_set(err, ST_USAGE,
                                 "--types, --labels, --values, --series, --spans, --missing, --lines, --disassembly "
                                 "and --sandwich exclude each other");
        snprintf(subject, sizeof subject, "cairn query%s%s", count ? " --" : "",
                 count ? query_operations[chosen].option : "");
        st = options_check_given(specs, given, query_operations[chosen].used, subject, err);
        if (!st)
                *ret = query_operations[chosen].operation;
        return st;
}

int command_query(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { .command = "query" };
        struct query_view view = { 0 };
        bool types = false, labels = false, series = false, spans = false, missing = false, lines = false, json = false,
             csv = false, disassembly = false;
        const char *values = NULL, *step = NULL, *limit = NULL, *sandwich = NULL, *function = NULL, *file = NULL,
                   *selector, *output = NULL, *operation = NULL, *build_id = NULL, *start = NULL, *end = NULL,
                   *syntax = NULL;
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
        bool given[OPTION_SPECS_MAX] = { false };
        enum status st = options_parse_given(&query_usage, specs, &argc, &argv, given, &err);

        if (!st)
                st = choose_query_operation(specs, given, &operation, &err);
        if (!st)
                st = check_groups(&view, &err);
        if (!st && json && csv)
                st = error_set(&err, ST_USAGE, "--json and --csv exclude each other");
        if (!st)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st) {
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
                    "  cairn top --from now-5m '{process.executable.name=\"python3\"}'\n"
                    "  cairn top --by service.name,version --focus 'runtime' --limit 5\n"
                    "  cairn top --json --limit 10 --type memory --data ./cairn-data\n",
};

int command_top(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { .command = "top" };
        struct query_view view = { 0 };
        const char *limit = NULL, *selector, *output = NULL, *names = NULL, *function = NULL, *sort = NULL;
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
                OPTION_STRING("sort", 0, "S", &sort, "by flat (default) or cumulative cost"),
                OPTION_FLAG("json", 0, &json, "print a JSON array of {function, file, line, flat, cumulative, ...}"),
                OPTION_FLAG("csv", 0, &csv, "print CSV with a line of column names"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&top_usage, specs, &argc, &argv, &err);

        if (!st && json && csv)
                st = error_set(&err, ST_USAGE, "--json and --csv exclude each other");
        if (!st)
                st = check_groups(&view, &err);
        if (!st)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st) {
                query_param_add(&params, "selector", selector);
                query_param_add(&params, "limit", limit);
                query_param_add(&params, "function", function);
                query_param_add(&params, "names", names);
                query_param_add(&params, "sort", sort);
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

#define FLAME_OPTIONS SELECTION_OPTIONS FRAME_OPTIONS "type format "
#define PART_OPTIONS "callees-of callers-of callees-matching callers-matching "
#define TREE_OPTIONS PART_OPTIONS "by groups "

static const struct flame_format {
        const char *name, *operation;
        const char *used; /* options */
} flame_formats[] = {
        { "folded", "folded", FLAME_OPTIONS TREE_OPTIONS "names" },
        { "pprof", "pprof", FLAME_OPTIONS "by sample-labels" },
        { "autofdo", "autofdo", FLAME_OPTIONS },
        { "firefox", "firefox", FLAME_OPTIONS TREE_OPTIONS "max-nodes" },
        { "html", "flame", FLAME_OPTIONS TREE_OPTIONS "max-nodes names" },
        { "json", "flame", FLAME_OPTIONS TREE_OPTIONS "max-nodes names" },
        { "text", "flame", FLAME_OPTIONS TREE_OPTIONS "max-nodes names" },
};

static enum status find_flame_format(const char *name, const struct flame_format **ret, struct error *err)
{
        for (size_t i = 0; i < sizeof flame_formats / sizeof *flame_formats; i++) {
                if (strcmp(flame_formats[i].name, name) == 0) {
                        *ret = &flame_formats[i];
                        return ST_OK;
                }
        }
        return error_set(err, ST_USAGE,
                         "format '%.40s' is not one of html, folded, json, pprof, autofdo, firefox, text", name);
}

static enum status write_flame(const struct query_options *o, const struct flame_format *format,
                               struct query_params *params, const char *output, struct error *err)
{
        if (strcmp(format->operation, "flame") == 0)
                query_param_add(params, "format", format->name);
        if (strcmp(format->name, "pprof") == 0 && (!output || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO))
                return error_set(err, ST_USAGE, "pprof is binary: give --output FILE");
        return run_and_write_query(o, format->operation, params, output, err);
}

/* The part of a flame graph below or above functions. */
struct query_part {
        const char *callees_of, *callers_of, *callees_matching, *callers_matching;
};

#define QUERY_PART_OPTIONS(p)                                                                                          \
        OPTION_STRING("callees-of", 0, "FUNCTION", &(p)->callees_of, "only callees of this function"),                 \
                OPTION_STRING("callers-of", 0, "FUNCTION", &(p)->callers_of,                                           \
                              "only callers of this function, inverted"),                                              \
                OPTION_STRING("callees-matching", 0, "REGEX", &(p)->callees_matching,                                  \
                              "only callees of all functions whose names match"),                                      \
                OPTION_STRING("callers-matching", 0, "REGEX", &(p)->callers_matching,                                  \
                              "only callers of all functions whose names match, inverted")

static void query_part_add(struct query_params *params, const struct query_part *p)
{
        query_param_add(params, "callees_of", p->callees_of);
        query_param_add(params, "callers_of", p->callers_of);
        query_param_add(params, "callees_matching", p->callees_matching);
        query_param_add(params, "callers_matching", p->callers_matching);
}

int command_flame(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { .command = "flame" };
        const char *format = NULL, *output = NULL, *max_nodes = NULL, *names = NULL, *labels = NULL, *selector;
        struct query_part part = { 0 };
        struct query_view view = { 0 };
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o),
                OPTION_STRING("format", 0, "F", &format, "html, folded, json, pprof, autofdo, firefox or text"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                QUERY_PART_OPTIONS(&part),
                QUERY_FRAME_OPTIONS(&view),
                QUERY_GROUP_OPTIONS(&view),
                OPTION_STRING("sample-labels", 0, "all|none", &labels,
                              "pprof: write all labels of samples (default) or none"),
                OPTION_STRING("max-nodes", 0, "N", &max_nodes, "keep the N heaviest nodes (default 20000); 0: all"),
                OPTION_STRING("names", 0, "N", &names, "short or full (default: short in html, else full)"),
                OPTION_END,
        };
        struct error err;
        bool given[OPTION_SPECS_MAX] = { false };
        const struct flame_format *chosen = NULL;
        char subject[40];
        enum status st = options_parse_given(&flame_usage, specs, &argc, &argv, given, &err);

        if (!st)
                st = find_flame_format(format ? format : flame_format_of(output), &chosen, &err);
        if (!st) {
                snprintf(subject, sizeof subject, "cairn flame --format %s", chosen->name);
                st = options_check_given(specs, given, chosen->used, subject, &err);
        }
        if (!st)
                st = check_groups(&view, &err);
        if (!st)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st) {
                query_param_add(&params, "selector", selector);
                query_part_add(&params, &part);
                query_param_add(&params, "labels", labels);
                query_view_add(&params, &view);
                query_param_add(&params, "max_nodes", max_nodes);
                query_param_add(&params, "names", names);
                st = write_flame(&o, chosen, &params, output, &err);
        }
        return st ? command_fail("flame", st, &err) : EXIT_DONE;
}

/* ---- cairn diff ---- */

static const struct usage diff_usage = {
        .synopsis = "cairn diff [--server URL | --data DIR | --profile FILE] [--base-from T] [--base-to T] [--base "
                    "SELECTOR] [--from T] "
                    "[--to T] [--type T] [--lines] [--format F | --json | --csv] [--output FILE] [SELECTOR]\n"
                    "       cairn diff [--lines] [--format F | --json | --csv] [--output FILE] BEFORE AFTER",
        .about = "Compare two selections: before (the base) and after. Parts of the base that are not given are\n"
                 "those of after. Functions are sorted by how much their flat cost changed; --lines compares the\n"
                 "source lines of a function or file. Two files written by cairn record are compared without a\n"
                 "service.",
        .examples = "  cairn diff --base-from now-2h --base-to now-1h '{service.name=\"api\"}'\n"
                    "  cairn diff --base '{version=\"1\"}' '{version=\"2\"}' --output diff.html\n"
                    "  cairn diff --base-from now-2h --base-to now-1h --callees-of serve --output diff.html\n"
                    "  cairn diff --base-from now-2h --base-to now-1h --lines --function 'parse.*'\n"
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

static enum status check_diff_options(const struct option_spec *specs, const bool *given, const char *format,
                                      bool lines, bool files, struct error *err)
{
        static const char *const ranges[] = { SELECTION_OPTIONS "base base-from base-to ", "output " };
        const char *view = "by groups names sort limit function";
        char subject[60], used[400];

        if (lines)
                view = "lines function file limit";
        else if (strcmp(format, "html") == 0 || strcmp(format, "json") == 0)
                view = "by groups names " PART_OPTIONS;
        snprintf(used, sizeof used, "%s" FRAME_OPTIONS "type compare format json csv %s", ranges[files], view);
        if (lines || files)
                snprintf(subject, sizeof subject, "cairn diff%s%s", lines ? " --lines" : "",
                         files ? " BEFORE AFTER" : "");
        else
                snprintf(subject, sizeof subject, "cairn diff --format %.20s", format);
        return options_check_given(specs, given, used, subject, err);
}

static enum status compare_files(const char *operation, char *const paths[2], const struct query_options *o,
                                 struct query_params *params, const char *output, struct error *err)
{
        _cleanup_buf_ struct buf answer;
        enum status st;

        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        query_param_add(params, "type", o->type);
        st = query_difference(operation, paths, params, &answer, err);
        return st ? st : write_query_answer(&answer, output, err);
}

int command_diff(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { .command = "diff" };
        const char *base = NULL, *from = NULL, *to = NULL, *limit = NULL, *format = NULL, *output = NULL, *names = NULL,
                   *function = NULL, *file = NULL, *selector = NULL, *compare = NULL, *sort = NULL;
        struct query_view view = { 0 };
        struct query_part part = { 0 };
        bool json = false, csv = false, lines = false;
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o),
                OPTION_STRING("base", 0, "SELECTOR", &base, "selector of the base"),
                OPTION_STRING("base-from", 0, "T", &from, "start of the base"),
                OPTION_STRING("base-to", 0, "T", &to, "end of the base"),
                OPTION_STRING("limit", 'n', "N", &limit,
                              "maximum number of rows (default 30, all with --json, --csv and --lines)"),
                QUERY_PART_OPTIONS(&part),
                QUERY_FRAME_OPTIONS(&view),
                QUERY_GROUP_OPTIONS(&view),
                OPTION_FLAG("lines", 0, &lines, "compare each source line of --function or --file"),
                OPTION_STRING("compare", 0, "C", &compare,
                              "shares of the total of each side (default), or values as they are"),
                OPTION_STRING("sort", 0, "S", &sort, "in tables: by the change of flat (default) or cumulative"),
                OPTION_STRING("format", 0, "F", &format,
                              "text, rows (JSON of the table), csv, json (flame graph, or lines) or html (default: by "
                              "the suffix of FILE, else text)"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                OPTION_STRING("function", 0, "REGEX", &function,
                              "in tables only functions whose full, short or linkage name matches as a whole"),
                OPTION_STRING("file", 0, "REGEX", &file, "with --lines: files with a match in their path"),
                OPTION_STRING("names", 0, "N", &names, "short or full (default: short in html, else full)"),
                OPTION_FLAG("json", 0, &json, "same as --format rows, with --lines json"),
                OPTION_FLAG("csv", 0, &csv, "same as --format csv"),
                OPTION_END,
        };
        struct error err;
        bool files, given[OPTION_SPECS_MAX] = { false };
        enum status st = options_parse_given(&diff_usage, specs, &argc, &argv, given, &err);

        files = argc == 2;
        if (!st && json + csv + (format != NULL) > 1)
                st = error_set(&err, ST_USAGE, "--json, --csv and --format exclude each other");
        if (!format)
                format = json ? (lines ? "json" : "rows") : csv ? "csv" : diff_format_of(output);
        if (!st)
                st = check_diff_options(specs, given, format, lines, files, &err);
        if (!st)
                st = check_groups(&view, &err);
        if (!st && !files)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st && !files && !base && !from && !to)
                st = error_set(&err, ST_USAGE,
                               "nothing to compare with: give --base, --base-from or --base-to, or two files");
        if (!st) {
                query_param_add(&params, "selector", selector);
                query_param_add(&params, "base_selector", base);
                query_param_add(&params, "base_from", from);
                query_param_add(&params, "base_to", to);
                query_param_add(&params, "limit", limit);
                query_param_add(&params, "function", function);
                query_param_add(&params, "file", file);
                query_param_add(&params, "server", lines ? o.service.server : NULL);
                query_param_add(&params, "source", lines && strcmp(format, "text") == 0 ? "file" : NULL);
                query_param_add(&params, "names", names);
                query_part_add(&params, &part);
                query_view_add(&params, &view);
                query_param_add(&params, "compare", compare);
                query_param_add(&params, "sort", sort);
                query_param_add(&params, "format", format);
                st = files ? compare_files(lines ? "lines" : "diff", argv, &o, &params, output, &err)
                           : run_and_write_query(&o, lines ? "lines" : "diff", &params, output, &err);
        }
        return st ? command_fail("diff", st, &err) : EXIT_DONE;
}
