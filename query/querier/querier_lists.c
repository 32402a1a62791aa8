/* SPDX-License-Identifier: Apache-2.0 */
/* ProfileTypes, LabelNames, LabelValues, Series, GetProfileStats and AnalyzeQuery. */
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "profile-store/scan_groups.h"
#include "query/querier/querier_call.h"

#define NS_PER_MS INT64_C(1000000)
#define LIMIT_LIST_SELECTORS 100 /* of one list; each is a separate scan */

/* ---- selectors of a list, whose results are united ---- */

typedef enum status visit_filter(struct querier_call *c, const struct scan_filter *filter, void *context);

struct list_choice {
        char **selectors; /* count 0: all samples */
        size_t count;
        int64_t start_ms, end_ms;
};

static enum status visit_each_filter(struct querier_call *c, const struct list_choice *list, visit_filter *visit,
                                     void *context)
{
        enum status st = ST_OK;

        if (list->count > LIMIT_LIST_SELECTORS)
                return error_set(c->q.err, ST_USAGE, "matchers may be up to %d selectors", LIMIT_LIST_SELECTORS);
        for (size_t i = 0; !st && i < (list->count ? list->count : 1); i++) {
                const struct querier_choice choice = { .selector = list->count ? list->selectors[i] : "",
                                                       .start_ms = list->start_ms,
                                                       .end_ms = list->end_ms };
                _cleanup_querier_selection_ struct querier_selection s = { 0 };
                struct scan_filter filter;

                st = querier_selection_init(&s, c, &choice);
                if (st)
                        return st;
                filter = querier_selection_make_filter(&s);
                st = visit(c, &filter, context);
        }
        return st;
}

/* ---- sets of names ---- */

/* Set of texts in the memory of the answer. */
struct name_set {
        char **items; /* owned */
        size_t count, capacity;
};

static void name_set_deinit(struct name_set *n)
{
        free(n->items);
}

static enum status name_set_add(struct querier_call *c, struct name_set *set, const char *text, size_t n)
{
        if (!array_reserve(&set->items, &set->capacity, set->count))
                return error_no_memory(c->q.err);
        set->items[set->count] = querier_copy_text(c, text, n);
        if (!set->items[set->count])
                return querier_get_failure(c);
        set->count++;
        return work_meter_add(c->q.meter, 16, c->q.err);
}

