/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "changes": since when which functions cost more or less, by service, and what came at that time.
 *
 * The rows of the history of functions (profile-store/history_scan.h) are collected, sorted by service and function,
 * and judged one service at a time (service_changes.h). Texts are numbers meanwhile.
 *
 * In the file: texts; rows; states; answers; the entry point.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/hash/hash_table.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/csv.h"
#include "common/text/number_text.h"
#include "profile-store/history_scan.h"
#include "query/engine/history_type.h"
#include "query/engine/query_call.h"
#include "query/engine/unit_text.h"
#include "query/operations/service_changes.h"
#include "symbol-index/comparison_name.h"

#define NS_PER_HOUR INT64_C(3600000000000)
#define DEFAULT_MIN_CHANGE 0.05
#define LIMIT_CHANGE_HOURS (24 * 366)

struct changes {
        struct query_call *q;
        int64_t first_ns; /* start of the first hour */
        size_t hours;
        double min_change;
        bool shows_all; /* also changes that are none */
        struct arena arena;
        const char **texts; /* of functions: NAME, 0, FILE. Owned */
        size_t text_count, text_capacity;
        struct hash_table numbers;
        struct buf scratch;
        struct hour_cost *costs; /* owned */
        size_t cost_count, cost_capacity;
        struct service_changes found;
        uint64_t counts[CHANGE_STATES];
        struct history_sources sources;
        struct history_type type;
        char unit[32];
        struct memory_reservation memory;
};

static void changes_deinit(struct changes *c)
{
        hash_table_deinit(&c->numbers);
        arena_deinit(&c->arena);
        buf_deinit(&c->scratch);
        free(c->texts);
        free(c->costs);
        service_changes_deinit(&c->found);
        history_type_deinit(&c->type);
        memory_release(&c->memory);
}

/* ---- texts ---- */

static bool is_same_change_text(const void *context, uint32_t number, const void *key, size_t size)
{
        const char *have = ((const struct changes *)context)->texts[number];
        size_t n;

        memcpy(&n, have - sizeof n, sizeof n);
        return n == size && memcmp(have, key, size) == 0;
}

/* The number of a text, which may contain zeros. */
static enum status number_change_text(struct changes *c, const char *data, size_t size, uint32_t *ret,
                                      struct error *err)
{
        const uint32_t hash = hash_table_hash(data, size);
        char *copy;
        enum status st;

        if (hash_table_find(&c->numbers, hash, is_same_change_text, c, data, size, ret))
                return ST_OK;
        st = hash_table_reserve(&c->numbers, err);
        if (!st)
                st = array_charge_growth(&c->memory, c->text_capacity, c->text_count, sizeof *c->texts, err);
        if (st)
                return st;
        copy = arena_alloc(&c->arena, sizeof size + size + 1);
        if (!copy)
                return arena_error(&c->arena, err, "the names of functions");
        if (!array_reserve(&c->texts, &c->text_capacity, c->text_count))
                return error_no_memory(err);
        memcpy(copy, &size, sizeof size);
        memcpy(copy + sizeof size, data, size);
        copy[sizeof size + size] = '\0';
        *ret = (uint32_t)c->text_count;
        c->texts[c->text_count++] = copy + sizeof size;
        hash_table_insert(&c->numbers, hash, *ret);
        return ST_OK;
}

static enum status number_change_label(struct changes *c, const char *text, uint32_t *ret, struct error *err)
{
        *ret = NO_CHANGE_TEXT;
        return *text ? number_change_text(c, text, strlen(text), ret, err) : ST_OK;
}

static enum status number_change_function(struct changes *c, const struct history_row *row, uint32_t *ret,
                                          struct error *err)
{
        *ret = NO_CHANGE_TEXT;
        if (!*row->function)
                return ST_OK;
        buf_clear(&c->scratch);
        buf_append(&c->scratch, row->function, strlen(row->function) + 1);
        buf_append(&c->scratch, row->file, strlen(row->file) + 1);
        if (buf_status(&c->scratch, err, "the name of a function"))
                return ST_TOO_BIG;
        return number_change_text(c, (const char *)c->scratch.data, c->scratch.size, ret, err);
}

/*
 * The normal form of a function's name, and the file without directories: a build may rename the one by a clone, a hash
 * or a split, and lie in another directory. It begins with 1, so that it is equal to no other text.
 */
