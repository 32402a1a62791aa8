/* SPDX-License-Identifier: Apache-2.0 */
/* Ingest at the paths of Pyroscope's clients: /ingest and push.v1. docs/formats/ingest.md */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/threads/condition.h"
#include "pipeline/jfr_job.h"
#include "profile-formats/folded.h"
#include "profile-formats/input/content_kind.h"
#include "profile-formats/input/push.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/pyroscope_type.h"
#include "profile-formats/speedscope.h"
#include "profile-formats/stack_trie.h"
#include "query/engine/unit_text.h"
#include "server/api/profiles/app_name.h"
#include "server/core/ingest.h"
#include "server/core/route_tables.h"
#include "server/protocol/connect_call.h"
#include "server/protocol/multipart.h"

/* ---- POST /ingest ---- */

#define DEFAULT_SAMPLE_RATE 100 /* Hz; Pyroscope's default */
#define NS_PER_S INT64_C(1000000000)
#define NS_OF_1971 (INT64_C(365) * 86400 * NS_PER_S)
#define RECORDING_LOOK_NS INT64_C(50000000) /* interval at which a waiting request checks for cancellation */

#define STACK_FORMATS "pprof, folded, groups, lines, trie, tree, speedscope or jfr"

/* A query parameter; an empty one is absent, as for Pyroscope. */
static const char *get_parameter(const struct http_request *req, const char *name)
{
        const char *value = http_query(req, name);

        return value && *value ? value : NULL;
}

/* The parts of a request's body; data NULL: absent. */
struct ingest_body {
        const uint8_t *profile, *previous, *jfr, *labels;
        size_t size, previous_size, jfr_size, labels_size;
        struct json_value config; /* sample_type_config */
        bool has_config, is_form;
};

