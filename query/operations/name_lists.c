/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names: labels, their values, and profile types. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/csv.h"
#include "common/text/utf8.h"
#include "query/engine/no_samples.h"
#include "query/engine/query_call.h"
#include "query/engine/type_plan.h"

#define LABEL_SHOWN_BYTES 60

static void put_name_answer(struct query_call *q, const struct scan_names *names)
{
        size_t count = q->r.limit && q->r.limit < names->count ? (size_t)q->r.limit : names->count;
        struct json_out j;

        q->content_type = query_call_content_type(q);
        json_out_init(&j, q->ret);
        if (q->r.format == FORMAT_CSV) {
                buf_append_str(q->ret, "name\r\n");
                for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++) {
                        csv_put_text(q->ret, names->items[i], '\r');
                        buf_append_u8(q->ret, '\n');
                }
                return;
        }
        if (q->r.format == FORMAT_TEXT) {
                for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++) {
                        utf8_append_escaped(q->ret, names->items[i]);
                        buf_append_u8(q->ret, '\n');
                }
                return;
        }
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++)
                json_out_str(&j, NULL, names->items[i]);
        json_out_array_end(&j);
}

/* Each label with its number of values among the selected samples; labels without values are omitted. */
static enum status answer_label_counts(struct query_call *q)
{
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        struct scan_label_count *counts = NULL;
        size_t count = 0;
        struct json_out j;
        enum status st = store_scan_count_label_values(q->scan, &filter, &counts, &count, q->err);

        if (st)
                return st;
        json_out_init(&j, q->ret);
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count; i++) {
                bool is_more = counts[i].values > LIMIT_LABEL_VALUES_COUNTED;

                json_out_object(&j, NULL);
                json_out_str(&j, "name", counts[i].name);
                json_out_int(&j, "values", is_more ? LIMIT_LABEL_VALUES_COUNTED : counts[i].values);
                if (is_more)
                        json_out_bool(&j, "more", true);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        return ST_OK;
}

enum status query_answer_labels(struct query_call *q)
{
        const struct query_selection *s = &q->r.selection;
        const struct scan_filter whole_range = { .from_unix_ns = s->from_unix_ns, .to_unix_ns = s->to_unix_ns };
        struct scan_names names;
        bool counts = false;
        enum status st = query_param_get_flag(&q->params, "counts", &counts, q->err);

        if (!st && counts && q->r.format != FORMAT_JSON)
                return error_set(q->err, ST_USAGE, "labels with counts=1 have the format json only");
        if (!st && counts)
                return answer_label_counts(q);
        if (!st)
                st = store_scan_list_label_names(q->scan, &whole_range, &names, q->err);
        if (!st)
                put_name_answer(q, &names);
        return st;
}

enum status query_answer_types(struct query_call *q)
{
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        struct scan_names names;
        enum status st = store_scan_list_types(q->scan, &filter, &names, q->err);

        if (!st && !names.count)
                st = note_no_samples(q, &q->r.selection, NULL);
        if (!st)
                put_name_answer(q, &names);
        return st;
}

/* @param type  a requested one; NULL: any. */
static enum status note_no_values(struct query_call *q, const char *key, const char *type)
{
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, type);
        struct scan_names types;
        enum status st = store_scan_list_types(q->scan, &filter, &types, q->err);

        if (st || !types.count)
                return st ? st : note_no_samples(q, &q->r.selection, q->r.type);
        buf_append_str(&q->note,
                       q->note.size ? "; no selected sample has the label " : "no selected sample has the label ");
        utf8_append_escaped_n(&q->note, key, strnlen(key, LABEL_SHOWN_BYTES));
        return ST_OK;
}

static int compare_values(const void *x, const void *y)
{
        return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The values that a label has in samples of any of these types, sorted. @param items_ret  owned. */
static enum status list_values_of_types(struct query_call *q, const char *key, const struct type_plan *plan,
                                        const char ***items_ret, struct scan_names *ret)
{
        _cleanup_free_ const char **items = NULL;
        size_t count = 0, capacity = 0, kept = 0;

        for (size_t i = 0; i < plan->type_count; i++) {
                const struct scan_filter filter = query_selection_make_filter(&q->r.selection, plan->types[i]);
                struct scan_names names;
                enum status st = store_scan_list_label_values(q->scan, key, &filter, &names, q->err);

                if (st)
                        return st;
                if (!array_reserve_many(&items, &capacity, count, names.count + 1))
                        return error_no_memory(q->err);
                for (size_t k = 0; k < names.count; k++)
                        items[count++] = names.items[k];
        }
        if (count)
                qsort(items, count, sizeof *items, compare_values);
        for (size_t i = 0; i < count; i++)
                if (!kept || strcmp(items[i], items[kept - 1]) != 0)
                        items[kept++] = items[i];
        *ret = (struct scan_names){ items, kept };
        *items_ret = steal_ptr(items);
        return ST_OK;
}

enum status query_answer_values(struct query_call *q)
{
        const struct query_selection *selection = &q->r.selection;
        const struct scan_filter filter = query_selection_make_filter(selection, NULL);
        const char *key = query_param_get(&q->params, "", "name");
        _cleanup_type_plan_ struct type_plan plan = { 0 };
        _cleanup_free_ const char **items = NULL;
        struct scan_names names;
        enum status st = ST_OK;

        if (!key)
                return error_set(q->err, ST_USAGE, "the parameter name is missing: the label whose values are listed");
        if (q->r.type)
                st = type_plan_make_for_request(q->scan, &selection, 1, &q->r, &plan, q->err);
        if (!st)
                type_plan_put_note(&plan, &q->note);
        if (!st)
                st = q->r.type ? list_values_of_types(q, key, &plan, &items, &names)
                               : store_scan_list_label_values(q->scan, key, &filter, &names, q->err);
        if (!st && !names.count)
                st = note_no_values(q, key, plan.type_count ? plan.types[0] : NULL);
        if (!st)
                put_name_answer(q, &names);
        return st;
}
