/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cairn gate: whether a service or a benchmark became slower, for CI. The statistics are those of the operation gate
 * (query/operations/gate.c); here are the sides, given as selectors or as files, further queries for callers and lines
 * of the functions that fail, and the exit status.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/commands/gate_report.h"
#include "cli/commands/run_query.h"
#include "common/limits.h"
#include "common/text.h"
#include "query/engine/unit_text.h"

#define EXIT_NO_COMPARISON 2
#define EXIT_TOO_LITTLE_DATA 3

static const struct usage gate_usage = {
        .synopsis = "cairn gate [--server URL | --data DIR | --profile FILE] [--base SELECTOR] [--head SELECTOR] "
                    "[--base-from T] [--base-to T] [--from T] [--to T] [--fail-if RULE]... [OPTION]...\n"
                    "       cairn gate --base FILE... --head FILE... [--fail-if RULE]... [OPTION]...",
        .about = "Compare two selections of samples, or the profiles of several runs, before (base) and after (head),\n"
                 "and fail if the cost rose. A change counts if it is greater than the threshold of a rule and more\n"
                 "than chance: hosts, parts of 10 minutes or runs are compared, not samples. One file on a side is\n"
                 "compared with the thresholds only. Exit status: 0 no regression, 1 regression, 2 the comparison\n"
                 "failed, 3 not enough data to see a change as small as asked for.",
        .examples =
                "  cairn gate --base '{version=\"1.4\"}' --head '{version=\"1.5\"}' --from now-1d\n"
                "  cairn gate --base-from now-2d --base-to now-1d --head '{service.name=\"api\"}' --format markdown\n"
                "  cairn gate --base main-*.pb.gz --head branch-*.pb.gz --fail-if 'total>3%'\n",
};

/* The values of --base or --head. */
struct gate_values {
        char **items; /* owned; borrowed texts of argv */
        size_t count;
};

struct gate_sources {
        struct query_options options;
        struct gate_values sides[2];
        const char *base_from, *base_to;
        bool has_files;
        struct file_sides files;
        struct query_view view;
        const char *compare, *match;
};

/* ---- the sides ---- */

/* Whether argv[i] is the option, and where its first value is. */
static bool is_side_option(int argc, char **argv, int i, const char *name, char **value_ret)
{
        size_t n = strlen(name);

        *value_ret = NULL;
        if (strncmp(argv[i], name, n) != 0)
                return false;
        if (argv[i][n] == '=')
                *value_ret = argv[i] + n + 1;
        return argv[i][n] == '=' || (argv[i][n] == '\0' && i + 1 < argc);
}

static enum status add_gate_value(struct gate_values *v, size_t room, char *value, struct error *err)
{
        if (!v->items)
                v->items = calloc(room, sizeof *v->items);
        if (!v->items)
                return error_no_memory(err);
        v->items[v->count++] = value;
        return ST_OK;
}

/* Take --base and --head with all values that follow, up to the next option, out of argv. */
static enum status take_gate_sides(int *argc, char **argv, struct gate_values sides[2], struct error *err)
{
        static const char *const names[2] = { "--base", "--head" };
        int kept = 1;
        enum status st = ST_OK;

        for (int i = 1; !st && i < *argc; i++) {
                char *value = NULL;
                int side = is_side_option(*argc, argv, i, names[0], &value)   ? 0
                           : is_side_option(*argc, argv, i, names[1], &value) ? 1
                                                                              : -1;

                if (side < 0) {
                        argv[kept++] = argv[i];
                        continue;
                }
                if (value)
                        st = add_gate_value(&sides[side], (size_t)*argc, value, err);
                for (; !value && !st && i + 1 < *argc && *argv[i + 1] != '-'; i++)
                        st = add_gate_value(&sides[side], (size_t)*argc, argv[i + 1], err);
        }
        argv[kept] = NULL;
        *argc = kept;
        return st;
}

static size_t count_gate_files(const struct gate_values *v)
{
        size_t count = 0;

        for (size_t i = 0; i < v->count; i++)
                count += access(v->items[i], F_OK) == 0;
        return count;
}

