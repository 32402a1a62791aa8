/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch on its way to the profile store, whatever the protocol: its id and origin, the counting of refusals, the
 * append, the wait of --ack=store, and the answer to a failure.
 */
#include "server/core/ingest.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "common/stable_clock.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "grpc/grpc_server.h"
#include "http/handler_pool.h"
#include "profile-formats/input/content_kind.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_json.h"
#include "profile-formats/profile_accept.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "profile-store/queue/head_page.h"

#define NS_PER_S INT64_C(1000000000)

static struct metric batches = METRIC_COUNTER("cairn_ingest_batches_total", "Batches acknowledged.", "");
static struct metric duplicates =
        METRIC_COUNTER("cairn_ingest_duplicate_batches_total", "Batches that were sent again and counted once.", "");
static struct metric samples = METRIC_COUNTER("cairn_ingest_samples_total", "Samples acknowledged.", "");
static struct metric uncommitted = METRIC_COUNTER(
        "cairn_ingest_uncommitted_total",
        "Batches of --ack=store that were refused because the object store had not taken them in time.", "");
static struct metric rejected =
        METRIC_COUNTER("cairn_ingest_rejected_samples_total", "Samples rejected individually in accepted batches.", "");
static struct histogram duration =
        HISTOGRAM("cairn_ingest_duration_seconds",
                  "Time from the last byte of a batch until it is durable and can be acknowledged.", "");
#define STORE_ACK_S 8 /* until the answer of --ack=store: OTLP exporters give up after 10 seconds */
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

void register_ingest_duration(void)
{
        metric_register(&duration.metric);
        metric_register(&uncommitted);
}

static bool parse_batch_id(const char *hex, struct hash128 *ret)
{
        struct build_id bytes; /* reuses its hexadecimal parser */

        if (!build_id_from_hex(&bytes, hex, strlen(hex)) || bytes.size != sizeof ret->bytes)
                return false;
        memcpy(ret->bytes, bytes.bytes, sizeof ret->bytes);
        return true;
}

enum status compute_batch_id(const struct batch_source *source, struct hash128 *ret, struct error *err)
{
        _cleanup_buf_ struct buf seed;
        struct hash128 body_hash;

        buf_init(&seed, MiB(1));
        if (source->header)
                return parse_batch_id(source->header, ret)
                               ? ST_OK
                               : error_set(err, ST_USAGE, "X-Cairn-Batch takes 32 hexadecimal digits");
        body_hash = hash_bytes128(source->size ? source->body : "", source->size);
        buf_append(&seed, body_hash.bytes, sizeof body_hash.bytes);
        buf_printf(&seed, "%s\n%s", source->uri, source->token ? source->token : "");
        if (buf_status(&seed, err, "batch id"))
                return seed.failed;
        *ret = hash_bytes128(seed.data, seed.size);
        return ST_OK;
}

enum status read_batch_id(const struct http_request *req, struct hash128 *ret, struct error *err)
{
        struct batch_source source = { .header = http_header(req, "X-Cairn-Batch"),
                                       .uri = http_uri(req),
                                       .token = http_token(req) };

        source.body = http_body(req, &source.size);
        return compute_batch_id(&source, ret, err);
}

struct ingest_batch begin_http_batch(const struct http_request *req)
{
        return (struct ingest_batch){ .tenant = get_request_tenant(req),
                                      .is_identified = http_header(req, "X-Cairn-Batch") != NULL,
                                      .is_request = true,
                                      .arrived_ns = http_arrived_ns(req),
                                      .agent = http_header(req, "User-Agent"),
                                      .address = http_peer(req),
                                      .sender = pool_sender_number(http_token(req), http_peer_number(req)) };
}

struct ingest_batch begin_grpc_batch(const struct grpc_call *call)
{
        return (struct ingest_batch){ .tenant = grpc_call_tenant(call),
                                      .is_identified = grpc_call_metadata(call, "x-cairn-batch") != NULL,
                                      .is_request = true,
                                      .arrived_ns = grpc_call_arrived_ns(call),
                                      .agent = grpc_call_metadata(call, "user-agent"),
                                      .address = grpc_call_peer(call),
                                      .sender =
                                              pool_sender_number(grpc_call_token(call), grpc_call_peer_number(call)) };
}

