/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "profile-store/location_rows.h"
#include "profile-store/part_read.h"
#include "profile-store/store_internal.h"

static bool has_frames(const struct parquet_bytes *state)
{
        static const enum symbol_state with_frames[] = { SYMBOL_RESOLVED, SYMBOL_SENDER };

        for (size_t i = 0; i < sizeof with_frames / sizeof *with_frames; i++) {
                const char *name = symbol_state_name(with_frames[i]);

                if (state->size == strlen(name) && memcmp(state->data, name, state->size) == 0)
                        return true;
        }
        return false;
}

static enum status count_unresolved(const struct table_part *part, int64_t *ret, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        int64_t n = 0;
        enum status st = part_file_open(part, &f, err);

        for (uint32_t g = 0; !st && g < part_file_groups(&f); g++) {
                _cleanup_parquet_column_ struct parquet_column c = { 0 };

                st = part_file_column(&f, g, "state", PARQUET_STRING, &c, err);
                for (uint64_t i = 0; !st && i < c.row_count; i++)
                        n += c.codes[i] == PARQUET_NULL_CODE || !has_frames(&c.dict[c.codes[i]]);
        }
        if (!st)
                *ret = n;
        return st;
}

static enum status unresolved(const struct tables *t, uint64_t *ret, struct error *err)
{
        uint64_t n = 0;

        for (size_t i = 0; i < t->part_count[TABLE_LOCATIONS]; i++) {
                struct table_part *part = t->parts[TABLE_LOCATIONS][i];
                int64_t known = atomic_load(&part->unresolved);

                if (known < 0) {
                        enum status st = count_unresolved(part, &known, err);

                        if (st)
                                return st;
                        atomic_store(&part->unresolved, known);
                }
                n += (uint64_t)known;
        }
        *ret = n;
        return ST_OK;
}

static void sum_parts(const struct tables *t, enum table table, uint64_t *rows, uint64_t *files, uint64_t *bytes)
{
        *files = t->part_count[table];
        for (size_t i = 0; i < t->part_count[table]; i++) {
                *rows += t->parts[table][i]->rows;
                *bytes += t->parts[table][i]->bytes;
        }
}

static void widen(int64_t *oldest, int64_t *newest, int64_t from, int64_t to)
{
        *oldest = from < *oldest ? from : *oldest;
        *newest = to > *newest ? to : *newest;
}

/* Bounds in a log are rounded outwards to milliseconds, past what nanoseconds can say at the ends. */
static int64_t ns_of_us(int64_t us)
{
        int64_t ns;

        return __builtin_mul_overflow(us, 1000, &ns) ? (us < 0 ? INT64_MIN : INT64_MAX) : ns;
}

enum status profile_store_stat(struct profile_store *s, struct profile_store_stat *ret, struct error *err)
{
        struct profile_store_stat stat = { 0 };
        int64_t oldest = INT64_MAX, newest = INT64_MIN;
        struct tables *t;
        enum status st;

        profile_store_health(s, &stat.health);
        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        stat.queued_bytes = s->head_bytes;
        stat.queued_batches = s->head_count;
        stat.queue_disk_bytes =
                s->queue ? raw_queue_bytes(s->queue) : 0; /* a reader's last reload may have failed */
        stat.failed_flushes = s->failed_flushes;
        stat.damaged_lookups = (uint64_t)location_rows_damaged();
        stat.torn_bytes = s->report.torn_bytes;
        stat.damaged_segments = s->report.damaged_segments;
        memcpy(stat.last_failure, s->last_failure.text, sizeof stat.last_failure);
        for (size_t i = 0; i < s->head_count; i++)
                widen(&oldest, &newest, s->head[i]->oldest_us, s->head[i]->newest_us);
        pthread_mutex_unlock(&s->lock);
        sum_parts(t, TABLE_SAMPLES, &stat.sample_rows, &stat.sample_files, &stat.bytes);
        sum_parts(t, TABLE_STACKS, &stat.stack_rows, &stat.stack_files, &stat.bytes);
        sum_parts(t, TABLE_LOCATIONS, &stat.location_rows, &stat.location_files, &stat.bytes);
        for (size_t i = 0; i < t->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *p = t->parts[TABLE_SAMPLES][i];

                if (p->min_us != INT64_MIN)
                        widen(&oldest, &newest, p->min_us, p->max_us);
        }
        if (oldest <= newest) {
                stat.oldest_unix_ns = ns_of_us(oldest);
                stat.newest_unix_ns = ns_of_us(newest);
        }
        st = unresolved(t, &stat.unresolved_locations, err);
        tables_unref(t);
        if (!st)
                *ret = stat;
        return st;
}