static enum status number_comparison_name(struct changes *c, const char *function, struct buf *normal, uint32_t *ret)
{
        const char *file = function + strlen(function) + 1;
        const char *name = symbol_comparison_name(function, file, COMPARISON_NUMBERED, normal);

        buf_clear(&c->scratch);
        buf_append_u8(&c->scratch, 1);
        buf_append(&c->scratch, name, strlen(name) + 1);
        buf_append_str(&c->scratch, path_base(file));
        if (buf_status(&c->scratch, c->q->err, "the name of a function"))
                return ST_TOO_BIG;
        return number_change_text(c, (const char *)c->scratch.data, c->scratch.size, ret, c->q->err);
}

/* The functions that costs have, by number: what they are in comparisons, and when they were seen last. */
struct change_function {
        uint32_t comparison; /* number of its normal form; 0: not of a function */
        uint32_t last_hour;
};

/* Replace functions that are the same in different builds by the one that was seen last. */
static enum status unite_changed_functions(struct changes *c)
{
        const size_t count = c->text_count;
        _cleanup_free_ struct change_function *functions = NULL;
        _cleanup_free_ uint32_t *latest = NULL; /* by normal form, of which there are at most as many as texts */
        _cleanup_buf_ struct buf normal;
        enum status st = memory_reserve(&c->memory, (count + 1) * (sizeof *functions + 2 * sizeof *latest), c->q->err);

        buf_init(&normal, KiB(256));
        if (!st) {
                functions = calloc(count + 1, sizeof *functions);
                st = functions ? ST_OK : error_no_memory(c->q->err);
        }
        for (size_t i = 0; !st && i < c->cost_count; i++) {
                const struct hour_cost *cost = &c->costs[i];
                struct change_function *f;

                if (cost->function == NO_CHANGE_TEXT)
                        continue;
                f = &functions[cost->function];
                st = work_meter_add(c->q->meter, 1, c->q->err);
                if (!st && !f->comparison)
                        st = number_comparison_name(c, c->texts[cost->function], &normal, &f->comparison);
                if (f->last_hour < cost->hour)
                        f->last_hour = cost->hour;
        }
        if (!st) {
                latest = malloc((c->text_count + 1) * sizeof *latest);
                st = latest ? ST_OK : error_no_memory(c->q->err);
        }
        if (st)
                return st;
        memset(latest, 0xff, c->text_count * sizeof *latest); /* NO_CHANGE_TEXT */
        for (uint32_t i = 0; i < count; i++) {
                uint32_t *of = &latest[functions[i].comparison];

                if (functions[i].comparison &&
                    (*of == NO_CHANGE_TEXT || functions[*of].last_hour < functions[i].last_hour))
                        *of = i;
        }
        for (size_t i = 0; i < c->cost_count; i++)
                if (c->costs[i].function != NO_CHANGE_TEXT)
                        c->costs[i].function = latest[functions[c->costs[i].function].comparison];
        return ST_OK;
}

/* ---- rows ---- */

static enum status add_hour_cost(void *context, const struct history_row *as_stored, struct error *err)
{
        struct changes *c = context;
        struct history_row converted = *as_stored, *row = &converted;
        int64_t hour = (row->hour_us * 1000 - c->first_ns) / NS_PER_HOUR;
        struct hour_cost cost;
        enum status st = work_meter_add(c->q->meter, 16, err);

        if (st || hour < 0 || hour >= (int64_t)c->hours || !history_type_convert(&c->type, row))
                return st;
        cost = (struct hour_cost){ .self = row->self, .total = row->total, .self_samples = row->self_samples };
        if (!*c->unit)
                snprintf(c->unit, sizeof c->unit, "%s", row->unit);
        cost.hour = (uint32_t)hour;
        st = number_change_text(c, row->service, strlen(row->service), &cost.service, err);
        if (!st)
                st = number_change_function(c, row, &cost.function, err);
        if (!st)
                st = number_change_label(c, row->build_id, &cost.build, err);
        if (!st)
                st = number_change_label(c, row->version, &cost.version, err);
        if (!st)
                st = array_charge_growth(&c->memory, c->cost_capacity, c->cost_count, sizeof cost, err);
        if (!st && !array_reserve(&c->costs, &c->cost_capacity, c->cost_count))
                st = error_no_memory(err);
        if (!st)
                c->costs[c->cost_count++] = cost;
        return st;
}

