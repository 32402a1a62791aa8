/* SPDX-License-Identifier: Apache-2.0 */
/* cairn query, top, flame and diff: the commands on the query API. */
#include <assert.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/commands/run_query.h"
#include "common/limits.h"
#include "common/text.h"
#include "query/query_operations.h"

/* ---- cairn query ---- */

static const struct usage query_usage = {
        .synopsis = "cairn query [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] "
                    "[--types | --labels | --values LABEL | --series | --services | --spans | --missing | --lines | "
                    "--disassembly | "
                    "--sandwich REGEX | --trend REGEX | --changes] "
                    "[--json | --csv] [SELECTOR]",
        .about = "Print the merged call tree of the samples that SELECTOR matches. Other views: cost over time\n"
                 "(--series), by source line (--lines) or by instruction (--disassembly); the most expensive spans\n"
                 "and traces (--spans); callers and callees of functions (--sandwich), and their cost by the\n"
                 "hour, also when their samples are gone (--trend); since when functions cost more or less, and\n"
                 "the build that came then (--changes); services with cost, change and versions\n"
                 "(--services); profile types (--types), labels (--labels) and their\n"
                 "values (--values); objects without debuginfo (--missing).",
        .examples = "  cairn query '{process.executable.name=~\"post.*\"}'\n"
                    "  cairn query --series --step 1m '{service.name=\"api\"}'\n"
                    "  cairn query --series --by host.name --groups 5 --csv\n"
                    "  cairn query --services --from now-1d\n"
                    "  cairn query --trend parse --from now-90d --by service_version '{service.name=\"api\"}'\n"
                    "  cairn query --changes --from now-7d '{service.name=\"api\"}'\n"
                    "  cairn query --spans --limit 10 '{service.name=\"api\"}'\n"
                    "  cairn query '{trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"}'\n"
                    "  cairn query --lines --function 'parse.*'\n"
                    "  cairn query --disassembly --function parse_number\n"
                    "  cairn query --values process.executable.name\n"
                    "  cairn query --missing\n",
};

#define SELECTION_OPTIONS "server data profile token-file ca tenant from to explain output "
#define FRAME_OPTIONS "focus ignore hide show "

#define USED_OPTIONS_SIZE 512

/*
 * The options that an operation uses: `fixed`, that of its name, and those named as its parameters, except for the
 * parameter that the option of its name sets.
 */
static void list_used_options(const struct query_operation *operation, const char *fixed,
                              char ret[static USED_OPTIONS_SIZE])
{
        const char *from = operation->parameters, *own = operation->value_parameter;
        size_t n = (size_t)snprintf(ret, USED_OPTIONS_SIZE, "%s %s %s%s%s", fixed, operation->name,
                                    operation->formats & 1 << FORMAT_JSON ? "json " : "",
                                    operation->formats & 1 << FORMAT_CSV ? "csv " : "",
                                    query_operation_has_parameter(operation, "labels") ? "sample-labels " : "");

        for (size_t length; *from; from += length + strspn(from + length, " ")) {
                length = strcspn(from, " ");
                if (own && strlen(own) == length && memcmp(own, from, length) == 0)
                        continue;
                for (size_t i = 0; i <= length && n < USED_OPTIONS_SIZE - 1; i++)
                        ret[n++] = (char)(i == length ? ' ' : from[i] == '_' ? '-' : from[i]);
        }
        assert(n < USED_OPTIONS_SIZE - 1);
        ret[n] = '\0';
}

static void append_list_item(char *list, size_t size, const char *prefix, const char *name)
{
        size_t n = strlen(list);

        snprintf(list + n, size - n, "%s%s%s", n ? ", " : "", prefix, name);
}

/* Values of the options that choose an operation, by its place in the table. */
struct operation_options {
        bool flags[QUERY_OPERATIONS_MAX];
        const char *values[QUERY_OPERATIONS_MAX];
};