static int compare_set_names(const void *x, const void *y, void *context)
{
        (void)context;
        return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Sort, and remove duplicates. */
static enum status name_set_finish(struct querier_call *c, struct name_set *set)
{
        size_t kept = 0;
        enum status st = set->count ? work_meter_sort(c->q.meter, set->items, set->count, sizeof *set->items,
                                                      compare_set_names, NULL, c->q.err)
                                    : ST_OK;

        for (size_t i = 0; !st && i < set->count; i++)
                if (!kept || strcmp(set->items[kept - 1], set->items[i]) != 0)
                        set->items[kept++] = set->items[i];
        set->count = kept;
        return st;
}

static enum status put_names(struct querier_call *c, struct name_set *set)
{
        Querier__NamesResponse *answer = querier_alloc(c, 1, sizeof *answer);
        enum status st = answer ? name_set_finish(c, set) : querier_get_failure(c);

        if (st)
                return st;
        querier__names_response__init(answer);
        answer->names = querier_alloc(c, set->count + 1, sizeof *answer->names);
        if (!answer->names)
                return querier_get_failure(c);
        answer->n_names = set->count;
        if (set->count)
                memcpy(answer->names, set->items, set->count * sizeof *set->items);
        c->answer = &answer->base;
        return ST_OK;
}

/* ---- profile types ---- */

static char *copy_type_part(struct querier_call *c, const char *type, enum profile_type_part part)
{
        size_t n;
        const char *text = profile_type_part(type, part, &n);

        return querier_copy_text(c, text, n);
}

static enum status make_profile_type(struct querier_call *c, const char *id, Querier__ProfileType **ret)
{
        Querier__ProfileType *t = querier_alloc(c, 1, sizeof *t);

        if (!t)
                return querier_get_failure(c);
        querier__profile_type__init(t);
        t->id = querier_copy_text(c, id, strlen(id));
        t->name = copy_type_part(c, id, TYPE_NAME);
        t->sample_type = copy_type_part(c, id, TYPE_SAMPLE_TYPE);
        t->sample_unit = copy_type_part(c, id, TYPE_SAMPLE_UNIT);
        t->period_type = copy_type_part(c, id, TYPE_PERIOD_TYPE);
        t->period_unit = copy_type_part(c, id, TYPE_PERIOD_UNIT);
        if (!t->id || !t->name || !t->sample_type || !t->sample_unit || !t->period_type || !t->period_unit)
                return querier_get_failure(c);
        *ret = t;
        return ST_OK;
}

/* Ids that these clients cannot parse are omitted; tables of other writers may have them. */
static bool is_full_type(const char *id)
{
        size_t colons = 0;

        for (; *id; id++)
                colons += *id == ':';
        return colons == 4;
}

static enum status collect_types(struct querier_call *c, const struct scan_filter *filter, void *context)
{
        struct scan_names types;
        enum status st = store_scan_list_types(c->q.scan, filter, &types, c->q.err);

        for (size_t i = 0; !st && i < types.count; i++)
                if (is_full_type(types.items[i]))
                        st = name_set_add(c, context, types.items[i], strlen(types.items[i]));
        return st;
}

enum status querier_answer_profile_types(struct querier_call *c, const void *request)
{
        const Querier__ProfileTypesRequest *r = request;
        const struct list_choice list = { .start_ms = r->start, .end_ms = r->end };
        Querier__ProfileTypesResponse *answer = querier_alloc(c, 1, sizeof *answer);
        _cleanup_(name_set_deinit) struct name_set types = { 0 };
        enum status st = answer ? visit_each_filter(c, &list, collect_types, &types) : querier_get_failure(c);

        if (st)
                return st;
        querier__profile_types_response__init(answer);
        answer->profile_types = querier_alloc(c, types.count + 1, sizeof(*answer->profile_types));
        if (!answer->profile_types)
                return querier_get_failure(c);
        for (size_t i = 0; !st && i < types.count; i++)
                st = make_profile_type(c, types.items[i], &answer->profile_types[answer->n_profile_types++]);
        c->answer = &answer->base;
        return st;
}

/* ---- labels ---- */

static enum status collect_names_of_labels(struct querier_call *c, const struct scan_filter *filter, void *context)
{
        struct scan_names names;
        enum status st = store_scan_list_label_names(c->q.scan, filter, &names, c->q.err);

        for (size_t i = 0; !st && i < names.count; i++)
                st = name_set_add(c, context, names.items[i], strlen(names.items[i]));
        return st;
}

enum status querier_answer_label_names(struct querier_call *c, const void *request)
{
        const Querier__LabelNamesRequest *r = request;
        const struct list_choice list = { r->matchers, r->n_matchers, r->start, r->end };
        _cleanup_(name_set_deinit) struct name_set names = { 0 };
        enum status st = visit_each_filter(c, &list, collect_names_of_labels, &names);

        for (size_t i = 0; !st && names.count && i < TYPE_LABEL_COUNT; i++)
                st = name_set_add(c, &names, querier_type_labels[i], strlen(querier_type_labels[i]));
        if (!st && names.count)
                st = name_set_add(c, &names, "service_name", strlen("service_name"));
        return st ? st : put_names(c, &names);
}

struct value_list {
        const char *name;
        struct name_set values;
};

static enum status note_first_sample(void *context, int64_t time_unix_ns, int64_t value, const stack_id id)
{
        (void)time_unix_ns;
        (void)value;
        (void)id;
        *(bool *)context = true;
        return ST_NOT_FOUND; /* ends the visit */
}

/* Whether the filter matches a sample without service_name. */
static enum status has_unknown_service(struct querier_call *c, const struct scan_filter *filter, bool *ret)
{
        struct label_matcher matchers[LIMIT_SELECTOR_MATCHERS + 1];
        struct scan_filter nameless = *filter;
        enum status st;

        if (filter->matcher_count)
                memcpy(matchers, filter->matchers, filter->matcher_count * sizeof *matchers);
        matchers[filter->matcher_count] = (struct label_matcher){ "service_name", LABEL_EQUAL, "", NULL, NULL };
        nameless.matchers = matchers;
        nameless.matcher_count++;
        *ret = false;
        st = store_scan_visit(c->q.scan, &nameless, note_first_sample, ret, c->q.err);
        return *ret ? ST_OK : st;
}

static enum status collect_label_values(struct querier_call *c, const struct scan_filter *filter, void *context)
{
        struct value_list *list = context;
        struct scan_names names;
        enum status st;
        bool is_type = querier_is_type_label(list->name), unknown;

        st = is_type ? store_scan_list_types(c->q.scan, filter, &names, c->q.err)
                     : store_scan_list_label_values(c->q.scan, list->name, filter, &names, c->q.err);
        for (size_t i = 0; !st && i < names.count; i++) {
                const char *text = names.items[i];
                size_t n = strlen(text);

                if (is_type)
                        text = querier_get_type_label(list->name, text, &n);
                if (n)
                        st = name_set_add(c, &list->values, text, n);
        }
        if (st || strcmp(list->name, "service_name") != 0)
                return st;
        st = has_unknown_service(c, filter, &unknown);
        return st || !unknown ? st : name_set_add(c, &list->values, UNKNOWN_SERVICE, strlen(UNKNOWN_SERVICE));
}

enum status querier_answer_label_values(struct querier_call *c, const void *request)
{
        const Querier__LabelValuesRequest *r = request;
        const struct list_choice list = { r->matchers, r->n_matchers, r->start, r->end };
        struct value_list values = { .name = r->name };
        enum status st;

        if (!*r->name)
                return error_set(c->q.err, ST_USAGE, "name is missing: the label whose values are listed");
        st = visit_each_filter(c, &list, collect_label_values, &values);
        if (!st)
                st = put_names(c, &values.values);
        name_set_deinit(&values.values);
        return st;
}

/* ---- series ---- */

struct series_list {
        const char *const *names; /* of requested labels; count 0: all */
        size_t count;
        bool type_labels[TYPE_LABEL_COUNT]; /* which of querier_type_labels are requested */
        const char *labels[LIMIT_GROUP_LABELS];
        size_t label_count;
        Querier__Labels **items; /* owned; the sets are in the memory of the answer */
        size_t item_count, item_capacity;
};

static int compare_label_pairs(const void *x, const void *y)
{
        return strcmp((*(Querier__LabelPair *const *)x)->name, (*(Querier__LabelPair *const *)y)->name);
}

static enum status add_pair(struct querier_call *c, Querier__Labels *to, const char *name, const char *value, size_t n)
{
        Querier__LabelPair *pair;

        if (!n && strcmp(name, "service_name") == 0) {
                value = UNKNOWN_SERVICE;
                n = strlen(value);
        }
        if (!n)
                return ST_OK;
        pair = querier_make_label_pair(c, name, value, n);
        if (!pair)
                return querier_get_failure(c);
        to->labels[to->n_labels++] = pair;
        return ST_OK;
}

static enum status add_group_series(struct querier_call *c, struct series_list *list, const struct scan_group *g)
{
        Querier__Labels *set = querier_alloc(c, 1, sizeof *set);
        bool has_service = list->count > 0;
        enum status st = ST_OK;

        if (!set || !array_reserve(&list->items, &list->item_capacity, list->item_count))
                return set ? error_no_memory(c->q.err) : querier_get_failure(c);
        querier__labels__init(set);
        set->labels = querier_alloc(c, g->label_count + TYPE_LABEL_COUNT + 1u, sizeof(*set->labels));
        if (!set->labels)
                return querier_get_failure(c);
        for (uint32_t i = 0; !st && i < g->label_count; i++) {
                const char *name = list->count ? list->labels[i] : g->labels[i].name;

                has_service |= strcmp(name, "service_name") == 0;
                st = add_pair(c, set, name, g->labels[i].value, strlen(g->labels[i].value));
        }
        if (!st && !has_service)
                st = add_pair(c, set, "service_name", "", 0);
        for (size_t i = 0; !st && i < TYPE_LABEL_COUNT; i++) {
                size_t n;
                const char *text = querier_get_type_label(querier_type_labels[i], g->type, &n);

                if (list->type_labels[i])
                        st = add_pair(c, set, querier_type_labels[i], text, n);
        }
        if (st)
                return st;
        qsort(set->labels, set->n_labels, sizeof(*set->labels), compare_label_pairs);
        list->items[list->item_count] = set;
        list->item_count += set->n_labels > 0;
        return work_meter_add(c->q.meter, 64 * (1 + set->n_labels), c->q.err);
}

static enum status collect_series(struct querier_call *c, const struct scan_filter *filter, void *context)
{
        struct series_list *list = context;
        const struct scan_group_by by = { .types = &filter->type,
                                          .type_count = filter->type != NULL,
                                          .labels = list->labels,
                                          .label_count = list->label_count,
                                          .all_labels = !list->count,
                                          .totals = true };
        struct scan_group_sums sums = { 0 };
        enum status st = store_scan_sum_groups(c->q.scan, filter, &by, &sums, c->q.err);

        for (size_t i = 0; !st && i < sums.group_count; i++)
                st = add_group_series(c, list, &sums.groups[i]);
        scan_group_sums_deinit(&sums);
        return st;
}

static int compare_label_sets(const void *x, const void *y, void *context)
{
        const Querier__Labels *a = *(Querier__Labels *const *)x, *b = *(Querier__Labels *const *)y;
        int order = 0;

        (void)context;
        for (size_t i = 0; !order && i < a->n_labels && i < b->n_labels; i++) {
                order = strcmp(a->labels[i]->name, b->labels[i]->name);
                if (!order)
                        order = strcmp(a->labels[i]->value, b->labels[i]->value);
        }
        return order ? order : (a->n_labels > b->n_labels) - (a->n_labels < b->n_labels);
}

/* Sort, and remove duplicates: groups also differ in labels that were not requested. */
static enum status finish_series(struct querier_call *c, struct series_list *list)
{
        size_t kept = 0;
        enum status st = list->item_count ? work_meter_sort(c->q.meter, list->items, list->item_count,
                                                            sizeof(*list->items), compare_label_sets, NULL, c->q.err)
                                          : ST_OK;

        for (size_t i = 0; !st && i < list->item_count; i++)
                if (!kept || compare_label_sets(&list->items[kept - 1], &list->items[i], NULL) != 0)
                        list->items[kept++] = list->items[i];
        list->item_count = kept;
        return st;
}

static enum status choose_series_labels(struct querier_call *c, const Querier__SeriesRequest *r,
                                        struct series_list *list)
{
        list->count = r->n_label_names;
        for (size_t i = 0; i < TYPE_LABEL_COUNT; i++)
                list->type_labels[i] = !list->count;
        for (size_t i = 0; i < r->n_label_names; i++) {
                size_t type_label = 0;

                while (type_label < TYPE_LABEL_COUNT && strcmp(querier_type_labels[type_label], r->label_names[i]) != 0)
                        type_label++;
                if (type_label < TYPE_LABEL_COUNT)
                        list->type_labels[type_label] = true;
                else if (list->label_count == LIMIT_GROUP_LABELS)
                        return error_set(c->q.err, ST_USAGE, "series may be of up to %d labels", LIMIT_GROUP_LABELS);
                else
                        list->labels[list->label_count++] = r->label_names[i];
        }
        return ST_OK;
}

enum status querier_answer_series(struct querier_call *c, const void *request)
{
        const Querier__SeriesRequest *r = request;
        const struct list_choice choice = { r->matchers, r->n_matchers, r->start, r->end };
        Querier__SeriesResponse *answer = querier_alloc(c, 1, sizeof *answer);
        struct series_list list = { 0 };
        enum status st = answer ? choose_series_labels(c, r, &list) : querier_get_failure(c);

        if (!st)
                st = visit_each_filter(c, &choice, collect_series, &list);
        if (!st)
                st = finish_series(c, &list);
        if (!st) {
                querier__series_response__init(answer);
                answer->labels_set = querier_alloc(c, list.item_count + 1, sizeof(*answer->labels_set));
                st = answer->labels_set ? ST_OK : querier_get_failure(c);
        }
        if (!st) {
                answer->n_labels_set = list.item_count;
                if (list.item_count)
                        memcpy(answer->labels_set, list.items, list.item_count * sizeof(*list.items));
                c->answer = &answer->base;
        }
        free(list.items);
        return st;
}

/* ---- the store ---- */

enum status querier_answer_profile_stats(struct querier_call *c, const void *request)
{
        Querier__GetProfileStatsResponse *answer = querier_alloc(c, 1, sizeof *answer);
        int64_t from_ns, to_ns;

        (void)request;
        if (!answer)
                return querier_get_failure(c);
        querier__get_profile_stats_response__init(answer);
        if (store_scan_get_time_range(c->q.scan, &from_ns, &to_ns)) {
                answer->data_ingested = true;
                answer->oldest_profile_time = from_ns / NS_PER_MS;
                answer->newest_profile_time = to_ns / NS_PER_MS;
        }
        c->answer = &answer->base;
        return ST_OK;
}

/* Count the series and samples that a query would read; the service is the only component. */
static enum status count_query(struct querier_call *c, const Querier__AnalyzeQueryRequest *r,
                               Querier__QueryScope *scope)
{
        const struct querier_choice choice = { .selector = r->query, .start_ms = r->start, .end_ms = r->end };
        _cleanup_querier_selection_ struct querier_selection s = { 0 };
        struct scan_group_sums sums = { 0 };
        struct scan_group_by by = { .series = true, .totals = true };
        struct scan_filter filter;
        enum status st = querier_selection_init(&s, c, &choice);

        if (st)
                return st;
        filter = querier_selection_make_filter(&s);
        st = store_scan_sum_groups(c->q.scan, &filter, &by, &sums, c->q.err);
        scope->series_count = sums.group_count;
        for (size_t i = 0; !st && i < sums.count; i++)
                scope->sample_count += sums.items[i].samples;
        scan_group_sums_deinit(&sums);
        return st;
}

enum status querier_answer_analysis(struct querier_call *c, const void *request)
{
        Querier__AnalyzeQueryResponse *answer = querier_alloc(c, 1, sizeof *answer);
        Querier__QueryImpact *impact = querier_alloc(c, 1, sizeof *impact);
        Querier__QueryScope *scope = querier_alloc(c, 1, sizeof *scope);
        Querier__QueryScope **scopes = querier_alloc(c, 1, sizeof *scopes);
        enum status st;

        if (!answer || !impact || !scope || !scopes)
                return querier_get_failure(c);
        querier__analyze_query_response__init(answer);
        querier__query_impact__init(impact);
        querier__query_scope__init(scope);
        st = count_query(c, request, scope);
        if (st)
                return st;
        scope->component_type = querier_copy_text(c, "Cairn", strlen("Cairn"));
        if (!scope->component_type)
                return querier_get_failure(c);
        scope->component_count = 1;
        impact->total_queried_series = scope->series_count;
        scopes[0] = scope;
        answer->query_scopes = scopes;
        answer->n_query_scopes = 1;
        answer->query_impact = impact;
        c->answer = &answer->base;
        return ST_OK;
}