static enum status open_gate_sides(struct gate_sources *s, struct error *err)
{
        const struct gate_values *base = &s->sides[0], *head = &s->sides[1];
        size_t files = count_gate_files(base) + count_gate_files(head);

        if (files && files == base->count + head->count && base->count && head->count) {
                s->has_files = true;
                return file_sides_read(base->items, base->count, head->items, head->count, &s->files, err);
        }
        if (base->count > 1 || head->count > 1 || files)
                return error_set(err, ST_USAGE,
                                 "--base and --head are either one selector each, or files that exist, on both sides");
        if (!base->count && !s->base_from && !s->base_to)
                return error_set(err, ST_USAGE, "nothing to compare with: give --base, --base-from or --base-to");
        return ST_OK;
}

/* ---- queries ---- */

static enum status ask_gate_query(struct gate_sources *s, const char *operation, struct query_params *p,
                                  struct buf *ret, struct error *err)
{
        p->command = "gate";
        p->explains = s->options.explains;
        query_param_add(p, "compare", s->compare);
        query_param_add(p, "match", s->match);
        query_view_add(p, &s->view);
        if (s->has_files) {
                query_param_add(p, "selector", FILE_SELECTOR_AFTER);
                query_param_add(p, "base_selector", FILE_SELECTOR_BEFORE);
                query_param_add(p, "type", s->options.type);
                return query_profiles(s->files.items, s->files.count, operation, p, ret, err);
        }
        query_param_add(p, "selector", s->sides[1].count ? s->sides[1].items[0] : NULL);
        query_param_add(p, "base_selector", s->sides[0].count ? s->sides[0].items[0] : NULL);
        query_param_add(p, "base_from", s->base_from);
        query_param_add(p, "base_to", s->base_to);
        return run_query(&s->options, operation, p, ret, err);
}

/* ---- callers and lines of the functions that fail ---- */

static int64_t get_flat_change(const struct json_node *row)
{
        return json_node_int(row, "flat_after") - json_node_int(row, "flat");
}

/* The line whose cost rose most. */
static enum status find_detail_line(struct gate_sources *s, const char *function, struct gate_detail *d,
                                    struct error *err)
{
        struct query_params p = { .hides_notes = true };
        _cleanup_buf_ struct buf answer;
        _cleanup_arena_ struct arena arena;
        const struct json_node *root, *row;
        int64_t most = 0;
        enum status st;

        arena_init(&arena, 0);
        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        query_param_add(&p, "function_name", function);
        query_param_add(&p, "source", "none");
        query_param_add(&p, "limit", "20");
        st = ask_gate_query(s, "lines", &p, &answer, err);
        if (st)
                return st;
        root = json_node_parse(answer.data, answer.size, &arena);
        for (struct json_node_list l = json_node_list(root, "rows"); (row = json_node_next(&l));) {
                if (!*json_node_text(row, "file") || get_flat_change(row) <= most)
                        continue;
                most = get_flat_change(row);
                free(d->file);
                d->file = strdup(json_node_text(row, "file"));
                d->line = json_node_uint(row, "line");
        }
        return ST_OK;
}

struct caller_change {
        int64_t frame, change;
};

static int compare_caller_changes(const void *x, const void *y)
{
        const struct caller_change *a = x, *b = y;

        return a->change > b->change ? -1 : a->change < b->change;
}

/* The item at an index of an array. */
static const struct json_node *get_list_item(struct json_node_list list, int64_t index)
{
        const struct json_node *item = json_node_next(&list);

        while (item && index-- > 0)
                item = json_node_next(&list);
        return item;
}

#define DETAIL_NODES 200 /* of the graph of callers */