/* Append options, which end with OPTION_END. */
static void append_options(struct option_spec specs[static OPTION_SPECS_MAX], const struct option_spec *more)
{
        size_t n = 0;

        while (specs[n].kind != OPTION_KIND_END)
                n++;
        for (; more->kind != OPTION_KIND_END; more++) {
                assert(n < OPTION_SPECS_MAX - 1);
                specs[n++] = *more;
        }
}

static void append_operation_options(struct option_spec specs[static OPTION_SPECS_MAX], struct operation_options *o)
{
        for (size_t i = 0; i < query_operation_count; i++) {
                const struct query_operation *one = &query_operations[i];
                const struct option_spec flag[] = { OPTION_FLAG(one->name, 0, &o->flags[i], one->help), OPTION_END };
                const struct option_spec value[] = {
                        OPTION_STRING(one->name, 0, one->value_name, &o->values[i], one->help), OPTION_END
                };

                if (one->offer == QUERY_OPTION)
                        append_options(specs, one->value_name ? value : flag);
        }
}

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

/* The operation of the option that is given, else the call tree. */
static enum status choose_query_operation(const struct option_spec *specs, const bool *given,
                                          const struct query_operation **ret, struct error *err)
{
        const struct query_operation *chosen = query_operation_find("flame");
        char subject[40], used[USED_OPTIONS_SIZE], all[200] = "";
        size_t count = 0;
        enum status st;

        for (size_t i = 0; i < query_operation_count; i++) {
                if (query_operations[i].offer != QUERY_OPTION)
                        continue;
                append_list_item(all, sizeof all, "--", query_operations[i].name);
                if (!is_given(specs, given, query_operations[i].name))
                        continue;
                chosen = &query_operations[i];
                count++;
        }
        if (count > 1)
                return error_set(err, ST_USAGE, "%s exclude each other", all);
        list_used_options(chosen, SELECTION_OPTIONS, used);
        snprintf(subject, sizeof subject, "cairn query%s%s", count ? " --" : "", count ? chosen->name : "");
        st = options_check_given(specs, given, used, subject, err);
        if (!st)
                *ret = chosen;
        return st;
}

/* JSON or CSV by the suffix of the output file, unless an option says it. */
static enum status choose_table_format(const char *output, bool *json, bool *csv, struct error *err)
{
        if (!output || *json || *csv)
                return ST_OK;
        *json = ends_with(output, ".json");
        *csv = ends_with(output, ".csv");
        return check_output_suffix(output, ".json, .csv, .txt", err);
}