static int compare_hour_costs(const void *x, const void *y, void *context)
{
        const struct hour_cost *a = x, *b = y;

        (void)context;
        if (a->service != b->service)
                return a->service < b->service ? -1 : 1;
        if (a->function != b->function)
                return a->function < b->function ? -1 : 1;
        return a->hour < b->hour ? -1 : a->hour > b->hour;
}

/* The state first, then the greatest cost. */
static int compare_found_changes(const void *x, const void *y, void *context)
{
        const struct service_change *a = x, *b = y;

        (void)context;
        if (a->state != b->state)
                return a->state < b->state ? -1 : 1;
        if (fabs(a->cost) != fabs(b->cost))
                return fabs(a->cost) > fabs(b->cost) ? -1 : 1;
        if (a->function != b->function)
                return a->function < b->function ? -1 : 1;
        return a->hour < b->hour ? -1 : a->hour > b->hour;
}

static enum status judge_services(struct changes *c)
{
        struct query_call *q = c->q;
        enum status st =
                work_meter_sort(q->meter, c->costs, c->cost_count, sizeof *c->costs, compare_hour_costs, NULL, q->err);

        for (size_t begin = 0, end; !st && begin < c->cost_count; begin = end) {
                struct service_changes_request request = {
                        .costs = c->costs + begin, .hours = c->hours, .min_change = c->min_change, .meter = q->meter
                };

                for (end = begin; end < c->cost_count && c->costs[end].service == c->costs[begin].service;)
                        end++;
                request.count = end - begin;
                st = service_changes_add(&c->found, &request, q->err);
        }
        for (size_t i = 0; !st && i < c->found.count; i++)
                c->counts[c->found.items[i].state]++;
        return st ? st
                  : work_meter_sort(q->meter, c->found.items, c->found.count, sizeof *c->found.items,
                                    compare_found_changes, NULL, q->err);
}

/* ---- states ---- */

static const char *get_state_name(enum change_state state)
{
        static const char *const names[] = { [CHANGE_REGRESSION] = "regression", [CHANGE_IMPROVEMENT] = "improvement",
                                             [CHANGE_WENT_AWAY] = "went_away",   [CHANGE_MOVED] = "moved",
                                             [CHANGE_DILUTED] = "diluted",       [CHANGE_DAILY] = "daily" };

        return names[state];
}

static const char *get_cause_name(enum change_cause cause)
{
        static const char *const names[] = { [CAUSE_NONE] = NULL,
                                             [CAUSE_BUILD] = "build",
                                             [CAUSE_VERSION] = "version",
                                             [CAUSE_OTHER_BUILD] = "other_build" };

        return names[cause];
}

/* ---- answers ---- */

static size_t count_shown_changes(const struct changes *c)
{
        const uint64_t limit = query_call_text_limit(c->q);
        uint64_t n = c->counts[CHANGE_REGRESSION] + c->counts[CHANGE_IMPROVEMENT];

        n = c->shows_all ? c->found.count : n;
        return (size_t)(n < limit ? n : limit);
}

static const char *get_change_text(const struct changes *c, uint32_t number)
{
        return number == NO_CHANGE_TEXT ? NULL : c->texts[number];
}

static const char *get_change_file(const struct changes *c, const struct service_change *one)
{
        const char *function = c->texts[one->function];

        return function + strlen(function) + 1;
}

static int64_t get_change_time_ns(const struct changes *c, uint32_t hour)
{
        return c->first_ns + hour * NS_PER_HOUR;
}

/* INFINITY: the function is new. */
static double compute_change_percent(const struct service_change *one)
{
        return one->before > 0 ? one->difference / one->before * 100 : INFINITY;
}

static void put_change_cause_text(const struct changes *c, const struct service_change *one, struct buf *ret)
{
        const char *from = get_change_text(c, one->builds[0]), *to = get_change_text(c, one->builds[1]),
                   *version[2] = { get_change_text(c, one->versions[0]), get_change_text(c, one->versions[1]) };

        if (version[1])
                buf_printf(ret, ", version %s%s%s", version[0] ? version[0] : "", version[0] ? " -> " : "", version[1]);
        if (one->cause == CAUSE_BUILD)
                buf_printf(ret, ", build %.12s%s%.12s", from ? from : "", from ? " -> " : "", to);
        else if (to)
                buf_printf(ret, ", with the build %.12s of another object", to);
        if (one->cause == CAUSE_NONE)
                buf_append_str(ret, ", no new build");
}