/* Children of the function, which is below the root in the inverted graph. */
static size_t list_caller_changes(const struct json_node *root, struct caller_change *ret)
{
        const struct json_node *node;
        uint64_t number = 0, functions[DETAIL_NODES];
        size_t function_count = 0, count = 0;

        for (struct json_node_list l = json_node_list(root, "nodes");
             (node = json_node_next(&l)) && count < DETAIL_NODES; number++) {
                int64_t parent = json_node_item_int(node, 0);

                if (parent == 0 && number && function_count < DETAIL_NODES)
                        functions[function_count++] = number;
                for (size_t i = 0; parent > 0 && i < function_count; i++)
                        if (functions[i] == (uint64_t)parent)
                                ret[count++] = (struct caller_change){ json_node_item_int(node, 1),
                                                                       json_node_item_int(node, 6) -
                                                                               json_node_item_int(node, 3) };
        }
        qsort(ret, count, sizeof *ret, compare_caller_changes);
        return count;
}

static enum status find_detail_callers(struct gate_sources *s, const char *function, struct gate_detail *d,
                                       struct error *err)
{
        struct caller_change callers[DETAIL_NODES + 1];
        struct query_params p = { .hides_notes = true };
        _cleanup_buf_ struct buf answer;
        _cleanup_arena_ struct arena arena;
        const struct json_node *root;
        char cost[40], text[300];
        size_t count;
        enum status st;

        arena_init(&arena, 0);
        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        query_param_add(&p, "callers_of", function);
        query_param_add(&p, "max_nodes", "200");
        query_param_add(&p, "format", "json");
        st = ask_gate_query(s, "diff", &p, &answer, err);
        if (st)
                return st;
        root = json_node_parse(answer.data, answer.size, &arena);
        count = list_caller_changes(root, callers);
        for (size_t i = 0; i < count && callers[i].change > 0 && d->caller_count < 3; i++) {
                const struct json_node *frame = get_list_item(json_node_list(root, "frames"), callers[i].frame);
                struct json_node_list names = json_node_items(frame);

                snprintf(text, sizeof text, "%.200s (+%s)", json_node_string(json_node_next(&names)),
                         format_value(callers[i].change, json_node_text(root, "unit"), cost, sizeof cost));
                d->callers[d->caller_count] = strdup(text);
                d->caller_count += d->callers[d->caller_count] != NULL;
        }
        return ST_OK;
}

static enum status add_gate_detail(struct gate_sources *s, const struct json_node *row, struct gate_report *r,
                                   struct error *err)
{
        struct gate_detail *d = &r->details[r->detail_count++];
        enum status st;

        d->row = row;
        st = find_detail_line(s, json_node_text(row, "function"), d, err);
        return st ? st : find_detail_callers(s, json_node_text(row, "function"), d, err);
}

static enum status find_gate_details(struct gate_sources *s, struct gate_report *r, struct error *err)
{
        const struct json_node *row;
        enum status st = ST_OK;

        for (struct json_node_list l = json_node_list(r->answer, "rows");
             !st && r->detail_count < GATE_DETAILS_MAX && (row = json_node_next(&l));) {
                if (!json_node_flag(row, "is_failure"))
                        break; /* failures come first */
                st = add_gate_detail(s, row, r, err);
        }
        return st;
}

/*
 * When the total fails and no function does, as when all of them rose and their shares are as before, find the
 * functions whose cost rose most: the answer by cost has them first.
 */
static enum status find_risen_functions(struct gate_sources *s, struct query_params *p, struct buf *answer,
                                        struct arena *arena, struct gate_report *r, struct error *err)
{
        struct gate_sources by_cost = *s;
        const struct json_node *row;
        enum status st;

        by_cost.compare = "values";
        st = ask_gate_query(&by_cost, "gate", p, answer, err);
        if (st)
                return st;
        r->are_details_risen = true;
        for (struct json_node_list l = json_node_list(json_node_parse(answer->data, answer->size, arena), "rows");
             !st && r->detail_count < GATE_RISEN_MAX && (row = json_node_next(&l));)
                if (!(json_node_double(row, "change_percent") <= 0)) /* also null, of a new one */
                        st = add_gate_detail(s, row, r, err);
        return st;
}

static void gate_report_deinit(struct gate_report *r)
{
        for (size_t i = 0; i < r->detail_count; i++) {
                free(r->details[i].file);
                for (size_t k = 0; k < r->details[i].caller_count; k++)
                        free(r->details[i].callers[k]);
        }
}

