/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about profiles that are in no store. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ask.h"
#include "cli/local_symbols.h"
#include "cli/profile_input.h"
#include "cli/record_report.h"
#include "query/query.h"

#define SIDE "cairn.side" /* the label that tells two files apart */

/* Half-open: the end of each sample lies in it. */
static void time_range(const struct profile *const *profiles, size_t count, int64_t *from_ret, int64_t *to_ret)
{
        int64_t from = INT64_MAX, to = INT64_MIN;

        for (size_t i = 0; i < count; i++) {
                for (uint32_t k = 0; k < profiles[i]->samples.count; k++) {
                        const struct profile_sample *s = &profiles[i]->samples.items[k];

                        from = s->time_unix_ns < from ? s->time_unix_ns : from;
                        to = s->time_unix_ns + s->duration_ns > to ? s->time_unix_ns + s->duration_ns : to;
                }
        }
        *from_ret = from > to ? 0 : from - from % 1000; /* stores know microseconds */
        *to_ret = (from > to ? 0 : to) + 1;
}

enum status ask_profiles(const struct profile *const *profiles, size_t count, const char *operation,
                         struct ask_params *params, struct buf *ret, struct error *err)
{
        struct store_scan *scan;
        struct ask_params given;
        const char *content_type;
        char from_text[24], to_text[24];
        int64_t from, to;
        enum status st = store_scan_profiles(profiles, count, &scan, err);

        if (st)
                return st;
        time_range(profiles, count, &from, &to);
        snprintf(from_text, sizeof from_text, "%" PRId64, from);
        snprintf(to_text, sizeof to_text, "%" PRId64, to);
        given = *params;
        if (!ask_param_value(params, "from"))
                ask_param(params, "from", from_text);
        if (!ask_param_value(params, "to"))
                ask_param(params, "to", to_text);
        st = query_run_scan(scan, operation, ask_param_value, params, to, NULL, ret, &content_type, err);
        *params = given;
        store_scan_end(scan);
        return st;
}

static enum status read_named(const char *path, struct profile *ret, struct error *err)
{
        const struct profile_input input = { 0 };
        struct local_symbols l = { 0 };
        enum status st = profile_input_read(path, &input, ret, NULL, err);

        if (st)
                return error_prefix(err, st, "%s", path);
        st = local_symbols_fill(&l, ret, err);
        if (!st)
                record_report_frames(ret, &l.symbols, l.fetcher);
        local_symbols_deinit(&l);
        if (st)
                profile_deinit(ret);
        return st;
}

enum status ask_file(const char *path, const char *operation, struct ask_params *params, struct buf *ret,
                     struct error *err)
{
        const struct profile *profiles[1];
        struct profile p;
        enum status st = read_named(path, &p, err);

        if (st)
                return st;
        profiles[0] = &p;
        st = ask_profiles(profiles, 1, operation, params, ret, err);
        profile_deinit(&p);
        return st;
}

enum status ask_difference(const char *before, const char *after, struct ask_params *params, struct buf *ret,
                           struct error *err)
{
        _cleanup_profile_ struct profile a = { 0 }, b = { 0 };
        const struct profile *const profiles[] = { &a, &b };
        enum status st = read_named(before, &a, err);

        if (!st)
                st = read_named(after, &b, err);
        if (!st)
                st = profile_label_all(&a, SIDE, "before", err);
        if (!st)
                st = profile_label_all(&b, SIDE, "after", err);
        ask_param(params, "base_selector", "{" SIDE "=\"before\"}");
        ask_param(params, "selector", "{" SIDE "=\"after\"}");
        return st ? st : ask_profiles(profiles, 2, "diff", params, ret, err);
}
