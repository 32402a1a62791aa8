/* SPDX-License-Identifier: Apache-2.0 */
#include "query/querier/querier.h"

#include <assert.h>
#include <string.h>

#include "common/limits.h"
#include "common/text/utf8.h"
#include "profile-formats/proto/parca_query.pb-c.h"
#include "query/querier/querier_call.h"

struct querier_method {
        const char *name;
        const ProtobufCMessageDescriptor *request;
        querier_answer *answer;
};

static const struct querier_method methods[] = {
        { "ProfileTypes", &querier__profile_types_request__descriptor, querier_answer_profile_types },
        { "LabelNames", &querier__label_names_request__descriptor, querier_answer_label_names },
        { "LabelValues", &querier__label_values_request__descriptor, querier_answer_label_values },
        { "Series", &querier__series_request__descriptor, querier_answer_series },
        { "SelectMergeStacktraces", &querier__select_merge_stacktraces_request__descriptor,
          querier_answer_stacktraces },
        { "SelectMergeSpanProfile", &querier__select_merge_span_profile_request__descriptor,
          querier_answer_span_profile },
        { "SelectMergeProfile", &querier__select_merge_profile_request__descriptor, querier_answer_profile },
        { "SelectSeries", &querier__select_series_request__descriptor, querier_answer_select_series },
        { "Diff", &querier__diff_request__descriptor, querier_answer_diff },
        { "GetProfileStats", &querier__get_profile_stats_request__descriptor, querier_answer_profile_stats },
        { "AnalyzeQuery", &querier__analyze_query_request__descriptor, querier_answer_analysis },
};

static const struct querier_method parca_methods[] = {
        { "ProfileTypes", &parca_query__profile_types_request__descriptor, parca_answer_profile_types },
        { "Labels", &parca_query__labels_request__descriptor, parca_answer_labels },
        { "Values", &parca_query__values_request__descriptor, parca_answer_values },
        { "QueryRange", &parca_query__query_range_request__descriptor, parca_answer_query_range },
        { "Query", &parca_query__query_request__descriptor, parca_answer_query },
        { "Series", &parca_query__series_request__descriptor, parca_answer_series },
};

static const struct querier_method *find_method_in(const struct querier_method *list, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(list[i].name, name) == 0)
                        return &list[i];
        return NULL;
}

const struct querier_method *querier_find_method(const char *name)
{
        return find_method_in(methods, sizeof methods / sizeof *methods, name);
}

const struct querier_method *querier_find_parca_method(const char *name)
{
        return find_method_in(parca_methods, sizeof parca_methods / sizeof *parca_methods, name);
}

const ProtobufCMessageDescriptor *querier_get_request_type(const struct querier_method *m)
{
        return m->request;
}

/* ---- answers ---- */

void *querier_alloc(struct querier_call *c, size_t count, size_t size)
{
        void *p = arena_alloc_array(c->memory, count, size);

        if (!p)
                arena_error(c->memory, c->q.err, "the answer");
        return p;
}

char *querier_copy_text(struct querier_call *c, const char *text, size_t n)
{
        char *copy = arena_strndup(c->memory, text, n);
        const char *valid;

        if (copy && !utf8_valid(copy, n)) {
                buf_clear(&c->scratch);
                valid = utf8_replace_invalid(copy, &c->scratch);
                copy = c->scratch.failed ? NULL : arena_strndup(c->memory, valid, strlen(valid));
        }
        if (!copy)
                arena_error(c->memory, c->q.err, "the answer");
        return copy;
}

Querier__LabelPair *querier_make_label_pair(struct querier_call *c, const char *name, const char *value, size_t n)
{
        Querier__LabelPair *pair = querier_alloc(c, 1, sizeof *pair);

        if (!pair)
                return NULL;
        querier__label_pair__init(pair);
        pair->name = querier_copy_text(c, name, strlen(name));
        pair->value = querier_copy_text(c, value, n);
        return pair->name && pair->value ? pair : NULL;
}

/* ---- calls ---- */

/* labels=none: pprof files sum samples over all labels. */
static const char *get_fixed_param(void *context, const char *name)
{
        (void)context;
        return strcmp(name, "labels") == 0 ? "none" : NULL;
}

static enum status run_method(struct query_call *q, void *context)
{
        const struct querier_input *in = context;
        struct querier_call *c = (struct querier_call *)q; /* its first member */

        return in->method->answer(c, in->request);
}

enum status querier_run(struct profile_store *store, const struct querier_input *in, struct arena *memory,
                        const ProtobufCMessage **ret, struct error *err)
{
        struct querier_call c = { .q = { .params = { get_fixed_param, NULL, in->meter },
                                         .meter = in->meter,
                                         .now_unix_ns = in->now_unix_ns,
                                         .report = in->report,
                                         .err = err },
                                  .memory = memory };
        enum status st = store_scan_begin(store, &c.q.scan, err);

        if (st)
                return st;
        buf_init(&c.q.note, 600);
        buf_init(&c.scratch, LIMIT_NAME_BYTES * 3);
        st = query_call_run(&c.q, run_method, (void *)(uintptr_t)in);
        store_scan_end(c.q.scan);
        buf_deinit(&c.q.note);
        buf_deinit(&c.scratch);
        assert(st || c.answer);
        if (!st)
                *ret = c.answer;
        return st;
}
