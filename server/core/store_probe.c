/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/store_probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "storage/s3/s3_location.h"
#include "storage/storage_probe.h"

#define PASSED_KEY "probe/passed"
#define PASSED_MAX_BYTES KiB(4)
#define PASSED_FOR_MS INT64_C(86400000)

/* The first line of the object; the second is the time. It changes with what the probe tries. */
static enum status describe_store(struct storage *tables, char **ret, struct error *err)
{
        _cleanup_s3_location_ struct s3_location l = { 0 };
        enum status st = s3_location_parse(storage_root(tables), &l, err);

        if (st)
                return st;
        return asprintf(ret, "probe 1 %s %s/%s\n", l.base_url, l.bucket, l.prefix) < 0 ? error_no_memory(err) : ST_OK;
}

/* How long ago a probe passed, with the object in text; negative if none did within a day, or the store does not tell.
 */
static int64_t read_passed_age_ms(struct storage *tables, const char *store, struct buf *text)
{
        size_t n = strlen(store);
        int64_t passed_ms, age_ms;

        if (storage_read(tables, PASSED_KEY, text, NULL) || buf_append(text, "", 1) ||
            strncmp((const char *)text->data, store, n) != 0 ||
            sscanf((const char *)text->data + n, "%" SCNd64, &passed_ms) != 1 ||
            __builtin_sub_overflow(storage_now_ms(tables), passed_ms, &age_ms))
                return -1;
        return age_ms < PASSED_FOR_MS ? age_ms : -1;
}

static enum status put_passed(struct storage *tables, const void *text, size_t n, struct error *err)
{
        enum status st = storage_put(tables, PASSED_KEY, text, n, STORAGE_REPLACE, err);

        return st ? error_prefix(err, st, "cannot use %.80s", storage_root(tables)) : ST_OK;
}

static enum status note_passed(struct storage *tables, const char *store, struct error *err)
{
        _cleanup_buf_ struct buf text = { .max = PASSED_MAX_BYTES };
        enum status st = buf_printf(&text, "%s%" PRId64 "\n", store, storage_now_ms(tables));

        if (st)
                return error_no_memory(err);
        return put_passed(tables, text.data, text.size, err);
}

/* The service puts the object as it was: else a store that denies writes would be found by the first flush. */
static enum status accept_passed(struct storage *tables, const struct buf *text, int64_t age_ms, struct error *err)
{
        enum status st = put_passed(tables, text->data, text->size - 1, err); /* without the 0 that ends it */

        if (st)
                return st;
        log_info("serve",
                 "tables are in %s, whose clock is %+.1f s from this host's; it passed the probe %.1f hours ago",
                 storage_root(tables), (double)(storage_now_ms(tables) - wall_clock_ns() / 1000000) / 1000,
                 (double)age_ms / 3600000);
        return ST_OK;
}

static enum status run_probe(struct storage *tables, const char *store, struct error *err)
{
        struct storage_probe p;
        enum status st = storage_run_probe(tables, &p, err);

        if (st)
                return error_prefix(err, st, "cannot use %.80s", storage_root(tables));
        if (!p.has_ranges || !p.reads_own_writes || !p.lists_own_writes)
                return error_set(err, ST_UNSUPPORTED, "%.80s cannot hold tables: %s", storage_root(tables),
                                 !p.has_ranges         ? "it does not answer ranges of objects"
                                 : !p.reads_own_writes ? "an object is not read as it was written or removed"
                                                       : "a list lacks an object that was written before");
        log_info("serve", "tables are in %s, whose clock is %+.1f s from this host's; of %d racing creates %u failed",
                 storage_root(tables), (double)p.ahead_ms / 1000, STORAGE_PROBE_RACERS, p.failed);
        if (!storage_lacks_conditional_put(&p))
                return note_passed(tables, store, err);
        log_warn("serve",
                 "%s does not refuse to replace objects: of %d racing creates of one key %u succeeded, %u were "
                 "refused and %u failed; no other process may ever write there",
                 storage_root(tables), STORAGE_PROBE_RACERS, p.created, p.refused, p.failed);
        return ST_OK;
}

enum status store_probe_require(void *context, struct storage *tables, struct error *err)
{
        _cleanup_free_ char *store = NULL;
        _cleanup_buf_ struct buf text = { .max = PASSED_MAX_BYTES };
        int64_t age_ms;
        enum status st;

        (void)context;

        if (!is_s3_url(storage_root(tables)))
                return ST_OK;
        st = describe_store(tables, &store, err);
        if (st)
                return st;
        age_ms = read_passed_age_ms(tables, store, &text);
        return age_ms < 0 ? run_probe(tables, store, err) : accept_passed(tables, &text, age_ms, err);
}
