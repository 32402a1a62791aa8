/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/expiry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/stable_clock.h"
#include "common/text/number_text.h"

#define S_PER_DAY INT64_C(86400)
#define US_PER_S INT64_C(1000000)

static struct metric expired_files =
        METRIC_COUNTER("cairn_store_expired_files_total", "Files of the tables that retention removed.", "");
static struct metric expired_rows =
        METRIC_COUNTER("cairn_store_expired_rows_total", "Rows of the tables that retention removed.", "");
static struct metric expired_bytes =
        METRIC_COUNTER("cairn_store_expired_bytes_total", "Bytes of the tables that retention removed.", "");

static struct metric rewritten_files = METRIC_COUNTER("cairn_store_rewritten_files_total",
                                                      "Files of samples that retention rewrote without some rows.", "");

static const char *const reason_names[] = {
        [EXPIRY_NONE] = "",         [EXPIRY_AGE] = "age",       [EXPIRY_SIZE] = "size",
        [EXPIRY_UNUSED] = "unused", [EXPIRY_LABELS] = "labels",
};

const char *expiry_reason_name(enum expiry_reason reason)
{
        return reason_names[reason];
}

static void log_removed(const struct expired_day *d)
{
        char date[32] = "", of_date[48] = "";

        if (d->table != TABLE_LOCATIONS) {
                format_table_day(d->day, date);
                snprintf(of_date, sizeof of_date, " of %s", date);
        }
        log_info("store", "retention (%s) removed %s, %" PRIu64 " bytes of %s%s: %s deleted, %" PRIu64 " rewritten",
                 reason_names[d->reason], COUNTED(d->rows, "row", "rows"), d->bytes, table_name(d->table), of_date,
                 COUNTED(d->files, "file", "files"), d->rewritten);
}

void retention_report_removed(const struct expired_day *d)
{
        log_removed(d);
        metric_add(&expired_files, (int64_t)d->files);
        metric_add(&rewritten_files, (int64_t)d->rewritten);
        metric_add(&expired_rows, (int64_t)d->rows);
        metric_add(&expired_bytes, (int64_t)d->bytes);
}

void expiry_register_metrics(void)
{
        metric_register(&expired_files);
        metric_register(&rewritten_files);
        metric_register(&expired_rows);
        metric_register(&expired_bytes);
}

bool retention_find_now(const struct tables *t, int64_t *now_s_ret, int64_t *newest_day_ret)
{
        int64_t newest_s = INT64_MIN, newest_day = INT64_MIN, now_ns, latest_ns;

        for (size_t i = 0; i < t->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *part = t->parts[TABLE_SAMPLES][i];
                int64_t s = (part->day + 1) * S_PER_DAY;

                if (!part->has_day)
                        continue;
                if (part->max_us / US_PER_S < s)
                        s = part->max_us / US_PER_S;
                newest_s = s > newest_s ? s : newest_s;
                newest_day = part->day > newest_day ? part->day : newest_day;
        }
        if (newest_day == INT64_MIN)
                return false;
        stable_clock_get_range(&now_ns, &latest_ns);
        *now_s_ret = now_ns / 1000000000;
        if (*now_s_ret > newest_s + S_PER_DAY)
                *now_s_ret = newest_s + S_PER_DAY;
        *newest_day_ret = newest_day;
        return true;
}

enum status expiry_add_day(struct expiry *e, const struct expired_day *day, struct error *err)
{
        if (!array_reserve(&e->days, &e->capacity, e->count))
                return error_no_memory(err);
        e->days[e->count++] = *day;
        return ST_OK;
}

enum status expiry_add_part(struct expiry *e, const char *name, const struct expired_part *part, struct error *err)
{
        char *copy = strdup(name);

        if (!copy || !array_reserve(&e->parts, &e->part_capacity, e->part_count)) {
                free(copy);
                return error_no_memory(err);
        }
        e->parts[e->part_count] = *part;
        e->parts[e->part_count++].name = copy;
        return ST_OK;
}

void expiry_deinit(struct expiry *e)
{
        for (size_t i = 0; i < e->part_count; i++)
                free(e->parts[i].name);
        free(e->parts);
        free(e->days);
        *e = (struct expiry){ 0 };
}
