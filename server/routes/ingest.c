/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes/ingest.h"

#include <string.h>

#include "common/metrics.h"
#include "common/stable_clock.h"
#include "profile-formats/profile_accept.h"

#define NS_PER_S INT64_C(1000000000)

static struct metric batches = METRIC_COUNTER("cairn_ingest_batches_total", "Batches acknowledged.", "");
static struct metric duplicates =
        METRIC_COUNTER("cairn_ingest_duplicate_batches_total", "Batches that were sent again and counted once.", "");
static struct metric samples = METRIC_COUNTER("cairn_ingest_samples_total", "Samples acknowledged.", "");
static struct metric rejected = METRIC_COUNTER("cairn_ingest_rejected_samples_total",
                                               "Samples refused one by one in batches that were taken.", "");
#define REJECTIONS(reason) METRIC_COUNTER("cairn_ingest_rejections_total", "Rejected samples by reason.", reason)
static struct metric too_old = REJECTIONS("reason=\"too_old\"");
static struct metric too_far_ahead = REJECTIONS("reason=\"too_far_ahead\"");
static struct metric long_label_key = REJECTIONS("reason=\"label_key\"");
static struct metric malformed = REJECTIONS("reason=\"malformed\"");
#define FAILURES(reason) METRIC_COUNTER("cairn_ingest_failures_total", "Batches refused.", reason)
static struct metric bad_data = FAILURES("reason=\"bad_data\"");
static struct metric too_big = FAILURES("reason=\"too_big\"");
static struct metric busy = FAILURES("reason=\"busy\"");
static struct metric unsupported = FAILURES("reason=\"unsupported\"");
static struct metric internal = FAILURES("reason=\"internal\"");

static bool parse_batch_id(const char *hex, struct hash128 *ret)
{
        struct build_id bytes; /* the same reader of hexadecimal */

        if (!build_id_from_hex(&bytes, hex, strlen(hex)) || bytes.size != sizeof ret->bytes)
                return false;
        memcpy(ret->bytes, bytes.bytes, sizeof ret->bytes);
        return true;
}

enum status read_batch_id(const struct http_request *req, struct hash128 *ret, struct error *err)
{
        const char *header = http_header(req, "X-Cairn-Batch");
        const char *token = http_token(req);
        _cleanup_buf_ struct buf seed;
        struct hash128 body_hash;
        const uint8_t *body;
        size_t n;

        buf_init(&seed, MiB(1));
        if (header)
                return parse_batch_id(header, ret)
                               ? ST_OK
                               : error_set(err, ST_USAGE, "X-Cairn-Batch takes 32 hexadecimal digits");
        body = http_body(req, &n);
        body_hash = hash_bytes128(n ? (const void *)body : "", n);
        buf_append(&seed, body_hash.bytes, sizeof body_hash.bytes);
        buf_printf(&seed, "%s\n%s", http_uri(req), token ? token : "");
        if (buf_status(&seed, err, "batch id"))
                return seed.failed;
        *ret = hash_bytes128(seed.data, seed.size);
        return ST_OK;
}

bool check_history(struct http_request *req, bool *ret)
{
        const char *header = http_header(req, HISTORY_HEADER);

        *ret = header;
        if (!header)
                return true;
        if (strcmp(header, "1") == 0)
                return http_check_scope(req, SCOPE_HISTORY);
        count_ingest_failure(ST_USAGE);
        http_fail_code(req, 400, "usage", HISTORY_HEADER " takes 1");
        return false;
}

/* 0 seconds: no bound. */
static struct profile_window get_accepted_window(const struct server_options *o, bool is_history)
{
        struct profile_window w = { INT64_MIN, INT64_MAX };
        int64_t earliest, latest;

        stable_clock_get_range(&earliest, &latest);
        if (!is_history && o->max_age_s && earliest > 0 && o->max_age_s < (uint64_t)earliest / NS_PER_S)
                w.oldest_unix_ns = earliest - (int64_t)o->max_age_s * NS_PER_S;
        if (o->max_ahead_s && (latest < 0 || o->max_ahead_s < (uint64_t)(INT64_MAX - latest) / NS_PER_S))
                w.newest_unix_ns = latest + (int64_t)o->max_ahead_s * NS_PER_S;
        return w;
}

static void count_rejections(const struct profile *profile, const struct profile_rejections *by_reason)
{
        uint64_t here = by_reason->too_old + by_reason->too_far_ahead + by_reason->long_label_key;

        metric_add(&rejected, (int64_t)profile->rejected_samples);
        metric_add(&too_old, (int64_t)by_reason->too_old);
        metric_add(&too_far_ahead, (int64_t)by_reason->too_far_ahead);
        metric_add(&long_label_key, (int64_t)by_reason->long_label_key);
        metric_add(&malformed, (int64_t)(profile->rejected_samples - here));
}

enum status append_ingested_batch(struct server *s, struct profile *profile, struct hash128 batch_id, bool is_history,
                                  bool *duplicate_ret, struct error *err)
{
        const struct profile_window window = get_accepted_window(s->options, is_history);
        struct profile_rejections by_reason;
        bool duplicate = false;
        enum status st = profile_reject_unacceptable(profile, &window, &by_reason, err);

        if (!st && profile->samples.count)
                st = profile_store_append(s->profiles, profile, batch_id, &duplicate, err);
        if (st)
                return st;
        metric_add(&batches, 1);
        count_rejections(profile, &by_reason);
        if (duplicate)
                metric_add(&duplicates, 1);
        else
                metric_add(&samples, profile->samples.count);
        if (duplicate_ret)
                *duplicate_ret = duplicate;
        return ST_OK;
}

void count_ingest_failure(enum status st)
{
        switch (st) {
        case ST_BAD_DATA:
        case ST_USAGE:
                metric_add(&bad_data, 1);
                break;
        case ST_TOO_BIG:
                metric_add(&too_big, 1);
                break;
        case ST_BUSY:
                metric_add(&busy, 1);
                break;
        case ST_UNSUPPORTED:
                metric_add(&unsupported, 1);
                break;
        default:
                metric_add(&internal, 1);
        }
}

void fail_ingest(struct http_request *req, enum status st, const struct error *err)
{
        count_ingest_failure(st);
        if (st != ST_OS && st != ST_NO_MEMORY) {
                http_fail(req, st, err);
                return;
        }
        log_error("ingest", "%s", err->text);
        http_fail_code(req, 503, "system", "%s; send it again later", err->text);
}