void set_arrival_times(struct ingest_batch *batch, struct profile *p, int64_t arrival_unix_ns)
{
        struct {
                struct hash128 id;
                struct timespec arrival;
                uint64_t count;
        } seed = { .id = batch->id };
        static atomic_uint_least64_t count;
        bool is_timed = p->samples.count == 0;

        for (uint32_t i = 0; i < p->samples.count && !is_timed; i++)
                is_timed = p->samples.items[i].time_unix_ns > 0;
        profile_set_missing_times(p, arrival_unix_ns);
        if (is_timed || batch->is_identified)
                return;
        clock_gettime(CLOCK_REALTIME, &seed.arrival);
        seed.count = atomic_fetch_add(&count, 1);
        batch->id = hash_bytes128(&seed, sizeof seed);
}

bool check_history(struct http_request *req, bool *ret)
{
        const struct ingest_batch batch = begin_http_batch(req);
        const char *header = http_header(req, HISTORY_HEADER);

        *ret = header;
        if (!header)
                return true;
        if (strcmp(header, "1") == 0)
                return http_check_scope(req, SCOPE_HISTORY);
        count_ingest_failure(&batch, ST_USAGE, HISTORY_HEADER " takes 1");
        http_fail_code(req, 400, "usage", HISTORY_HEADER " takes 1");
        return false;
}

/* 0 seconds: no bound. */
static struct profile_window get_accepted_window(const struct tenant *t, bool is_history)
{
        struct profile_window w = { INT64_MIN, INT64_MAX };
        uint64_t max_age_s = t->max_age_s, max_ahead_s = t->max_ahead_s; /* read once: a reload may change them */
        int64_t earliest, latest;

        stable_clock_get_range(&earliest, &latest);
        if (!is_history && max_age_s && earliest > 0 && max_age_s < (uint64_t)earliest / NS_PER_S)
                w.oldest_unix_ns = earliest - (int64_t)max_age_s * NS_PER_S;
        if (max_ahead_s && (latest < 0 || max_ahead_s < (uint64_t)(INT64_MAX - latest) / NS_PER_S))
                w.newest_unix_ns = latest + (int64_t)max_ahead_s * NS_PER_S;
        return w;
}

static void record_refusal(const struct ingest_batch *batch, enum ingest_problem problem, uint64_t count,
                           const char *text)
{
        const struct ingest_refusal r = { problem, count, text, batch->agent, batch->address };

        if (batch->tenant) /* NULL: refused before the tenant was selected */
                ingest_history_add_refusal(batch->tenant->ingested, &r, ingest_time_now());
}

static void count_rejections(const struct ingest_batch *batch, const struct profile *profile,
                             const struct profile_rejections *by_reason)
{
        uint64_t known = by_reason->too_old + by_reason->too_far_ahead + by_reason->long_label_key;
        const char *text = profile->rejected_reason;

        metric_add(&rejected, (int64_t)profile->rejected_samples);
        metric_add(&too_old, (int64_t)by_reason->too_old);
        metric_add(&too_far_ahead, (int64_t)by_reason->too_far_ahead);
        metric_add(&long_label_key, (int64_t)by_reason->long_label_key);
        metric_add(&malformed, (int64_t)(profile->rejected_samples - known));
        record_refusal(batch, INGEST_TOO_OLD, by_reason->too_old, text);
        record_refusal(batch, INGEST_TOO_FAR_AHEAD, by_reason->too_far_ahead, text);
        record_refusal(batch, INGEST_LABEL_KEY, by_reason->long_label_key, text);
        record_refusal(batch, INGEST_MALFORMED, profile->rejected_samples - known, text);
}

/*
 * Gives up the place in the thread pool meanwhile, so that others can join the commit. A batch without a place is on
 * the disk, as all that are refused here.
 */
static enum status wait_for_commit(const struct ingest_batch *batch, const struct hash128 *id, struct error *err)
{
        enum status st = http_begin_wait(err);

        if (st)
                return error_set(err, ST_TIMEOUT, "too many batches wait for the object store; send it again later");
        st = profile_store_wait_flushed(batch->tenant->profiles, *id, STORE_ACK_S * 1000, err);
        http_end_wait();
        metric_add(&uncommitted, st != ST_OK);
        return st;
}