static void put_changes_text(const struct changes *c, struct buf *ret)
{
        if (c->cost_count && !count_shown_changes(c))
                buf_printf(ret, "no changes found in %s over %s\n", COUNTED(c->found.services, "service", "services"),
                           COUNTED((uint64_t)c->hours, "hour", "hours"));
        for (size_t i = 0; i < count_shown_changes(c) && !work_meter_add(c->q->meter, 16, NULL); i++) {
                const struct service_change *one = &c->found.items[i];
                char time[32];

                buf_printf(ret, "%s  %-11s  %s  %s  %.2f%% -> %.2f%%",
                           format_time_utc(get_change_time_ns(c, one->hour), time, sizeof time),
                           get_state_name(one->state), *c->texts[one->service] ? c->texts[one->service] : "-",
                           c->texts[one->function], one->before * 100, one->after * 100);
                if (one->before > 0)
                        buf_printf(ret, " (%+.1f%%)", compute_change_percent(one));
                put_change_cause_text(c, one, ret);
                if (one->state == CHANGE_WENT_AWAY)
                        buf_printf(ret, one->returned_at > one->hour ? ", went away %s" : ", as before %s",
                                   format_time_utc(get_change_time_ns(c, one->returned_at), time, sizeof time));
                if (one->moved_to != NO_CHANGE_TEXT)
                        buf_printf(ret, one->difference > 0 ? ", moved from %s" : ", moved to %s",
                                   c->texts[one->moved_to]);
                buf_append_str(ret, "\n");
        }
}

static void put_csv_field(const struct changes *c, uint32_t number, char end, struct buf *ret)
{
        csv_put_text(ret, number == NO_CHANGE_TEXT ? "" : c->texts[number], end);
}

static void put_changes_csv(const struct changes *c, struct buf *ret)
{
        buf_append_str(ret, "time_ms,state,service_name,function,file,before,after,total_before,total_after,difference,"
                            "p,cause,build_before,build_after,version_before,version_after\r\n");
        for (size_t i = 0; i < count_shown_changes(c) && !work_meter_add(c->q->meter, 16, NULL); i++) {
                const struct service_change *one = &c->found.items[i];

                buf_printf(ret, "%" PRId64 ",%s,", get_change_time_ns(c, one->hour) / 1000000,
                           get_state_name(one->state));
                put_csv_field(c, one->service, ',', ret);
                put_csv_field(c, one->function, ',', ret);
                csv_put_text(ret, get_change_file(c, one), ',');
                buf_printf(ret, "%.6g,%.6g,%.6g,%.6g,%.6g,%.3g,%s,", one->before, one->after, one->total_before,
                           one->total_after, one->difference, one->p,
                           get_cause_name(one->cause) ? get_cause_name(one->cause) : "");
                put_csv_field(c, one->builds[0], ',', ret);
                put_csv_field(c, one->builds[1], ',', ret);
                put_csv_field(c, one->versions[0], ',', ret);
                put_csv_field(c, one->versions[1], '\r', ret);
                buf_append_str(ret, "\n");
        }
}

static void put_change_number(struct json_out *j, const char *key, double value)
{
        if (isfinite(value))
                json_out_double(j, key, value);
        else
                json_out_str(j, key, NULL);
}

static void put_change_row(const struct changes *c, const struct service_change *one, struct json_out *j)
{
        json_out_object(j, NULL);
        json_out_int(j, "time_ms", get_change_time_ns(c, one->hour) / 1000000);
        json_out_str(j, "state", get_state_name(one->state));
        json_out_str(j, "service_name", c->texts[one->service]);
        json_out_str(j, "function", c->texts[one->function]);
        json_out_str(j, "file", get_change_file(c, one));
        put_change_number(j, "percent_before", one->before * 100);
        put_change_number(j, "percent_after", one->after * 100);
        put_change_number(j, "total_percent_before", one->total_before * 100);
        put_change_number(j, "total_percent_after", one->total_after * 100);
        put_change_number(j, "change_percent", compute_change_percent(one));
        put_change_number(j, "cost_per_hour", one->cost);
        put_change_number(j, "p", one->p < 1 ? one->p : 1);
        json_out_str(j, "cause", get_cause_name(one->cause));
        json_out_str(j, "build_before", get_change_text(c, one->builds[0]));
        json_out_str(j, "build_after", get_change_text(c, one->builds[1]));
        json_out_str(j, "version_before", get_change_text(c, one->versions[0]));
        json_out_str(j, "version_after", get_change_text(c, one->versions[1]));
        if (one->state == CHANGE_WENT_AWAY)
                json_out_int(j, "returned_ms", get_change_time_ns(c, one->returned_at) / 1000000);
        if (one->moved_to != NO_CHANGE_TEXT)
                json_out_str(j, "moved", c->texts[one->moved_to]);
        json_out_object_end(j);
}

