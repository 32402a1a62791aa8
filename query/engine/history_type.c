/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/history_type.h"

#include <string.h>

#include "profile-store/history_scan.h"
#include "query/engine/no_samples.h"
#include "query/engine/type_plan.h"

struct type_count {
        const char *asked; /* NULL: any */
        char type[HISTORY_TYPE_SIZE];
        uint64_t samples;
        bool is_cpu;
};

static enum status count_type(void *context, const struct history_row *row, struct error *err)
{
        struct type_count *best = context;
        bool is_cpu = is_cpu_time_type(row->type);

        (void)err;
        if (best->asked && !is_matching_type(row->type, best->asked))
                return ST_OK;
        if ((is_cpu && !best->is_cpu) || (is_cpu == best->is_cpu && row->self_samples > best->samples)) {
                snprintf(best->type, sizeof best->type, "%s", row->type);
                best->samples = row->self_samples;
                best->is_cpu = is_cpu;
        }
        return ST_OK;
}

/* An id has all five parts. */
static bool is_whole_type(const char *type)
{
        size_t colons = 0;

        for (; *type; type++)
                colons += *type == ':';
        return colons == 4;
}

enum status history_choose_type(struct query_call *q, char ret[static HISTORY_TYPE_SIZE])
{
        const struct query_selection *selection = &q->r.selection;
        struct type_plan plan = { 0 };
        struct type_count best = { .asked = q->r.type };
        struct history_sources sources;
        enum status st;

        *ret = '\0';
        if (q->r.is_type_exact || (q->r.type && is_whole_type(q->r.type))) {
                snprintf(ret, HISTORY_TYPE_SIZE, "%s", q->r.type);
                return ST_OK;
        }
        st = type_plan_make_for_request(q->scan, &selection, 1, &q->r, &plan, q->err);
        if (!st && plan.type)
                snprintf(ret, HISTORY_TYPE_SIZE, "%s", plan.type);
        type_plan_deinit(&plan);
        if (!st && !*ret) {
                const struct scan_filter filter = query_selection_make_filter(selection, NULL);

                st = history_visit_selection(q->scan, &filter, count_type, &best, &sources, q->err);
                memcpy(ret, best.type, sizeof best.type);
        }
        return st;
}