enum status append_ingested_batch(const struct ingest_batch *batch, struct profile *profile, bool *duplicate_ret,
                                  struct error *err)
{
        struct tenant *t = batch->tenant;
        const struct profile_window window = get_accepted_window(t, batch->is_history);
        _cleanup_free_ struct batch_hosts *hosts = batch_hosts_create(profile);
        struct ingested_batch recorded = { profile, hosts, batch->agent, batch->address, false };
        struct profile_rejections by_reason;
        bool duplicate = false;
        enum status st = profile_reject_unacceptable(profile, &window, &by_reason, err);

        if (!st && profile->samples.count)
                st = profile_store_append_from(t->profiles, profile, batch->sender, batch->id, &duplicate, err);
        if (!st && t->acks_in_store && batch->is_request)
                st = wait_for_commit(batch, &batch->id, err);
        if (st)
                return st;
        histogram_observe(&duration, monotonic_ns() - batch->arrived_ns);
        metric_add(&batches, 1);
        tenant_count_batches(t, 1, duplicate ? 0 : profile->samples.count);
        recorded.is_duplicate = duplicate;
        ingest_history_add_batch(t->ingested, &recorded, ingest_time_now());
        count_rejections(batch, profile, &by_reason);
        if (duplicate)
                metric_add(&duplicates, 1);
        else
                metric_add(&samples, profile->samples.count);
        if (duplicate_ret)
                *duplicate_ret = duplicate;
        return ST_OK;
}

/* One that was set aside meanwhile is in the quarantine of this node: the gateway need not keep it. */
static enum status wait_for_page_commit(const struct ingest_batch *batch, const void *page, size_t n, struct error *err)
{
        struct head_page_reader r;
        struct raw_record record;
        bool found = true;
        enum status st = head_page_read(&r, page, n, err);

        while (!st && found) {
                st = head_page_next(&r, &record, &found, err);
                if (st || !found)
                        break;
                st = wait_for_commit(batch, &record.batch_id, err);
                if (st == ST_BAD_DATA)
                        st = ST_OK;
        }
        return st;
}

enum status append_forwarded_batches(const struct ingest_batch *batch, const void *page, size_t n,
                                     struct forwarded_batches *ret, struct error *err)
{
        enum status st = profile_store_append_page(batch->tenant->profiles, page, n, ret, err);

        if (!st && batch->tenant->acks_in_store)
                st = wait_for_page_commit(batch, page, n, err);
        if (st)
                return st;
        histogram_observe(&duration, monotonic_ns() - batch->arrived_ns);
        metric_add(&batches, (int64_t)ret->batches);
        metric_add(&duplicates, (int64_t)ret->duplicates);
        metric_add(&samples, (int64_t)ret->samples);
        tenant_count_batches(batch->tenant, ret->batches, ret->samples);
        return ST_OK;
}

enum status fail_if_all_rejected(const struct profile *p, struct error *err)
{
        return p->rejected_samples ? profile_check_samples(p, err) : ST_OK;
}

#define RECEIVED_BEFORE "this batch was received before: no samples were added"

void describe_added_samples(const struct profile *p, bool duplicate, struct ingest_remark *ret)
{
        *ret = (struct ingest_remark){ "" };
        if (duplicate)
                snprintf(ret->text, sizeof ret->text, "%s", RECEIVED_BEFORE);
        else if (!p->samples.count)
                profile_explain_absence(p, ret->text, sizeof ret->text);
        else
                snprintf(ret->text, sizeof ret->text, "%s", p->note);
}

void set_ingest_remark(struct http_request *req, const struct ingest_remark *r)
{
        if (*r->text)
                http_set_header(req, MESSAGE_HEADER, PRINTABLE(r->text));
}

static void add_expiring_message(uint64_t age_s, struct otlp_outcome *ret)
{
        size_t used = strlen(ret->message);
        char age[NUMBER_TEXT_SIZE];

        snprintf(ret->message + used, sizeof ret->message - used,
                 "%s%s than the retention of %s: the next maintenance removes them unless the age of --retain-samples "
                 "is increased before",
                 used ? "; " : "", COUNTED(ret->expiring, "sample is older", "samples are older"),
                 format_age(age_s, age));
}

/* A duplicate is a success with a warning: partial_success with no rejected samples. So are expiring samples. */
static void describe_otlp_outcome(const struct ingest_batch *batch, const struct profile *p, bool duplicate,
                                  struct otlp_outcome *ret)
{
        static const char again[] = RECEIVED_BEFORE;
        uint64_t age_s = 0;