int command_query(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { .command = "query" };
        struct query_view view = { 0 };
        struct operation_options operations = { 0 };
        bool json = false, csv = false, all = false;
        const char *step = NULL, *limit = NULL, *function = NULL, *file = NULL, *selector, *output = NULL,
                   *build_id = NULL, *start = NULL, *end = NULL, *syntax = NULL, *min_change = NULL;
        const struct query_operation *operation = NULL;
        const struct option_spec more[] = {
                OPTION_STRING("step", 0, "DURATION", &step, "with --series and --services: interval, as 15s or 1m"),
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
                OPTION_STRING("min-change", 0, "PERCENT", &min_change, "with --changes: smallest one (default 5%)"),
                OPTION_FLAG("all", 0, &all, "with --changes: also those that went away, moved or are daily"),
                QUERY_FRAME_OPTIONS(&view),
                QUERY_GROUP_OPTIONS(&view),
                OPTION_STRING("limit", 'n', "N", &limit, "maximum number of rows"),
                OPTION_STRING("output", 'o', "FILE", &output,
                              "write to FILE, as JSON or CSV by its suffix (default: text on standard output)"),
                OPTION_FLAG("json", 0, &json, "print JSON"),
                OPTION_FLAG(
                        "csv", 0, &csv,
                        "print CSV; with --series, --services, --changes, --spans, --lines, --disassembly and lists"),
                OPTION_END,
        };
        struct option_spec specs[OPTION_SPECS_MAX] = { QUERY_OPTIONS(&o) };
        struct error err;
        bool given[OPTION_SPECS_MAX] = { false };
        enum status st;

        append_operation_options(specs, &operations);
        append_options(specs, more);
        st = options_parse_given(&query_usage, specs, &argc, &argv, given, &err);
        if (!st)
                st = choose_query_operation(specs, given, &operation, &err);
        if (!st)
                st = check_groups(&view, &err);
        if (!st && json && csv)
                st = error_set(&err, ST_USAGE, "--json and --csv exclude each other");
        if (!st)
                st = choose_table_format(output, &json, &csv, &err);
        if (!st)
                st = parse_query_selector(argc, argv, &selector, &err);
        if (!st) {
                query_param_add(&params, "selector", selector);
                if (operation->value_name)
                        query_param_add(&params, operation->value_parameter,
                                        operations.values[operation - query_operations]);
                query_param_add(&params, "step", step);
                query_param_add(&params, "limit", limit);
                query_param_add(&params, "function", function);
                query_param_add(&params, "file", file);
                query_param_add(&params, "build_id", build_id);
                query_param_add(&params, "start", start);
                query_param_add(&params, "end", end);
                query_param_add(&params, "syntax", syntax);
                query_param_add(&params, "min_change", min_change);
                query_param_add(&params, "all", all ? "1" : NULL);
                if (query_operation_has_parameter(operation, "server"))
                        query_param_add(&params, "server", o.service.server);
                if (query_operation_has_parameter(operation, "source") && !json && !csv)
                        query_param_add(&params, "source", "file"); /* searches upstreams too */
                query_view_add(&params, &view);
                query_param_add(&params, "format", json ? "json" : csv ? "csv" : "text");
                st = run_and_write_query(&o, operation->name, &params, output, &err);
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
                OPTION_STRING("output", 'o', "FILE", &output,
                              "write to FILE, as JSON or CSV by its suffix (default: text on standard output)"),
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
                st = choose_table_format(output, &json, &csv, &err);
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
                 ".json, .pb.gz, .txt); the default is folded stacks. Suffixes of other formats are refused.",
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

#define FORMAT_LIST_SIZE 120

/* Formats are those of the operation flame, and the operations that are a format themselves. */
static const char *list_flame_formats(char ret[static FORMAT_LIST_SIZE])
{
        *ret = '\0';
        for (enum query_format f = 0; f < FORMAT_COUNT; f++)
                if (query_operation_find("flame")->formats & 1u << f)
                        append_list_item(ret, FORMAT_LIST_SIZE, "", query_format_name(f));
        for (size_t i = 0; i < query_operation_count; i++)
                if (query_operations[i].offer == QUERY_FLAME_FORMAT)
                        append_list_item(ret, FORMAT_LIST_SIZE, "", query_operations[i].name);
        return ret;
}

static enum status find_flame_format(const char *name, const struct query_operation **ret, struct error *err)
{
        const struct query_operation *flame = query_operation_find("flame"), *found = query_operation_find(name);
        char all[FORMAT_LIST_SIZE];

        for (enum query_format f = 0; f < FORMAT_COUNT; f++)
                if (flame->formats & 1u << f && strcmp(query_format_name(f), name) == 0)
                        found = flame;
        if (!found || (found != flame && found->offer != QUERY_FLAME_FORMAT) || strcmp(name, flame->name) == 0)
                return error_set(err, ST_USAGE, "format '%.40s' is not one of %s", name, list_flame_formats(all));
        *ret = found;
        return ST_OK;
}

static enum status write_flame(const struct query_options *o, const struct query_operation *operation,
                               const char *format, struct query_params *params, const char *output, struct error *err)
{
        if (operation->formats)
                query_param_add(params, "format", format);
        if (strcmp(format, "pprof") == 0 && (!output || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO))
                return error_set(err, ST_USAGE, "pprof is binary: give --output FILE");
        return run_and_write_query(o, operation->name, params, output, err);
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
        char formats[FORMAT_LIST_SIZE];
        struct query_part part = { 0 };
        struct query_view view = { 0 };
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&o),
                OPTION_STRING("format", 0, "F", &format, list_flame_formats(formats)),
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
        const struct query_operation *chosen = NULL;
        char subject[40], used[USED_OPTIONS_SIZE];
        enum status st = options_parse_given(&flame_usage, specs, &argc, &argv, given, &err);

        if (!st && !format)
                st = check_output_suffix(output, ".html, .htm, .json, .pb.gz, .pprof, .txt", &err);
        if (!format)
                format = flame_format_of(output);
        if (!st)
                st = find_flame_format(format, &chosen, &err);
        if (!st) {
                snprintf(subject, sizeof subject, "cairn flame --format %s", format);
                list_used_options(chosen, SELECTION_OPTIONS "format", used);
                st = options_check_given(specs, given, used, subject, &err);
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
                st = write_flame(&o, chosen, format, &params, output, &err);
        }
        return st ? command_fail("flame", st, &err) : EXIT_DONE;
}

/* ---- cairn diff ---- */

static const struct usage diff_usage = {
        .synopsis = "cairn diff [--server URL | --data DIR | --profile FILE] [--base-from T] [--base-to T] [--base "
                    "SELECTOR] [--from T] [--to T] [--type T] [--lines | --disassembly] "
                    "[--format F | --json | --csv] [--output FILE] [SELECTOR]\n"
                    "       cairn diff [--lines] [--format F | --json | --csv] [--output FILE] BEFORE AFTER",
        .about = "Compare two selections: before (the base) and after. Parts of the base that are not given are\n"
                 "those of after. Functions are sorted by how much their flat cost changed; --lines compares the\n"
                 "source lines of a function or file, --disassembly the instructions of a function. Two files\n"
                 "written by cairn record are compared without a service.",
        .examples = "  cairn diff --base-from now-2h --base-to now-1h '{service.name=\"api\"}'\n"
                    "  cairn diff --base '{version=\"1\"}' '{version=\"2\"}' --output diff.html\n"
                    "  cairn diff --base-from now-2h --base-to now-1h --callees-of serve --output diff.html\n"
                    "  cairn diff --base-from now-2h --base-to now-1h --lines --function 'parse.*'\n"
                    "  cairn diff --base '{version=\"1\"}' --disassembly --function parse '{version=\"2\"}'\n"
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
                                      const char *operation, bool files, struct error *err)
{
        static const char *const ranges[] = { SELECTION_OPTIONS "base base-from base-to ", "explain output " };
        const char *view = "by groups names sort limit function", *scale = "compare";
        char subject[60], used[400];

        if (strcmp(operation, "lines") == 0)
                view = "lines function file limit";
        else if (strcmp(operation, "disassembly") == 0)
                view = "disassembly function file build-id base-build-id syntax", scale = "";
        else if (strcmp(format, "html") == 0 || strcmp(format, "json") == 0)
                view = "by groups names callees-of callers-of callees-matching callers-matching";
        snprintf(used, sizeof used, "%s" FRAME_OPTIONS "type match format json csv %s %s", ranges[files], scale, view);
        if (strcmp(operation, "diff") != 0)
                snprintf(subject, sizeof subject, "cairn diff --%.20s%s", operation, files ? " BEFORE AFTER" : "");
        else if (files)
                snprintf(subject, sizeof subject, "cairn diff BEFORE AFTER");
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
        params->explains = o->explains;
        query_param_add(params, "type", o->type);
        st = query_difference(operation, paths, params, &answer, err);
        return st ? st : write_query_answer(&answer, output, err);
}

int command_diff(int argc, char **argv)
{
        struct query_options o = { 0 };
        struct query_params params = { .command = "diff" };
        const char *base = NULL, *from = NULL, *to = NULL, *limit = NULL, *format = NULL, *output = NULL, *names = NULL,
                   *function = NULL, *file = NULL, *selector = NULL, *compare = NULL, *sort = NULL, *match = NULL,
                   *build_id = NULL, *base_build_id = NULL, *syntax = NULL, *operation = "diff";
        struct query_view view = { 0 };
        struct query_part part = { 0 };
        bool json = false, csv = false, lines = false, disassembly = false;
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
                OPTION_FLAG("disassembly", 0, &disassembly, "compare each instruction of --function"),
                OPTION_STRING("build-id", 0, "ID", &build_id, "with --disassembly: this object after"),
                OPTION_STRING("base-build-id", 0, "ID", &base_build_id, "with --disassembly: this object before"),
                OPTION_STRING("syntax", 0, "S", &syntax, "with --disassembly on x86: intel (default) or att"),
                OPTION_STRING("compare", 0, "C", &compare,
                              "shares of the total of each side (default), or values as they are"),
                OPTION_STRING("match", 0, "M", &match,
                              "functions of different builds by what they are (default: functions), or by their exact "
                              "names (exact)"),
                OPTION_STRING("sort", 0, "S", &sort, "in tables: by the change of flat (default) or cumulative"),
                OPTION_STRING("format", 0, "F", &format,
                              "text, rows (JSON of the table), csv, json (flame graph, lines or disassembly) or html "
                              "(default: by the suffix of FILE, else text)"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                OPTION_STRING("function", 0, "REGEX", &function,
                              "in tables only functions whose full, short or linkage name matches as a whole"),
                OPTION_STRING("file", 0, "REGEX", &file,
                              "with --lines and --disassembly: files with a match in their path"),
                OPTION_STRING("names", 0, "N", &names, "short or full (default: short in html, else full)"),
                OPTION_FLAG("json", 0, &json, "same as --format rows, with --lines and --disassembly json"),
                OPTION_FLAG("csv", 0, &csv, "same as --format csv"),
                OPTION_END,
        };
        struct error err;
        bool files, given[OPTION_SPECS_MAX] = { false };
        enum status st = options_parse_given(&diff_usage, specs, &argc, &argv, given, &err);

        files = argc == 2;
        if (!st && json + csv + (format != NULL) > 1)
                st = error_set(&err, ST_USAGE, "--json, --csv and --format exclude each other");
        if (!st && lines && disassembly)
                st = error_set(&err, ST_USAGE, "--lines and --disassembly exclude each other");
        if (lines || disassembly)
                operation = lines ? "lines" : "disassembly";
        if (!st && !format && !json && !csv)
                st = check_output_suffix(output, ".html, .json, .csv, .txt", &err);
        if (!format)
                format = json ? (lines || disassembly ? "json" : "rows") : csv ? "csv" : diff_format_of(output);
        if (!st)
                st = check_diff_options(specs, given, format, operation, files, &err);
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
                query_param_add(&params, "build_id", build_id);
                query_param_add(&params, "base_build_id", base_build_id);
                query_param_add(&params, "syntax", syntax);
                query_param_add(&params, "server", lines || disassembly ? o.service.server : NULL);
                query_param_add(&params, "source", lines && strcmp(format, "text") == 0 ? "file" : NULL);
                query_param_add(&params, "names", names);
                query_part_add(&params, &part);
                query_view_add(&params, &view);
                query_param_add(&params, "compare", compare);
                query_param_add(&params, "match", match);
                query_param_add(&params, "sort", sort);
                query_param_add(&params, "format", format);
                st = files ? compare_files(operation, argv, &o, &params, output, &err)
                           : run_and_write_query(&o, operation, &params, output, &err);
        }
        return st ? command_fail("diff", st, &err) : EXIT_DONE;
}
