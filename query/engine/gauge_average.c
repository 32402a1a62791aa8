/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/gauge_average.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/search.h"
#include "common/text.h"
#include "profile-store/rows/identity.h"

/* Snapshots that are compared to find labels of samples; more of them find labels that few snapshots have. */
#define COMPARED_SNAPSHOTS 2000

/* Whether a label describes a process or what it runs on, by the conventions of OpenTelemetry and Prometheus. */
static bool is_process_label(const char *name)
{
        static const char *const names[] = { "instance", "job",     "pod",    "node", "namespace", "cluster",
                                             "region",   "version", "target", "env",  "pid" };
        static const char *const prefixes[] = { "service_", "host",   "process_",   "container",
                                                "k8s_",     "cloud_", "deployment_" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
                if (starts_with(name, prefixes[i]))
                        return true;
        return false;
}

/* ---- labels of samples ---- */

static const char *find_group_label(const struct scan_group *g, const char *name)
{
        for (uint32_t i = 0; i < g->label_count; i++)
                if (strcmp(g->labels[i].name, name) == 0)
                        return g->labels[i].value;
        return "";
}

/* The labels of some samples of a snapshot. */
struct snapshot_part {
        uint32_t time; /* item of the sums */
        uint64_t process;
        const struct scan_group *group;
};

static int compare_parts(const void *x, const void *y)
{
        const struct snapshot_part *a = x, *b = y;

        if (a->time != b->time)
                return a->time < b->time ? -1 : 1;
        return a->process < b->process ? -1 : a->process > b->process;
}

/* Compare each part with the next one of its snapshot. @param differ  by label. */
static enum status compare_parts_of_snapshots(const struct scan_group_sums *sums, const struct gauge_snapshots *g,
                                              const struct scan_names *names, bool *differ, struct error *err)
{
        struct snapshot_part *parts = calloc(sums->count + 1, sizeof *parts);

        if (!parts)
                return error_no_memory(err);
        for (size_t i = 0; i < sums->count; i++) {
                const struct scan_group *group = &sums->groups[sums->items[i].group];

                parts[i] = (struct snapshot_part){ sums->items[i].item, gauge_snapshots_find_series(g, group), group };
        }
        qsort(parts, sums->count, sizeof *parts, compare_parts);
        for (size_t i = 1; i < sums->count; i++)
                for (size_t k = 0; k < names->count && compare_parts(&parts[i - 1], &parts[i]) == 0; k++)
                        if (!differ[k])
                                differ[k] = strcmp(find_group_label(parts[i - 1].group, names->items[k]),
                                                   find_group_label(parts[i].group, names->items[k])) != 0;
        free(parts);
        return ST_OK;
}

/* Find the labels that differ between samples of a snapshot. @param g  identified by the labels of processes. */
static enum status find_differing_labels(struct store_scan *scan, const struct scan_filter *filter,
                                         const struct gauge_snapshots *g, const struct scan_names *names, bool *differ,
                                         struct error *err)
{
        const size_t nth = g->count / COMPARED_SNAPSHOTS + 1;
        const struct scan_group_by by = { .types = &g->type,
                                          .type_count = 1,
                                          .all_labels = true,
                                          .times = true,
                                          .nth_time = nth < UINT32_MAX ? (uint32_t)nth : UINT32_MAX };
        struct scan_group_sums sums = { 0 };
        enum status st = store_scan_sum_groups(scan, filter, &by, &sums, err);

        if (!st)
                st = compare_parts_of_snapshots(&sums, g, names, differ, err);
        scan_group_sums_deinit(&sums);
        return st;
}

/* ---- snapshots ---- */

static int compare_snapshots(const void *x, const void *y)
{
        const struct gauge_snapshot *a = x, *b = y;

        if (a->series != b->series)
                return a->series < b->series ? -1 : 1;
        return a->time_us < b->time_us ? -1 : a->time_us > b->time_us;
}

uint64_t gauge_snapshots_find_series(const struct gauge_snapshots *g, const struct scan_group *group)
{
        uint64_t series = 0;

        for (size_t i = 0; i < g->label_count; i++) {
                const char *value = find_group_label(group, g->labels[i]);

                series = (series ^ hash_bytes64(value, strlen(value))) * UINT64_C(0x9e3779b97f4a7c15) + i;
        }
        return series;
}

/* Count by the labels of g; replaces its items. */
static enum status list_snapshots(struct store_scan *scan, const struct scan_filter *filter, struct gauge_snapshots *g,
                                  struct error *err)
{
        const struct scan_group_by by = {
                .types = &g->type, .type_count = 1, .labels = g->labels, .label_count = g->label_count, .times = true
        };
        struct scan_group_sums sums = { 0 };
        enum status st = store_scan_sum_groups(scan, filter, &by, &sums, err);
        size_t kept = 0;

        if (!st)
                st = memory_resize(&g->memory, sums.count * sizeof *g->items, err);
        free(g->items);
        g->count = 0;
        g->items = st ? NULL : calloc(sums.count + 1, sizeof *g->items);
        if (!st && !g->items)
                st = error_no_memory(err);
        for (size_t i = 0; !st && i < sums.count; i++)
                g->items[i] =
                        (struct gauge_snapshot){ gauge_snapshots_find_series(g, &sums.groups[sums.items[i].group]),
                                                 scan_group_sums_get_time(&sums, sums.items[i].item) };
        if (!st && sums.count)
                qsort(g->items, sums.count, sizeof *g->items, compare_snapshots);
        for (size_t i = 0; !st && i < sums.count; i++) /* groups may differ in the period */
                if (!kept || compare_snapshots(&g->items[i], &g->items[kept - 1]) != 0)
                        g->items[kept++] = g->items[i];
        if (!st)
                g->count = kept;
        scan_group_sums_deinit(&sums);
        return st;
}

static size_t list_labels(const struct scan_names *names, const bool *differ, const char **ret)
{
        size_t count = 0;

        for (size_t i = 0; i < names->count; i++)
                if (is_process_label(names->items[i]) || (differ && !differ[i]))
                        ret[count++] = names->items[i];
        return count;
}

/* The matchers of labels that describe processes; the others may select a part of a snapshot. */
static size_t copy_process_matchers(const struct selector *s, struct label_matcher *ret,
                                    char (*keys)[LIMIT_LABEL_BYTES])
{
        size_t count = 0;

        for (size_t i = 0; i < s->count; i++) {
                if (strlen(s->matchers[i].key) >= sizeof *keys)
                        continue;
                normalize_label_key(s->matchers[i].key, *keys);
                if (is_process_label(*keys))
                        ret[count++] = s->matchers[i];
        }
        return count;
}

static enum status load_snapshots(struct store_scan *scan, const struct scan_filter *filter, struct gauge_snapshots *g,
                                  struct error *err)
{
        struct scan_names names;
        _cleanup_free_ bool *differ = NULL;
        size_t count = 0;
        enum status st = store_scan_list_label_names(scan, filter, &names, err);

        if (st)
                return st;
        g->labels = calloc(names.count + 1, sizeof *g->labels);
        differ = calloc(names.count + 1, sizeof *differ);
        if (!g->labels || !differ)
                return error_no_memory(err);
        g->label_count = count = list_labels(&names, NULL, g->labels);
        st = list_snapshots(scan, filter, g, err);
        if (!st && g->label_count < names.count) {
                st = find_differing_labels(scan, filter, g, &names, differ, err);
                g->label_count = list_labels(&names, differ, g->labels);
        }
        return st || g->label_count == count ? st : list_snapshots(scan, filter, g, err);
}

enum status gauge_snapshots_load(struct store_scan *scan, const struct query_selection *s, const char *type,
                                 struct gauge_snapshots *ret, struct error *err)
{
        struct gauge_snapshots g = { .type = type, .memory.use = MEMORY_QUERIES };
        _cleanup_free_ struct label_matcher *matchers = calloc(s->selector.count + 1, sizeof *matchers);
        char key[LIMIT_LABEL_BYTES];
        struct scan_filter filter = {
                .from_unix_ns = s->from_unix_ns, .to_unix_ns = s->to_unix_ns, .type = type, .matchers = matchers
        };
        enum status st = ST_OK;

        if (!matchers)
                return error_no_memory(err);
        filter.matcher_count = copy_process_matchers(&s->selector, matchers, &key);
        st = load_snapshots(scan, &filter, &g, err);
        if (st)
                gauge_snapshots_deinit(&g);
        else
                *ret = g;
        return st;
}

void gauge_snapshots_deinit(struct gauge_snapshots *g)
{
        free(g->labels);
        free(g->items);
        memory_release(&g->memory);
        *g = (struct gauge_snapshots){ 0 };
}

uint64_t gauge_snapshots_count(const struct gauge_snapshots *g, uint64_t series, int64_t from_us, int64_t to_us)
{
        const struct gauge_snapshot from = { series, from_us }, to = { series, to_us };
        size_t first = find_lower_bound(i, 0, g->count, compare_snapshots(&g->items[i], &from) < 0);
        size_t end = find_lower_bound(i, first, g->count, compare_snapshots(&g->items[i], &to) < 0);

        return end - first;
}

/* ---- averages ---- */

static int64_t divide_rounded(__int128 sum, uint64_t count)
{
        __int128 twice = 2 * (sum < 0 ? -sum : sum) + count, average = twice / (2 * (__int128)count);

        average = average > INT64_MAX ? INT64_MAX : average;
        return (int64_t)(sum < 0 ? -average : average);
}

int64_t gauge_average_add(struct gauge_average *a, int64_t value)
{
        const uint64_t count = a->snapshots ? a->snapshots : 1;
        int64_t before = divide_rounded(a->sum, count);

        a->sum += value;
        return (int64_t)((uint64_t)divide_rounded(a->sum, count) - (uint64_t)before);
}