static void put_changes_json(const struct changes *c, struct buf *ret)
{
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", c->type.id);
        json_out_str(&j, "unit", c->unit);
        json_out_int(&j, "from_ms", c->first_ns / 1000000);
        json_out_int(&j, "to_ms", (c->first_ns + (int64_t)c->hours * NS_PER_HOUR) / 1000000);
        json_out_uint(&j, "history_hours", c->sources.history_hours);
        json_out_uint(&j, "sample_hours", c->sources.sample_hours);
        type_plan_put_json(&c->type.plan, &j);
        json_out_uint(&j, "services", c->found.services);
        json_out_uint(&j, "tested", c->found.tested);
        json_out_object(&j, "counts");
        for (int state = 0; state < CHANGE_STATES; state++)
                json_out_uint(&j, get_state_name(state), c->counts[state]);
        json_out_object_end(&j);
        json_out_array(&j, "rows");
        for (size_t i = 0; i < count_shown_changes(c) && !work_meter_add(c->q->meter, 16, NULL); i++)
                put_change_row(c, &c->found.items[i], &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
}

/* ---- the entry point ---- */

static enum status parse_min_change(struct changes *c)
{
        const char *text = query_param_get(&c->q->params, "", "min_change");
        char *end;

        c->min_change = DEFAULT_MIN_CHANGE;
        if (!text)
                return ST_OK;
        c->min_change = strtod(text, &end) / 100;
        if (end == text || (*end && strcmp(end, "%") != 0) || !(c->min_change >= 0 && c->min_change <= 100))
                return error_set(c->q->err, ST_USAGE, "min_change '%.40s' is not a percentage such as 5%%", text);
        return ST_OK;
}

/* Of a longer range the last LIMIT_CHANGE_HOURS are searched. */
static void set_change_hours(struct changes *c)
{
        struct query_selection *s = &c->q->r.selection;
        int64_t rest;

        if ((s->to_unix_ns - s->from_unix_ns) / NS_PER_HOUR >= LIMIT_CHANGE_HOURS)
                s->from_unix_ns = s->to_unix_ns - (LIMIT_CHANGE_HOURS - 1) * NS_PER_HOUR;
        rest = s->from_unix_ns % NS_PER_HOUR;
        c->first_ns = s->from_unix_ns - (rest < 0 ? rest + NS_PER_HOUR : rest);
        c->hours = (size_t)((s->to_unix_ns - c->first_ns - 1) / NS_PER_HOUR + 1);
}

static enum status load_changes(struct changes *c)
{
        struct query_call *q = c->q;
        struct scan_filter filter;
        enum status st = parse_min_change(c);

        if (!st)
                st = query_param_get_flag(&q->params, "all", &c->shows_all, q->err);
        set_change_hours(c);
        if (!st)
                st = history_choose_type(q, &c->type);
        if (st || !*c->type.id)
                return st;
        filter = history_type_make_filter(&c->type, &q->r.selection);
        st = history_visit_selection(q->scan, &filter, add_hour_cost, c, &c->sources, q->err);
        if (!st)
                st = unite_changed_functions(c);
        return st ? st : judge_services(c);
}

enum status query_answer_changes(struct query_call *q)
{
        _cleanup_(changes_deinit) struct changes c = { .q = q,
                                                       .memory.use = MEMORY_QUERIES,
                                                       .found.memory.use = MEMORY_QUERIES };
        enum status st;

        arena_init_budget(&c.arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        buf_init(&c.scratch, KiB(256));
        st = load_changes(&c);
        if (st)
                return st;
        if (c.cost_count && c.hours < 2 * CHANGE_MIN_HOURS)
                buf_printf(&q->note, "%schanges are found in ranges of at least %d hours", q->note.size ? "; " : "",
                           2 * CHANGE_MIN_HOURS);
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT)
                put_changes_text(&c, q->ret);
        else if (q->r.format == FORMAT_CSV)
                put_changes_csv(&c, q->ret);
        else
                put_changes_json(&c, q->ret);
        return buf_status(q->ret, q->err, "changes");
}
