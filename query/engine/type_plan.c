/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan is made before stacks are summed, from the types that the selection has: list_side_types() for all sides,
 * find_matching_types() for a requested one. Then the cases: a single type is summed as it is; several that are CPU
 * time or CPU samples are summed together (plan_conversion()); if there is one of these, it alone is summed; without
 * any, the first type is, but a request that matches several is refused. A type that only other series of the range
 * have selects nothing (find_type_in_range()).
 *
 * Go sends counts and CPU time of the same samples. find_unconverted_samples() therefore sums the types by series;
 * counts of a series with CPU time are omissions, as are counts without a period. type_plan_convert() applies the
 * result to each sum.
 *
 * In the file: kinds of types and conversion; the requested type; the plan; omissions in answers.
 */
#include "query/engine/type_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"

/* ---- kinds of types ---- */

bool is_cpu_time_type(const char *type)
{
        return profile_type_has_part(type, TYPE_SAMPLE_TYPE, "cpu") &&
               profile_type_get_time_unit(type, TYPE_SAMPLE_UNIT);
}

bool is_cpu_count_type(const char *type)
{
        return profile_type_has_part(type, TYPE_SAMPLE_UNIT, "count") &&
               profile_type_has_part(type, TYPE_PERIOD_TYPE, "cpu") &&
               profile_type_get_time_unit(type, TYPE_PERIOD_UNIT);
}

/* The factor that converts values of a type to CPU time in nanoseconds; false without a period. */
static bool get_time_factor(const char *type, int64_t period, int64_t *ret)
{
        int64_t factor = 1;

        if (is_cpu_time_type(type))
                factor = profile_type_get_time_unit(type, TYPE_SAMPLE_UNIT);
        else if (period <= 0 ||
                 __builtin_mul_overflow(period, profile_type_get_time_unit(type, TYPE_PERIOD_UNIT), &factor))
                return false;
        *ret = factor;
        return true;
}

bool type_plan_convert(const struct type_plan *p, const struct scan_group *g, const struct scan_series_set *with_time,
                       int64_t *value)
{
        int64_t factor, converted;

        if (!p->converts)
                return true;
        if (!get_time_factor(g->type, g->period, &factor))
                return false;
        if (p->by_series && !is_cpu_time_type(g->type) && scan_series_set_contains(with_time, g))
                return false;
        if (__builtin_mul_overflow(*value, factor, &converted))
                converted = *value < 0 ? INT64_MIN : INT64_MAX;
        *value = converted;
        return true;
}

/* ---- the requested type ---- */

static bool is_type_prefix(const char *id, const char *asked)
{
        size_t n;

        assert(id && asked);
        n = strlen(asked);
        return strncmp(id, asked, n) == 0 && (id[n] == ':' || id[n] == 0);
}

static bool matches_sample_type(const char *id, const char *asked)
{
        return profile_type_has_part(id, TYPE_SAMPLE_TYPE, asked);
}

static bool counts_samples(const char *type)
{
        return profile_type_has_part(type, TYPE_SAMPLE_UNIT, "count");
}

static bool is_any_type(const char *type)
{
        (void)type;
        return true;
}

/*
 * The first preferred type, else the first type. *is_preferred_ret: it is preferred, or the only one. A sender may give
 * CPU types any unit; those whose unit is not known come after those that are CPU time or samples.
 */
static const char *pick_type(const struct scan_names *types, bool *is_preferred_ret)
{
        static const struct {
                const char *prefix;
                bool (*is_known)(const char *type);
        } preferred[] = {
                { "process_cpu:cpu", is_cpu_time_type },
                { "process_cpu:samples", counts_samples },
                { "process_cpu:cpu", is_any_type },
                { "process_cpu:samples", is_any_type },
        };

        *is_preferred_ret = true;
        for (size_t p = 0; types->count > 1 && p < sizeof preferred / sizeof *preferred; p++)
                for (size_t i = 0; i < types->count; i++)
                        if (is_type_prefix(types->items[i], preferred[p].prefix) &&
                            preferred[p].is_known(types->items[i]))
                                return types->items[i];
        *is_preferred_ret = types->count == 1;
        return types->count ? types->items[0] : NULL;
}

static size_t select_types(const struct scan_names *types, const char *asked,
                           bool (*agrees)(const char *, const char *), const char **ret)
{
        size_t count = 0;

        for (size_t i = 0; i < types->count; i++)
                if (agrees(types->items[i], asked))
                        ret[count++] = types->items[i];
        return count;
}

static bool is_same_type(const char *id, const char *asked)
{
        return strcmp(id, asked) == 0;
}