/* ---- the link ---- */

static void put_link_text(struct buf *to, const char *name, const char *text)
{
        if (!text)
                return;
        buf_printf(to, "&%s=", name);
        http_client_escape(to, text);
}

static void put_link_time(struct buf *to, const char *name, int64_t ms)
{
        const time_t seconds = ms / 1000;
        struct tm tm;
        char text[40];

        gmtime_r(&seconds, &tm);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        put_link_text(to, name, text);
}

/* The link to the comparison in the web UI of the service. */
static void put_gate_link(const struct gate_sources *s, const struct json_node *answer, struct buf *to)
{
        const char *server = s->options.service.server ? s->options.service.server : DEFAULT_SERVER;
        const char *head = s->sides[1].count ? s->sides[1].items[0] : NULL;
        size_t n = strlen(server);

        while (n && server[n - 1] == '/')
                n--;
        buf_append(to, server, n);
        buf_append_str(to, "/#view=diff&shown=table");
        put_link_text(to, "selector", head);
        put_link_text(to, "base_selector", s->sides[0].count ? s->sides[0].items[0] : head);
        put_link_time(to, "from", json_node_int(answer, "from_ms"));
        put_link_time(to, "to", json_node_int(answer, "to_ms") + 999);
        put_link_time(to, "base_from", json_node_int(answer, "base_from_ms"));
        put_link_time(to, "base_to", json_node_int(answer, "base_to_ms") + 999);
        put_link_text(to, "tenant", s->options.service.tenant);
        put_link_text(to, "type", s->options.type);
        put_link_text(to, "focus", s->view.focus);
        put_link_text(to, "ignore", s->view.ignore);
        put_link_text(to, "hide", s->view.hide);
        put_link_text(to, "show", s->view.show);
}

/* ---- the command ---- */

/* Rules of the operation are separated by commas. It has its own ones if the text is empty. */
static enum status join_gate_rules(const struct option_list *rules, struct buf *to, struct error *err)
{
        for (size_t i = 0; i < rules->count; i++) {
                if (!rules->items[i][0])
                        return error_set(err, ST_USAGE,
                                         "--fail-if '' is no rule: it is like total>5%%, function>2%% or NAME>5%%");
                buf_printf(to, "%s%s", i ? "," : "", rules->items[i]);
        }
        return rules->count && !buf_cstr(to) ? buf_status(to, err, "rules") : ST_OK;
}

static enum status run_gate(struct gate_sources *s, struct query_params *p, gate_report_format *put_report,
                            const char *output, enum gate_verdict *ret, struct error *err)
{
        _cleanup_buf_ struct buf answer, by_cost, text, link;
        _cleanup_arena_ struct arena arena;
        _cleanup_(gate_report_deinit) struct gate_report r = { 0 };
        struct query_params again = *p;
        enum status st;

        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        buf_init(&by_cost, LIMIT_RESPONSE_BYTES);
        buf_init(&text, LIMIT_RESPONSE_BYTES);
        buf_init(&link, LIMIT_HTTP_HEADER_BYTES);
        arena_init(&arena, 0);
        again.hides_notes = true;
        st = ask_gate_query(s, "gate", p, &answer, err);
        if (st)
                return st;
        r.answer = json_node_parse(answer.data, answer.size, &arena);
        r.answer_text = (const char *)answer.data;
        r.answer_size = answer.size;
        if (!r.answer)
                return error_set(err, ST_BAD_DATA, "the answer of the service is not JSON");
        *ret = gate_report_get_verdict(&r);
        st = find_gate_details(s, &r, err);
        if (!st && *ret == GATE_FAILED && !r.detail_count)
                st = find_risen_functions(s, &again, &by_cost, &arena, &r, err);
        if (st)
                return st;
        if (!s->has_files && !s->options.data && !s->options.profile) {
                put_gate_link(s, r.answer, &link);
                r.link = buf_cstr(&link) ? (const char *)link.data : NULL;
        }
        put_report(&r, &text);
        st = buf_status(&text, err, "report");
        return st ? st : write_query_answer(&text, output, err);
}

