/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan/scan_internal.h"

#include <stdlib.h>

static void extend_span(struct scan_span *span, int64_t time_us, int64_t duration_ns)
{
        int64_t start, end;

        if (__builtin_mul_overflow(time_us, 1000, &start))
                return;
        if (duration_ns < 0 || __builtin_add_overflow(start, duration_ns, &end))
                end = start;
        if (span->is_empty || start < span->first_unix_ns)
                span->first_unix_ns = start;
        if (span->is_empty || end > span->end_unix_ns)
                span->end_unix_ns = end;
        span->is_empty = false;
}

static enum status extend_by_rows(struct scan_span *span, const struct scan_chunk *chunk, struct error *err)
{
        _cleanup_column_source_ struct column_source from = { .file = chunk->file,
                                                              .group = chunk->group,
                                                              .memory.use = MEMORY_QUERIES };
        _cleanup_parquet_column_ struct parquet_column times = { 0 }, durations = { 0 };
        enum status st = scan_read_column(&from, "time", PARQUET_TIMESTAMP, &times, err);

        if (!st)
                st = scan_read_column(&from, "duration_ns", PARQUET_INT64, &durations, err);
        for (size_t k = 0; !st && k < chunk->rows->count; k++) {
                const struct row_range *range = &chunk->rows->items[k];

                st = work_meter_add(chunk->thread->meter, 4 * (uint64_t)range->count, err);
                for (uint32_t i = range->first; !st && i < range->first + range->count; i++)
                        extend_span(span, times.ints[i], durations.ints[i]); /* 0 where null */
        }
        return st;
}

static enum status extend_by_chunk(void *context, const struct scan_chunk *chunk, struct error *err)
{
        struct scan_span *span = context;

        if (!chunk->batch)
                return extend_by_rows(span, chunk, err);
        for (size_t k = 0; k < chunk->rows->count; k++) {
                const struct row_range *range = &chunk->rows->items[k];

                for (uint32_t i = range->first; i < range->first + range->count; i++)
                        extend_span(span, chunk->batch->samples[i].time_us, chunk->batch->samples[i].duration_ns);
        }
        return ST_OK;
}

enum status store_scan_find_span(struct store_scan *scan, const struct scan_filter *filter, struct scan_span *ret,
                                 struct error *err)
{
        struct scan_span spans[WORK_THREADS_MAX], all = { .is_empty = true };
        void *contexts[WORK_THREADS_MAX];
        size_t threads = count_work_threads();
        enum status st;

        for (size_t i = 0; i < threads; i++) {
                spans[i] = (struct scan_span){ .is_empty = true };
                contexts[i] = &spans[i];
        }
        st = scan_visit_chunks(scan, filter, &(struct chunk_visitor){ extend_by_chunk, NULL }, contexts, threads, err);
        if (st)
                return st;
        for (size_t i = 0; i < threads; i++) {
                if (spans[i].is_empty)
                        continue;
                if (all.is_empty || spans[i].first_unix_ns < all.first_unix_ns)
                        all.first_unix_ns = spans[i].first_unix_ns;
                if (all.is_empty || spans[i].end_unix_ns > all.end_unix_ns)
                        all.end_unix_ns = spans[i].end_unix_ns;
                all.is_empty = false;
        }
        *ret = all;
        return ST_OK;
}
