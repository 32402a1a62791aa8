/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/service_versions.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

/* Labels that tell the version of a program, of a sample that has several the first; and its build and name. */
enum version_label { VERSION_BUILD = 3, VERSION_PROGRAM, VERSION_LABELS };
static const char *const version_labels[VERSION_LABELS] = {
        "service_version", "version", "container_image_tags", [VERSION_BUILD] = "process_executable_build_id_gnu",
        [VERSION_PROGRAM] = "process_executable_name"
};

#define LIMIT_VERSION_STEPS 2000 /* of one selection */
#define LIMIT_SHOWN_VERSIONS 20  /* of one service */

void service_versions_init(struct service_versions *v, const struct label_list *labels, struct work_meter *meter)
{
        *v = (struct service_versions){ .memory.use = MEMORY_QUERIES };
        label_groups_init(&v->services, labels, meter);
}

void service_versions_deinit(struct service_versions *v)
{
        label_groups_deinit(&v->services);
        free(v->items);
        memory_release(&v->memory);
}

static enum status append_service_version(struct service_versions *v, const struct service_version *item,
                                          struct error *err)
{
        enum status st = array_charge_growth(&v->memory, v->capacity, v->count, sizeof *item, err);

        if (st)
                return st;
        if (!array_reserve(&v->items, &v->capacity, v->count))
                return error_no_memory(err);
        v->items[v->count++] = *item;
        return ST_OK;
}

/* Add the version and the build of a group that has samples in a step. */
static enum status add_group_version(struct service_versions *v, const struct scan_group *g, int64_t at_ns,
                                     int64_t step_ns, struct error *err)
{
        const struct scan_group_label *labels = g->labels + v->services.labels->count;
        struct service_version item = { .version = "", .first_unix_ns = at_ns, .last_ns = at_ns + step_ns }, build;
        enum status st;

        for (size_t i = 0; !item.label && i < VERSION_BUILD; i++) {
                if (!*labels[i].value)
                        continue;
                item.label = version_labels[i];
                item.value = labels[i].value;
        }
        if (!item.label && !*labels[VERSION_BUILD].value)
                return ST_OK;
        st = label_groups_find_or_add(&v->services, g->labels, &item.service, err);
        build = item;
        build.label = version_labels[VERSION_BUILD];
        build.value = labels[VERSION_BUILD].value;
        build.program = labels[VERSION_PROGRAM].value;
        build.version = item.label ? item.value : "";
        if (!st && item.label)
                st = append_service_version(v, &item, err);
        if (!st && *build.value)
                st = append_service_version(v, &build, err);
        return st;
}

enum status service_versions_add(struct service_versions *v, struct store_scan *scan, const struct query_selection *s,
                                 const struct type_plan *plan, int64_t step_ns, struct error *err)
{
        const uint64_t range = (uint64_t)s->to_unix_ns - (uint64_t)s->from_unix_ns;
        const uint64_t least = range / LIMIT_VERSION_STEPS + 1;
        const char *labels[LIMIT_GROUP_LABELS + VERSION_LABELS];
        struct scan_group_by by = { .types = plan->types, .type_count = plan->type_count, .labels = labels };
        const struct scan_filter filter = query_selection_make_filter(s, NULL);
        struct scan_group_sums sums = { 0 };
        int64_t rest;
        enum status st;

        by.step_ns = (uint64_t)step_ns < least ? (int64_t)least : step_ns;
        rest = s->from_unix_ns % by.step_ns;
        by.first_unix_ns = s->from_unix_ns - (rest < 0 ? rest + by.step_ns : rest);
        by.step_count = range / (uint64_t)by.step_ns + 2;
        for (size_t i = 0; i < v->services.labels->count; i++)
                labels[by.label_count++] = v->services.labels->names[i];
        for (size_t i = 0; i < VERSION_LABELS; i++)
                labels[by.label_count++] = version_labels[i];
        st = store_scan_sum_groups(scan, &filter, &by, &sums, err);
        for (size_t i = 0; !st && i < sums.count; i++) { /* by group and step */
                const struct scan_group_sum *sum = &sums.items[i];
                bool is_first = !i || sums.items[i - 1].group != sum->group;

                if (is_first || i + 1 == sums.count || sums.items[i + 1].group != sum->group)
                        st = add_group_version(v, &sums.groups[sum->group],
                                               by.first_unix_ns + (int64_t)sum->item * by.step_ns, by.step_ns, err);
        }
        scan_group_sums_deinit(&sums);
        return st;
}