/* Find a part of a form that may be absent. */
static enum status find_form_part(const char *type, const uint8_t *body, size_t n, const char *name,
                                  const uint8_t **ret, size_t *size_ret, struct error *err)
{
        enum status st = multipart_find(type, body, n, name, ret, size_ret, err);

        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status read_form(const char *type, const uint8_t *data, size_t n, struct ingest_body *b, struct error *err)
{
        const uint8_t *config = NULL;
        size_t config_size = 0;
        enum status st = find_form_part(type, data, n, "profile", &b->profile, &b->size, err);

        if (!st)
                st = find_form_part(type, data, n, "jfr", &b->jfr, &b->jfr_size, err);
        if (!st && !b->profile && !b->jfr)
                st = error_set(err, ST_BAD_DATA, "the multipart body has no part 'profile' or 'jfr'");
        if (!st)
                st = find_form_part(type, data, n, "labels", &b->labels, &b->labels_size, err);
        if (!st)
                st = find_form_part(type, data, n, "prev_profile", &b->previous, &b->previous_size, err);
        if (!st)
                st = find_form_part(type, data, n, "sample_type_config", &config, &config_size, err);
        if (!st && config_size > LIMIT_TYPE_CONFIG_BYTES)
                return error_set(err, ST_TOO_BIG, "sample_type_config is larger than %zu bytes",
                                 LIMIT_TYPE_CONFIG_BYTES);
        if (!st && config) {
                st = json_value_parse(config, config_size, &b->config, err);
                if (st)
                        return error_prefix(err, st, "sample_type_config");
                b->has_config = true;
        }
        return st;
}

static enum status read_ingest_body(struct http_request *req, struct ingest_body *ret, struct error *err)
{
        const char *type = http_header(req, "Content-Type");
        struct ingest_body b = { .is_form = type && strncasecmp(type, "multipart/form-data", 19) == 0 };
        const uint8_t *data;
        enum status st = ST_OK;
        size_t n;

        data = http_body(req, &n);
        if (b.is_form)
                st = read_form(type, data, n, &b, err);
        else {
                b.profile = data;
                b.size = n;
        }
        if (!st)
                *ret = b;
        return st;
}

/* Old agents write microseconds instead of nanoseconds. */
static void clear_impossible_times(struct profile *p)
{
        for (uint32_t i = 0; i < p->samples.count; i++)
                if (p->samples.items[i].time_unix_ns < NS_OF_1971)
                        p->samples.items[i].time_unix_ns = 0;
}

static enum status decode_ingested_pprof(const struct ingest_body *b, struct profile *ret, struct error *err)
{
        const struct json_value *config = b->has_config ? &b->config : NULL;
        struct profile p, previous;
        enum status st = pprof_decode(b->profile, b->size, NULL, &p, err);

        if (st)
                return st;
        if (b->previous_size) {
                st = pprof_decode(b->previous, b->previous_size, NULL, &previous, err);
                if (!st) {
                        st = pyroscope_subtract_previous(&p, &previous, config, err);
                        profile_deinit(&previous);
                }
                if (st)
                        error_prefix(err, st, "prev_profile");
        }
        if (!st)
                st = pyroscope_name_types(&p, config, err);
        if (st) {
                profile_deinit(&p);
                return st;
        }
        clear_impossible_times(&p);
        *ret = p;
        return ST_OK;
}

/* The sampling rate in Hz; ST_NOT_FOUND without one. */
static enum status read_sample_rate(const struct http_request *req, uint64_t *ret, struct error *err)
{
        const char *text = get_parameter(req, "sampleRate");

        if (!text)
                return ST_NOT_FOUND;
        if (!parse_uint(text, ret) || *ret > (uint64_t)NS_PER_S)
                return error_set(err, ST_USAGE, "sampleRate '%.40s' is not a whole number up to 1000000000", text);
        return ST_OK;
}

/*
 * Choose the sample type of a format that has stacks only, and its rate in Hz; 0: values stay counts.
 * @param type_ret  NULL: manual upload, the unit is unknown.
 */
static enum status choose_stack_type(const struct http_request *req, struct app_name *app, const char **type_ret,
                                     uint64_t *rate_ret, struct error *err)
{
        const char *units = get_parameter(req, "units");
        struct pyroscope_stack_type type = { 0 };
        uint64_t rate = DEFAULT_SAMPLE_RATE;
        size_t prefix_size;
        enum status st = read_sample_rate(req, &rate, err);

        if (st && st != ST_NOT_FOUND)
                return st;
        if (pyroscope_find_suffix_type(app->service, &type, &prefix_size))
                app->service[prefix_size] = 0;
        else if (units)
                (void)pyroscope_find_unit_type(units, &type);
        else if (!st)
                (void)pyroscope_find_unit_type("samples", &type);
        *rate_ret = type.timed_id ? rate : 0;
        *type_ret = *rate_ret ? type.timed_id : type.id;
        return ST_OK;
}

/* Convert counts at a rate into nanoseconds. */
static enum status scale_to_time(struct profile *p, uint64_t rate, struct error *err)
{
        int64_t period = NS_PER_S / (int64_t)rate;

        for (uint32_t i = 0; i < p->types.count; i++)
                p->types.items[i].period = period;
        for (uint32_t i = 0; i < p->samples.count; i++)
                if (__builtin_mul_overflow(p->samples.items[i].value, period, &p->samples.items[i].value))
                        return error_set(err, ST_BAD_DATA, "a count times the sample period is over 63 bits");
        return ST_OK;
}

static enum status decode_stacks(const struct http_request *req, const char *format, const struct ingest_body *b,
                                 struct app_name *app, struct profile *ret, struct error *err)
{
        uint64_t rate;
        const char *type_id, *known_id;
        enum status st = content_refuse_gzip(b->profile, b->size, err);

        if (!st)
                st = choose_stack_type(req, app, &type_id, &rate, err);
        if (st)
                return st;
        known_id = type_id ? type_id : "samples:samples:count::";
        if (strcmp(format, "speedscope") == 0)
                return speedscope_decode(b->profile, b->size, ret, err);
        if (strcmp(format, "folded") == 0 || strcmp(format, "groups") == 0 || !*format)
                st = folded_decode(b->profile, b->size, type_id, ret, err);
        else if (strcmp(format, "lines") == 0)
                st = folded_decode_lines(b->profile, b->size, type_id, ret, err);
        else if (strcmp(format, "trie") == 0 || strcmp(format, "tree") == 0)
                st = stack_trie_decode(b->profile, b->size, strcmp(format, "trie") ? STACK_TREE : STACK_TRIE, known_id,
                                       ret, err);
        else
                return error_set(err, ST_UNSUPPORTED, "format '%.40s' is not supported; send " STACK_FORMATS, format);
        if (st || !rate)
                return st;
        st = scale_to_time(ret, rate, err);
        if (st)
                profile_deinit(ret);
        return st;
}

/*
 * Limits on JFR recordings: `running` have a worker, `count` includes those that wait for one. A worker may take a
 * minute of CPU time, and may have to wait for memory that other kinds of workers use (sandbox/worker_budget.h).
 * http_begin_wait() gives up the request's place in the thread pool meanwhile, so that other batches are not delayed.
 */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned running, count;
} recordings = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Half of the cores are reserved for other batches. */
static unsigned count_recordings_at_once(void)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);

        return cores > 4 ? (unsigned)cores / 2 : 2;
}

