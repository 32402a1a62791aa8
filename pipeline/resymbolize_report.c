/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/resymbolize_report.h"

#include "common/json/json_out.h"

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
                                   struct unresolved_counts *counts, struct buf *out, struct error *err)
{
        uint64_t before[SYMBOL_STATE_COUNT], after[SYMBOL_STATE_COUNT];
        struct resymbolize_result result = { 0 };
        struct error uncounted = { 0 };
        enum status counted = count_unresolved_samples(store, NULL, before, &uncounted);
        enum status st = profile_store_resymbolize(store, request, &result, err);
        struct json_out j;

        if (!st && !counted && !request->dry_run)
                counted = count_unresolved_samples(store, NULL, after, &uncounted);
        if (!request->dry_run && (st || counted))
                unresolved_counts_request(counts);
        else if (!request->dry_run)
                unresolved_counts_set(counts, store, before, after);
        if (st)
                return st;
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