bool is_matching_type(const char *id, const char *asked)
{
        return is_type_prefix(id, asked) || matches_sample_type(id, asked);
}

size_t find_matching_types(const struct scan_names *types, const char *asked, const char **ret)
{
        size_t count = select_types(types, asked, is_same_type, ret);

        if (!count)
                count = select_types(types, asked, is_type_prefix, ret);
        return count ? count : select_types(types, asked, matches_sample_type, ret);
}

enum status refuse_type(const struct scan_names *types, const char *asked, const char *what, struct error *err)
{
        char list[160] = "";
        size_t n = 0, i = 0;

        for (; i < types->count; i++) { /* whole ids only */
                size_t more = (i ? strlen(", ") : 0) + strlen(types->items[i]);

                if (n + more + strlen(" and 99999 more") >= sizeof list)
                        break;
                n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", types->items[i]);
        }
        if (i < types->count)
                snprintf(list + n, sizeof list - n, "%s%zu more", i ? " and " : "", types->count - i);
        return error_set(err, ST_USAGE, "type '%.40s' matches %s: %s", asked, what, list);
}

/* ---- plan ---- */

static enum status add_type_omission(struct type_plan *p, const char *type, enum omission_reason reason,
                                     uint64_t samples, struct error *err)
{
        for (size_t i = 0; i < p->omission_count; i++) {
                if (p->omissions[i].reason == reason && strcmp(p->omissions[i].type, type) == 0) {
                        p->omissions[i].samples += samples;
                        return ST_OK;
                }
        }
        if (!array_reserve(&p->omissions, &p->omissions_capacity, p->omission_count))
                return error_no_memory(err);
        p->omissions[p->omission_count++] = (struct type_omission){ type, reason, samples };
        return ST_OK;
}

static int compare_type_ids(const void *x, const void *y)
{
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The types of all sides, sorted: of the selected samples, or of all in the time ranges. @param items_ret owned. */
static enum status list_side_types(struct store_scan *scan, const struct query_selection *const *sides,
                                   size_t side_count, bool whole_range, const char ***items_ret, size_t *count_ret,
                                   struct error *err)
{
        _cleanup_free_ const char **items = NULL;
        size_t count = 0, capacity = 0, kept = 0;

        for (size_t i = 0; i < side_count; i++) {
                struct scan_filter filter = query_selection_make_filter(sides[i], NULL);
                struct scan_names types;
                enum status st;

                if (whole_range)
                        filter = (struct scan_filter){ .from_unix_ns = filter.from_unix_ns,
                                                       .to_unix_ns = filter.to_unix_ns };
                st = store_scan_list_types(scan, &filter, &types, err);
                if (st)
                        return st;
                if (!array_reserve_many(&items, &capacity, count, types.count + 1))
                        return error_no_memory(err);
                for (size_t k = 0; k < types.count; k++)
                        items[count++] = types.items[k];
        }
        assert(items); /* there is at least one side */
        qsort(items, count, sizeof *items, compare_type_ids);
        for (size_t i = 0; i < count; i++)
                if (!kept || strcmp(items[i], items[kept - 1]) != 0)
                        items[kept++] = items[i];
        *count_ret = kept;
        *items_ret = steal_ptr(items);
        return ST_OK;
}

/* Choose the types to sum when no type was requested; record all others as omissions. */
static enum status choose_summed_types(struct type_plan *p, const struct scan_names *types, struct error *err)
{
        size_t times = 0, counts = 0;
        bool is_preferred;
        enum status st = ST_OK;

        p->type = pick_type(types, &is_preferred);
        for (size_t i = 0; i < types->count; i++) {
                times += is_cpu_time_type(types->items[i]);
                counts += is_cpu_count_type(types->items[i]);
        }
        p->converts = p->type && (is_cpu_time_type(p->type) || is_cpu_count_type(p->type)) && times + counts > 1;
        for (size_t i = 0; !st && i < types->count; i++) {
                const char *type = types->items[i];

                if (p->converts ? is_cpu_time_type(type) || is_cpu_count_type(type) : type == p->type)
                        p->types[p->type_count++] = type;
                else
                        st = add_type_omission(p, type, OMITTED_OTHER_TYPE, 0, err);
        }
        return st;
}

/* Record the samples of one side that cannot or need not be converted; *counts_ret: set if counts remain to convert. */
static enum status find_unconverted_samples(struct store_scan *scan, const struct query_selection *side,
                                            struct type_plan *p, bool *counts_ret, struct error *err)
{
        const struct scan_filter filter = query_selection_make_filter(side, NULL);
        const struct scan_group_by by = {
                .types = p->types, .type_count = p->type_count, .series = true, .totals = true
        };
        struct scan_group_sums sums = { 0 };
        struct scan_series_set set = { 0 };
        enum status st = store_scan_sum_groups(scan, &filter, &by, &sums, err);

        if (!st)
                st = scan_series_set_build(&sums, is_cpu_time_type, &set, err);
        for (size_t i = 0; !st && i < sums.count; i++) {
                const struct scan_group *g = &sums.groups[sums.items[i].group];
                int64_t factor;

                if (is_cpu_time_type(g->type))
                        continue;
                if (scan_series_set_contains(&set, g)) {
                        p->by_series = true;
                        st = add_type_omission(p, g->type, OMITTED_DUPLICATE, sums.items[i].samples, err);
                } else if (get_time_factor(g->type, g->period, &factor)) {
                        *counts_ret = true;
                } else {
                        st = add_type_omission(p, g->type, OMITTED_NO_PERIOD, sums.items[i].samples, err);
                }
        }
        free(set.items);
        scan_group_sums_deinit(&sums);
        return st;
}

/* If no count needs conversion, only CPU time is summed. */
static enum status plan_conversion(struct store_scan *scan, const struct query_selection *const *sides,
                                   size_t side_count, struct type_plan *p, struct error *err)
{
        bool any_counts = false;
        size_t kept = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < side_count; i++)
                st = find_unconverted_samples(scan, sides[i], p, &any_counts, err);
        if (st || any_counts)
                return st;
        for (size_t i = 0; i < p->type_count; i++)
                if (is_cpu_time_type(p->types[i]))
                        p->types[kept++] = p->types[i];
        if (!kept) { /* only counts, all without a period: sum them unconverted */
                p->omission_count = 0;
                for (size_t i = 0; !st && i < p->type_count; i++)
                        if (strcmp(p->types[i], p->type) != 0)
                                st = add_type_omission(p, p->types[i], OMITTED_OTHER_TYPE, 0, err);
                p->types[0] = p->type;
                kept = 1;
        }
        p->by_series = false;
        p->type_count = kept;
        p->converts = kept > 1;
        p->type = p->types[0];
        return st;
}