static enum status wait_for_recording_turn(const atomic_bool *cancel, struct error *err)
{
        const unsigned most = count_recordings_at_once();
        enum status st = ST_OK;

        pthread_mutex_lock(&recordings.lock);
        if (recordings.count >= LIMIT_JFR_WAITING)
                st = error_set(err, ST_BUSY, "%d recordings are being read already; retry later", LIMIT_JFR_WAITING);
        recordings.count += !st;
        while (!st && recordings.running >= most) {
                condition_wait_until(&recordings.changed, &recordings.lock, monotonic_ns() + RECORDING_LOOK_NS);
                if (atomic_load(cancel))
                        st = error_set(err, ST_BUSY, "cancelled while waiting for other recordings");
                recordings.count -= st != ST_OK;
        }
        recordings.running += !st;
        pthread_mutex_unlock(&recordings.lock);
        return st;
}

static void end_recording_turn(void)
{
        pthread_mutex_lock(&recordings.lock);
        recordings.running--;
        recordings.count--;
        pthread_cond_signal(&recordings.changed);
        pthread_mutex_unlock(&recordings.lock);
}

static enum status decode_recording_in_turn(const struct jfr_job *job, struct profile *ret, struct error *err)
{
        enum status st = http_begin_wait(err);

        if (st)
                return st;
        st = wait_for_recording_turn(job->cancel, err);
        if (!st) {
                st = jfr_job_decode(job, ret, err);
                end_recording_turn();
        }
        http_end_wait();
        return st;
}

/* Uploads of Pyroscope's Java agent: a form with the parts jfr and labels, or a recording as the body. */
static enum status decode_recording_upload(struct http_request *req, const char *scratch_dir,
                                           const struct ingest_body *b, struct profile *ret, struct error *err)
{
        struct jfr_job job = { .recording = b->is_form ? b->jfr : b->profile,
                               .recording_size = b->is_form ? b->jfr_size : b->size,
                               .labels = b->labels,
                               .labels_size = b->labels_size,
                               .dir = scratch_dir,
                               .cancel = http_request_cancelled(req) };
        uint64_t rate = 0;
        enum status st = read_sample_rate(req, &rate, err);

        if (st && st != ST_NOT_FOUND)
                return st;
        if (!job.recording)
                return error_set(err, ST_BAD_DATA, "the multipart body has no part 'jfr'");
        if (rate)
                job.period_ns = NS_PER_S / (int64_t)rate;
        return decode_recording_in_turn(&job, ret, err);
}

static enum status decode_ingest_body(struct http_request *req, const char *scratch_dir, const struct ingest_body *body,
                                      struct app_name *app, struct profile *ret, struct error *err)
{
        const char *format = get_parameter(req, "format"), *type = http_header(req, "Content-Type");

        if (format ? strcmp(format, "jfr") == 0 : body->is_form && body->jfr)
                return decode_recording_upload(req, scratch_dir, body, ret, err);
        if (!format && type && strcmp(type, "binary/octet-stream+trie") == 0)
                format = "trie";
        if (!format && type && strcmp(type, "binary/octet-stream+tree") == 0)
                format = "tree";
        if (format ? strcmp(format, "pprof") == 0 : body->is_form)
                return decode_ingested_pprof(body, ret, err);
        return decode_stacks(req, format ? format : "", body, app, ret, err);
}

static enum status decode_ingest(struct http_request *req, const char *scratch_dir, struct app_name *app,
                                 struct profile *ret, struct error *err)
{
        struct ingest_body body = { 0 };
        enum status st = read_ingest_body(req, &body, err);

        if (!st)
                st = decode_ingest_body(req, scratch_dir, &body, app, ret, err);
        return st == ST_BAD_DATA && body.profile ? content_refuse(body.profile, body.size, err) : st;
}

/* Set what the samples lack: time and duration from `from` and `until`, labels from `name` and `spyName`. */
static enum status complete_ingested(struct http_request *req, struct ingest_batch *batch, struct app_name *app,
                                     struct profile *p, struct error *err)
{
        const char *from = get_parameter(req, "from"), *until = get_parameter(req, "until"),
                   *spy = get_parameter(req, "spyName");
        int64_t now = wall_clock_ns(), start = now, end = 0;
        enum status st = from ? time_text_parse(from, now, &start, err) : ST_OK;