static const char *gate_format_of(const char *output)
{
        return !output                       ? "text"
               : ends_with(output, ".md")    ? "markdown"
               : ends_with(output, ".xml")   ? "junit"
               : ends_with(output, ".sarif") ? "sarif"
               : ends_with(output, ".json")  ? "json"
                                             : "text";
}

int command_gate(int argc, char **argv)
{
        static const int codes[] = {
                [GATE_PASSED] = EXIT_DONE, [GATE_FAILED] = EXIT_FAILED, [GATE_UNKNOWN] = EXIT_TOO_LITTLE_DATA
        };
        struct gate_sources s = { 0 };
        struct query_params params = { 0 };
        struct option_list rules = { 0 };
        const char *format = NULL, *output = NULL, *cluster = NULL, *part = NULL, *base = NULL, *head = NULL;
        bool json = false;
        const struct option_spec specs[] = {
                QUERY_OPTIONS(&s.options),
                OPTION_STRING("base", 0, "SELECTOR|FILE...", &base, "the side before"),
                OPTION_STRING("head", 0, "SELECTOR|FILE...", &head, "the side after (default: all samples)"),
                OPTION_STRING("base-from", 0, "T", &s.base_from, "start of the base"),
                OPTION_STRING("base-to", 0, "T", &s.base_to, "end of the base"),
                OPTION_LIST("fail-if", 0, "RULE", &rules,
                            "total>N%, function>N% or NAME>N%; several are allowed (default total>5% and function>2%)"),
                OPTION_STRING("cluster", 0, "LABEL", &cluster,
                              "label whose values are independent of each other (default host_name)"),
                OPTION_STRING(
                        "part", 0, "DURATION", &part,
                        "with few values of that label: parts of their time (default 10m, the minimum); none: never"),
                OPTION_STRING("compare", 0, "C", &s.compare,
                              "functions by shares of the total (default), or by values"),
                OPTION_STRING("match", 0, "M", &s.match, "as of cairn diff: functions (default) or exact"),
                QUERY_FRAME_OPTIONS(&s.view),
                OPTION_STRING("format", 0, "F", &format,
                              "text, markdown, junit, sarif or json (default: by the suffix of FILE, else text)"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to FILE (default: standard output)"),
                OPTION_FLAG("json", 0, &json, "same as --format json"),
                OPTION_END,
        };
        _cleanup_buf_ struct buf rule_text;
        gate_report_format *put_report = NULL;
        enum gate_verdict verdict = GATE_PASSED;
        struct error err;
        enum status st = take_gate_sides(&argc, argv, s.sides, &err);
        int code;

        buf_init(&rule_text, LIMIT_HTTP_HEADER_BYTES);
        if (!st)
                st = options_parse(&gate_usage, specs, &argc, &argv, &err);
        if (!st && argc)
                st = error_set(&err, ST_USAGE, "unexpected argument '%.80s': selections are --base and --head",
                               argv[0]);
        if (!st && !format && !json)
                st = check_output_suffix(output, ".md, .xml, .sarif, .json, .txt", &err);
        format = format ? format : json ? "json" : gate_format_of(output);
        if (!st)
                st = gate_report_find_format(format, &put_report, &err);
        if (!st)
                st = join_gate_rules(&rules, &rule_text, &err);
        if (!st)
                st = open_gate_sides(&s, &err);
        if (!st) {
                query_param_add(&params, "fail_if", rules.count ? (const char *)rule_text.data : NULL);
                query_param_add(&params, "cluster", s.has_files ? FILE_RUN_LABEL : cluster);
                query_param_add(&params, "part", s.has_files ? "none" : part);
                st = run_gate(&s, &params, put_report, output, &verdict, &err);
        }
        options_list_deinit(&rules);
        file_sides_deinit(&s.files);
        free(s.sides[0].items);
        free(s.sides[1].items);
        code = st ? command_fail("gate", st, &err) : codes[verdict];
        return st && code == EXIT_FAILED ? EXIT_NO_COMPARISON : code; /* 1 means a regression */
}