/* Sum those that can be converted to CPU time, else the preferred type, and record the omission of the others. */
static enum status plan_sum_of_types(struct store_scan *scan, const struct query_selection *const *sides,
                                     size_t side_count, const struct scan_names *types, struct type_plan *p,
                                     struct error *err)
{
        enum status st = choose_summed_types(p, types, err);

        if (!st && p->converts)
                st = plan_conversion(scan, sides, side_count, p, err);
        if (p->converts)
                p->type = CPU_TIME_TYPE;
        return st;
}

enum status type_plan_omit_counts(struct type_plan *p, struct error *err)
{
        const char *kept = NULL;
        enum status st = ST_OK;

        if (!p->converts)
                return ST_OK;
        for (size_t i = 0; i < p->type_count; i++)
                if (!kept || (is_cpu_time_type(p->types[i]) && !is_cpu_time_type(kept)))
                        kept = p->types[i];
        for (size_t i = 0; !st && i < p->type_count; i++)
                if (p->types[i] != kept && !is_cpu_time_type(p->types[i]))
                        st = add_type_omission(p, p->types[i], OMITTED_OTHER_TYPE, 0, err);
        p->type = kept;
        p->converts = false;
        return st;
}

/* Find a requested type without selected samples, which other series of the time ranges may have. */
static enum status find_type_in_range(struct store_scan *scan, const struct query_selection *const *sides,
                                      size_t side_count, const char *asked, const char **ret, struct error *err)
{
        _cleanup_free_ const char **items = NULL, **matching = NULL;
        struct scan_names types, matches;
        bool is_preferred;
        enum status st = list_side_types(scan, sides, side_count, true, &items, &types.count, err);

        if (st)
                return st;
        types.items = items;
        matching = calloc(types.count + 1, sizeof *matching);
        if (!matching)
                return error_no_memory(err);
        matches.items = matching;
        matches.count = find_matching_types(&types, asked, matching);
        *ret = pick_type(&matches, &is_preferred);
        if (!matches.count && types.count)
                return refuse_type(&types, asked, "none of those in this range; there are", err);
        return matches.count && !is_preferred ? refuse_type(&matches, asked, "several", err) : ST_OK;
}