        if (!st && until)
                st = time_text_parse(until, now, &end, err);
        if (!st && from && until && end < start)
                st = error_set(err, ST_USAGE, "until is before from");
        if (st)
                return st;
        if (start < NS_OF_1971)
                start = now;
        for (uint32_t i = 0; i < p->samples.count && from && end > start; i++)
                if (!p->samples.items[i].duration_ns)
                        p->samples.items[i].duration_ns = end - start;
        if (from && !strchr("n-", *from)) /* an absolute time: equal requests are one batch */
                profile_set_missing_times(p, start);
        else
                set_arrival_times(batch, p, start);
        st = app_name_add_labels(app, p, err);
        if (!st && spy)
                st = profile_add_label_to_all(p, "pyroscope_spy", spy, err);
        return st;
}

static enum status ingest_profile(struct http_request *req, const struct server *s, struct ingest_batch *batch,
                                  struct ingest_remark *remark_ret, struct error *err)
{
        const char *name = http_query(req, "name");
        _cleanup_app_name_ struct app_name app = { 0 };
        bool duplicate = false;
        struct profile p;
        enum status st;

        if (!name)
                return error_set(err, ST_USAGE, "the query parameter 'name' is missing");
        st = read_batch_id(req, &batch->id, err);
        if (!st)
                st = app_name_parse(name, &app, err);
        if (!st)
                st = decode_ingest(req, s->scratch_dir, &app, &p, err);
        if (st)
                return st;
        st = complete_ingested(req, batch, &app, &p, err);
        if (!st)
                st = append_ingested_batch(batch, &p, &duplicate, err);
        if (!st)
                st = fail_if_all_rejected(&p, err);
        if (!st)
                describe_added_samples(&p, duplicate, remark_ret);
        profile_deinit(&p);
        return st;
}

static void handle_ingest(struct http_request *req)
{
        struct ingest_batch batch = begin_http_batch(req);
        struct ingest_remark remark;
        struct error err;
        enum status st;

        if (!check_history(req, &batch.is_history))
                return;
        st = ingest_profile(req, http_context(req), &batch, &remark, &err);
        if (st) {
                fail_ingest(req, st, &err);
                return;
        }
        set_ingest_remark(req, &remark);
        http_respond(req, 200, *remark.text ? "text/plain; charset=utf-8" : NULL, remark.text, strlen(remark.text));
}

/* ---- POST /push.v1.PusherService/Push ---- */

static void handle_push(struct http_request *req)
{
        struct ingest_batch batch = begin_http_batch(req);
        enum connect_codec codec;
        struct ingest_remark remark;
        bool duplicate = false;
        struct profile p;
        struct error err;
        const uint8_t *body;
        size_t n;
        enum status st;

        if (!check_history(req, &batch.is_history))
                return;
        if (!connect_read_codec(req, &codec)) {
                count_ingest_failure(&batch, ST_UNSUPPORTED, "the Content-Type is unsupported for this call");
                return;
        }
        body = http_body(req, &n);
        st = read_batch_id(req, &batch.id, &err);
        if (!st)
                st = push_decode(body, n, codec == CONNECT_JSON, http_request_deadline(req), &p, &err);
        if (st) {
                fail_ingest(req, st, &err);
                return;
        }
        set_arrival_times(&batch, &p, wall_clock_ns());
        st = append_ingested_batch(&batch, &p, &duplicate, &err);
        if (!st)
                st = fail_if_all_rejected(&p, &err);
        if (!st)
                describe_added_samples(&p, duplicate, &remark);
        profile_deinit(&p);
        if (st) {
                fail_ingest(req, st, &err);
                return;
        }
        set_ingest_remark(req, &remark);
        connect_respond_empty(req, codec);
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/ingest", SCOPE_INGEST, TENANCY_OWN), .pool = POOL_INGEST, .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = handle_ingest },
        { ROUTE("POST", "/push.v1.PusherService/Push", SCOPE_INGEST, TENANCY_OWN), .pool = POOL_INGEST,
          .max_body = LIMIT_HTTP_BODY_BYTES, .handle = handle_push, .put_error = connect_put_error },
};
const struct route_table pyroscope_routes = ROUTE_TABLE(ROLE_INGEST | ROLE_GATEWAY, routes);
