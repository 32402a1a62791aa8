/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/resymbolize_report.h"

#include "common/json/json_out.h"
#include "common/metrics.h"
#include "profile-store/scan.h"

#define UNRESOLVED_SAMPLES(when, reason)                                                                               \
        METRIC_GAUGE("cairn_unresolved_samples",                                                                       \
                     "Samples with an unresolved location, by reason, before and after the last requested "            \
                     "re-symbolization.",                                                                              \
                     "when=\"" when "\",reason=\"" reason "\"")
#define UNRESOLVED_BY_REASON(when)                                                                                     \
        {                                                                                                              \
                [SYMBOL_NO_BUILD_ID] = UNRESOLVED_SAMPLES(when, "no_build_id"),                                        \
                [SYMBOL_NO_DEBUGINFO] = UNRESOLVED_SAMPLES(when, "no_debuginfo"),                                      \
                [SYMBOL_PENDING] = UNRESOLVED_SAMPLES(when, "pending"),                                                \
                [SYMBOL_FAILED] = UNRESOLVED_SAMPLES(when, "failed"),                                                  \
                [SYMBOL_OUTSIDE] = UNRESOLVED_SAMPLES(when, "outside"),                                                \
                [SYMBOL_NO_ADDRESS] = UNRESOLVED_SAMPLES(when, "no_address"),                                          \
                [SYMBOL_STRIPPED] = UNRESOLVED_SAMPLES(when, "stripped"),                                              \
                [SYMBOL_UNCOVERED] = UNRESOLVED_SAMPLES(when, "uncovered"),                                            \
                [SYMBOL_NOT_IN_OBJECT] = UNRESOLVED_SAMPLES(when, "not_in_object"),                                    \
                [SYMBOL_TOO_LARGE] = UNRESOLVED_SAMPLES(when, "too_large"),                                            \
        }

static struct metric unresolved_before[SYMBOL_STATE_COUNT] = UNRESOLVED_BY_REASON("before");
static struct metric unresolved_after[SYMBOL_STATE_COUNT] = UNRESOLVED_BY_REASON("after");

static enum status count_samples_by_reason(struct profile_store *store, uint64_t ret[static SYMBOL_STATE_COUNT],
                                           struct metric *metrics, struct error *err)
{
        static const struct scan_filter all = { .from_unix_ns = INT64_MIN, .to_unix_ns = INT64_MAX };
        struct store_scan *scan;
        enum status st = store_scan_begin(store, &scan, err);

        if (st)
                return st;
        st = store_scan_count_unresolved(scan, &all, ret, err);
        store_scan_end(scan);
        for (int i = 0; !st && i < SYMBOL_STATE_COUNT; i++)
                if (metrics[i].name)
                        metric_set(&metrics[i], (int64_t)ret[i]);
        return st;
}

static void write_counts(struct json_out *j, const char *key, const uint64_t counts[static SYMBOL_STATE_COUNT])
{
        json_out_object(j, key);
        for (int i = 0; i < SYMBOL_STATE_COUNT; i++)
                if (counts[i])
                        json_out_uint(j, symbol_state_name(i), counts[i]);
        json_out_object_end(j);
}

static void write_resymbolize_result(struct json_out *j, const struct resymbolize_request *request,
                                     const struct resymbolize_result *result)
{
        json_out_bool(j, "dry_run", request->dry_run);
        json_out_uint(j, "locations_seen", result->locations_seen);
        json_out_uint(j, "locations_changed", result->locations_changed);
        json_out_uint(j, "files_read", result->files_read);
        json_out_uint(j, "files_rewritten", result->files_rewritten);
        json_out_uint(j, "files_skipped", result->files_skipped);
        json_out_object(j, "locations");
        write_counts(j, "before", result->before);
        write_counts(j, "after", result->after);
        json_out_object_end(j);
}

enum status resymbolize_and_report(struct profile_store *store, const struct resymbolize_request *request,
                                   struct buf *out, struct error *err)
{
        uint64_t before[SYMBOL_STATE_COUNT], after[SYMBOL_STATE_COUNT];
        struct resymbolize_result result = { 0 };
        struct error uncounted = { 0 };
        enum status counted = count_samples_by_reason(store, before, unresolved_before, &uncounted);
        enum status st = profile_store_resymbolize(store, request, &result, err);
        struct json_out j;

        if (st)
                return st;
        if (!counted && !request->dry_run)
                counted = count_samples_by_reason(store, after, unresolved_after, &uncounted);
        json_out_init(&j, out);
        json_out_object(&j, NULL);
        write_resymbolize_result(&j, request, &result);
        json_out_object(&j, "unresolved_samples");
        if (counted) {
                json_out_str(&j, "not_counted", uncounted.text);
        } else {
                write_counts(&j, "before", before);
                if (!request->dry_run)
                        write_counts(&j, "after", after);
        }
        json_out_object_end(&j);
        json_out_object_end(&j);
        return buf_status(out, err, "the report of a re-symbolization");
}