/* Equal for the versions of a service, and for the builds of a program with one version. */
static int compare_version_lines(const struct service_version *a, const struct service_version *b)
{
        int order = a->service != b->service ? (a->service < b->service ? -1 : 1) : !a->program - !b->program;

        if (!order && a->program)
                order = strcmp(a->program, b->program);
        return order ? order : strcmp(a->version, b->version);
}

static int compare_version_names(const void *x, const void *y, void *context)
{
        const struct service_version *a = x, *b = y;
        int order = compare_version_lines(a, b);

        (void)context;
        if (!order)
                order = strcmp(a->label, b->label);
        return order ? order : strcmp(a->value, b->value);
}

static int compare_version_times(const void *x, const void *y, void *context)
{
        const struct service_version *a = x, *b = y;

        if (a->service != b->service)
                return a->service < b->service ? -1 : 1;
        if (a->first_unix_ns != b->first_unix_ns)
                return a->first_unix_ns < b->first_unix_ns ? -1 : 1;
        return compare_version_names(x, y, context);
}

/* Remove the only builds of their versions. The items are sorted by name. */
static void remove_lone_builds(struct service_versions *v)
{
        size_t kept = 0;

        for (size_t i = 0; i < v->count; i++) {
                const struct service_version *item = &v->items[i];
                bool is_lone = item->program && *item->version && (!i || compare_version_lines(item - 1, item) != 0) &&
                               (i + 1 == v->count || compare_version_lines(item, item + 1) != 0);

                v->items[kept] = *item;
                kept += !is_lone;
        }
        v->count = kept;
}

enum status service_versions_merge(struct service_versions *v, struct error *err)
{
        struct work_meter *meter = v->services.meter;
        size_t kept = 0;
        enum status st = work_meter_sort(meter, v->items, v->count, sizeof *v->items, compare_version_names, NULL, err);

        for (size_t i = 0; !st && i < v->count; i++) {
                const struct service_version *item = &v->items[i];
                struct service_version *last = kept ? &v->items[kept - 1] : NULL;

                if (!last || compare_version_names(last, item, NULL) != 0) {
                        v->items[kept++] = *item;
                        continue;
                }
                if (item->first_unix_ns < last->first_unix_ns)
                        last->first_unix_ns = item->first_unix_ns;
                if (item->last_ns > last->last_ns)
                        last->last_ns = item->last_ns;
        }
        if (st)
                return st;
        v->count = kept;
        remove_lone_builds(v);
        return work_meter_sort(meter, v->items, v->count, sizeof *v->items, compare_version_times, NULL, err);
}

const struct service_version *service_versions_find(const struct service_versions *v, uint32_t service,
                                                    size_t *count_ret)
{
        size_t low = 0, high = v->count, end;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (v->items[middle].service < service)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (end = low; end < v->count && v->items[end].service == service; end++)
                ;
        if (end - low > LIMIT_SHOWN_VERSIONS)
                low = end - LIMIT_SHOWN_VERSIONS;
        *count_ret = end - low;
        return v->items + low;
}

const struct service_version *service_version_get_previous(const struct service_version *items, size_t i)
{
        for (size_t k = i; k--;)
                if (items[k].service == items[i].service && compare_version_lines(&items[k], &items[i]) == 0)
                        return items[k].first_unix_ns < items[i].first_unix_ns ? &items[k] : NULL;
        return NULL;
}

const struct service_version *service_versions_get_current(const struct service_version *items, size_t count,
                                                           const struct service_version **previous_ret)
{
        *previous_ret = NULL;
        for (size_t i = count; i--;) {
                *previous_ret = service_version_get_previous(items, i);
                if (*previous_ret)
                        return &items[i];
        }
        for (size_t i = count; i--;)
                if (!items[i].program)
                        return &items[i];
        return count == 1 ? items : NULL;
}

const char *service_version_format(const struct service_version *v, char *out, size_t size)
{
        snprintf(out, size, v->program ? "%.12s" : "%s", v->value);
        return out;
}

void service_version_put_json(const struct service_version *v, struct json_out *j)
{
        json_out_str(j, "label", v->label);
        json_out_str(j, "value", v->value);
        json_out_int(j, "first_ms", v->first_unix_ns / 1000000);
        json_out_int(j, "last_ms", v->last_ns / 1000000);
        if (v->program) {
                json_out_str(j, "program", v->program);
                json_out_str(j, "version", v->version);
        }
}