/* Plan for the types of the selection. @param types  of the selection; the plan borrows its texts. */
static enum status plan_request(struct store_scan *scan, const struct query_selection *const *sides, size_t side_count,
                                const char *asked, const struct scan_names *types, struct type_plan *p,
                                struct error *err)
{
        _cleanup_free_ const char **matching = calloc(types->count + 1, sizeof *matching);
        struct scan_names matches = { .items = matching };
        bool is_preferred;
        enum status st = ST_OK;

        if (!matching)
                return error_no_memory(err);
        matches.count = find_matching_types(types, asked, matching);
        p->type = pick_type(&matches, &is_preferred);
        if (matches.count > 1)
                return is_preferred ? plan_sum_of_types(scan, sides, side_count, &matches, p, err)
                                    : refuse_type(&matches, asked, "several", err);
        if (!matches.count)
                st = find_type_in_range(scan, sides, side_count, asked, &p->type, err);
        if (!st && p->type)
                p->types[p->type_count++] = p->type;
        return st;
}

enum status type_plan_make(struct store_scan *scan, const struct query_selection *const *sides, size_t side_count,
                           const char *asked, struct type_plan *ret, struct error *err)
{
        struct type_plan p = { 0 };
        _cleanup_free_ const char **items = NULL;
        struct scan_names types;
        enum status st = list_side_types(scan, sides, side_count, false, &items, &types.count, err);

        if (st)
                return st;
        types.items = items;
        p.types = calloc(types.count + 1, sizeof *p.types);
        if (!p.types)
                return error_no_memory(err);
        st = asked ? plan_request(scan, sides, side_count, asked, &types, &p, err)
                   : plan_sum_of_types(scan, sides, side_count, &types, &p, err);
        if (st)
                type_plan_deinit(&p);
        else
                *ret = p;
        return st;
}

enum status type_plan_make_for_request(struct store_scan *scan, const struct query_selection *const *sides,
                                       size_t side_count, const struct query_request *r, struct type_plan *ret,
                                       struct error *err)
{
        struct type_plan p = { .type = r->type, .type_count = 1 };

        if (!r->is_type_exact)
                return type_plan_make(scan, sides, side_count, r->type, ret, err);
        p.types = calloc(1, sizeof *p.types);
        if (!p.types)
                return error_no_memory(err);
        p.types[0] = r->type;
        *ret = p;
        return ST_OK;
}

void type_plan_deinit(struct type_plan *p)
{
        free(p->types);
        free(p->omissions);
        *p = (struct type_plan){ 0 };
}

void type_plan_copy_unit(const struct type_plan *p, char *ret, size_t size)
{
        size_t n = 0;
        const char *unit = p->type ? profile_type_part(p->type, TYPE_SAMPLE_UNIT, &n) : "";

        snprintf(ret, size, "%.*s", (int)n, unit);
}

/* ---- omissions ---- */

void type_plan_put_json(const struct type_plan *p, struct json_out *j)
{
        static const char *const reasons[] = { "other_type", "no_period", "has_cpu_time" };

        if (p->converts) {
                json_out_array(j, "converted_types");
                for (size_t i = 0; i < p->type_count; i++)
                        if (!is_cpu_time_type(p->types[i]))
                                json_out_str(j, NULL, p->types[i]);
                json_out_array_end(j);
        }
        if (!p->omission_count)
                return;
        json_out_array(j, "left_out_types");
        for (size_t i = 0; i < p->omission_count; i++) {
                json_out_object(j, NULL);
                json_out_str(j, "type", p->omissions[i].type);
                json_out_str(j, "reason", reasons[p->omissions[i].reason]);
                if (p->omissions[i].samples)
                        json_out_uint(j, "samples", p->omissions[i].samples);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

/* Samples whose CPU time is summed are not missing, so the note does not mention them. */
void type_plan_put_note(const struct type_plan *p, struct buf *ret)
{
        const char *separator = "not included: ";
        size_t others = 0;

        for (size_t i = 0; i < p->omission_count; i++) {
                const struct type_omission *o = &p->omissions[i];

                if (o->reason == OMITTED_DUPLICATE || (o->reason == OMITTED_OTHER_TYPE && ++others > 3))
                        continue;
                buf_append_str(ret, separator);
                separator = "; ";
                if (o->reason == OMITTED_NO_PERIOD)
                        buf_printf(ret, "%s without a period of type ", COUNTED(o->samples, "sample", "samples"));
                else
                        buf_append_str(ret, "samples of type ");
                utf8_append_escaped(ret, o->type);
        }
        if (others > 3)
                buf_printf(ret, "; samples of %s", COUNTED(others - 3, "more type", "more types"));
        if (others)
                buf_append_str(ret, "; choose one with type");
}