        *ret = (struct otlp_outcome){ .rejected = p->rejected_samples };
        if (p->rejected_samples)
                snprintf(ret->message, sizeof ret->message, "%s%s%s rejected: %s", duplicate ? again : "",
                         duplicate ? "; " : "", COUNTED(p->rejected_samples, "sample", "samples"), p->rejected_reason);
        else if (duplicate)
                snprintf(ret->message, sizeof ret->message, "%s", again);
        else if (!p->samples.count && *p->note)
                profile_explain_absence(p, ret->message, sizeof ret->message);
        if (batch->is_history && !duplicate)
                ret->expiring = profile_store_count_expiring(batch->tenant->profiles, p, &age_s);
        if (ret->expiring)
                add_expiring_message(age_s, ret);
}

/* OTLP demands that unknown members are skipped, so the telemetry of another kind is a request without samples. A
 * request without any content is an empty one by intention. */
static void note_empty_request(const struct otlp_body *body, struct profile *p)
{
        const struct content_description content = content_describe(body->bytes, body->size);

        if (content.kind == CONTENT_FOREIGN)
                content_explain(body->bytes, body->size, p->note, sizeof p->note);
        else if (body->size && (!body->is_json || content.kind == CONTENT_OTLP_JSON))
                snprintf(p->note, sizeof p->note, "the request of %zu bytes has no sample", body->size);
}

enum status ingest_otlp_batch(const struct ingest_batch *batch, const struct otlp_body *body, struct otlp_outcome *ret,
                              struct error *err)
{
        struct ingest_batch own = *batch;
        bool duplicate = false;
        struct profile p;
        enum status st = body->is_json ? otlp_json_decode(body->bytes, body->size, &p, err)
                                       : otlp_decode(body->bytes, body->size, &p, err);

        if (st)
                return st;
        if (!p.samples.count)
                note_empty_request(body, &p);
        set_arrival_times(&own, &p, wall_clock_ns());
        st = append_ingested_batch(&own, &p, &duplicate, err);
        if (!st)
                describe_otlp_outcome(batch, &p, duplicate, ret);
        profile_deinit(&p);
        return st;
}

static enum ingest_problem get_ingest_problem(enum status st)
{
        switch (st) {
        case ST_BAD_DATA:
        case ST_USAGE:
                return INGEST_BAD_DATA;
        case ST_TOO_BIG:
                return INGEST_TOO_BIG;
        case ST_BUSY:
        case ST_TIMEOUT:
                return INGEST_BUSY;
        case ST_UNSUPPORTED:
                return INGEST_UNSUPPORTED;
        default:
                return INGEST_INTERNAL;
        }
}

void count_ingest_failure(const struct ingest_batch *batch, enum status st, const char *text)
{
        static struct metric *const counters[] = { [INGEST_BAD_DATA] = &bad_data,
                                                   [INGEST_TOO_BIG] = &too_big,
                                                   [INGEST_BUSY] = &busy,
                                                   [INGEST_UNSUPPORTED] = &unsupported,
                                                   [INGEST_INTERNAL] = &internal };
        enum ingest_problem problem = get_ingest_problem(st);

        metric_add(counters[problem], 1);
        record_refusal(batch, problem, 1, text);
}

bool report_ingest_failure(const struct ingest_batch *batch, enum status st, const struct error *err)
{
        count_ingest_failure(batch, st, err->text);
        if (st != ST_OS && st != ST_NO_MEMORY)
                return false;
        log_error("ingest", "%s", err->text);
        return true;
}

void fail_ingest(struct http_request *req, enum status st, const struct error *err)
{
        const struct ingest_batch batch = begin_http_batch(req);

        if (st == ST_TIMEOUT && !deadline_expired(http_request_deadline(req))) {
                count_ingest_failure(&batch, st, err->text);
                http_fail_code(req, 503, "not_committed", "%s", err->text);
                return;
        }
        if (!report_ingest_failure(&batch, st, err)) {
                http_fail(req, st, err);
                return;
        }
        http_fail_code(req, 503, "system", "%s; send it again later", err->text);
}

void fail_ingest_call(struct grpc_call *call, const struct ingest_batch *batch, enum status st, const struct error *err)
{
        bool is_late = st == ST_TIMEOUT && !deadline_expired(grpc_call_deadline(call));

        (void)report_ingest_failure(batch, st, err);
        grpc_call_fail_status(call, is_late ? ST_BUSY : st, err);
}
