/* SPDX-License-Identifier: Apache-2.0 */
/* Federation with upstreams served by this program; fetches are made by real workers. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "debuginfo-store/federation/federation.h"
#include "debuginfo-store/federation/federation_internal.h"
#include "debuginfo-store/federation/forward_loop.h"
#include "http/http_server.h"
#include "sandbox/worker.h"
#include "tests/support/elf_maker.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define PATIENCE_NS 60000000000
#define THREADS 4

/* An upstream: has the object of one build-id, and can delay its responses. */
struct upstream {
        struct http_server *server;
        char url[64];
        struct build_id has;
        struct buf file;
        atomic_uint asked;
        atomic_bool holds;
        atomic_uint says;         /* a status to be returned instead, 1: connection reset; 0: normal response */
        pthread_mutex_t lock;     /* protects has, file and way */
        char way[FORWARDED_SIZE]; /* X-Forwarded-For of the last request */
};

static char dir[TEMPORARY_DIR_BYTES];
static struct debuginfo_store *store;
static struct upstream upstreams[2];
static atomic_uint arrivals, failures, went, came_back;

static struct build_id id_of(uint8_t n)
{
        struct build_id id = { .size = 4, .bytes = { 0xca, 0x12, 0, n } };

        return id;
}

static void send_answer(struct http_request *req)
{
        struct upstream *u = http_context(req);
        const char *way = http_header(req, "X-Forwarded-For");
        char hex[BUILD_ID_HEX_MAX];
        struct build_id has;

        pthread_mutex_lock(&u->lock);
        snprintf(u->way, sizeof u->way, "%s", way ? way : "");
        has = u->has;
        pthread_mutex_unlock(&u->lock);
        atomic_fetch_add(&u->asked, 1);
        while (atomic_load(&u->holds) && !atomic_load(http_server_stopping(req)))
                sched_yield();
        if (atomic_load(&u->says) == 1)
                http_reset_connection(req);
        else if (atomic_load(&u->says))
                http_fail_code(req, atomic_load(&u->says), "not_today", "not today");
        else if (strcmp(http_path_part(req, "id"), build_id_hex(&has, hex)) != 0)
                http_fail_code(req, 404, "not_found", "not here");
        else
                http_respond(req, 200, "application/octet-stream", u->file.data, u->file.size);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/buildid/{id}/debuginfo", .handle = send_answer },
};

/* @param go_id NULL: none. */
static void make_object(const struct build_id *id, const char *go_id, struct buf *to)
{
        struct elf_maker m = { .is_64 = true };
        struct elf_maker_section sections[5] = { { 0 } };
        _cleanup_buf_ struct buf note, go_note;

        buf_init(&note, 4096);
        buf_init(&go_note, 4096);
        elf_make_note(&m, &note, "GNU", 4, NT_GNU_BUILD_ID, id->bytes, id->size);
        sections[1] = (struct elf_maker_section){ ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, .content = note.data,
                                                  .size = note.size };
        sections[2] = (struct elf_maker_section){ ".debug_info", SHT_PROGBITS, .content = "dwarf", .size = 5 };
        sections[3] = (struct elf_maker_section){ ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, .size = 16 };
        m.sections = sections;
        m.section_count = 4;
        if (go_id) {
                elf_make_note(&m, &go_note, "Go\0", 4, 4, go_id, (uint32_t)strlen(go_id));
                sections[m.section_count++] =
                        (struct elf_maker_section){ ".note.go.buildid", SHT_NOTE, SHF_ALLOC, .content = go_note.data,
                                                    .size = go_note.size };
        }
        elf_make(&m, to);
}

static void start_upstream(struct upstream *u, uint8_t has)
{
        const struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .threads = 8 };

        u->has = id_of(has);
        pthread_mutex_init(&u->lock, NULL);
        buf_init(&u->file, MiB(1));
        make_object(&u->has, NULL, &u->file);
        ck_assert_int_eq(http_server_start(&o, routes, 1, u, &u->server, NULL), ST_OK);
        snprintf(u->url, sizeof u->url, "http://127.0.0.1:%u", http_server_port(u->server));
}

static void set_up(void)
{
        const char *build = getenv("CAIRN_SAN");
        char *program = path_join(build ? build : "build/san", "cairn"); /* kept for the lifetime of the process */

        ck_assert_msg(access(program, X_OK) == 0, "no program '%s': CAIRN_SAN names the build directory", program);
        worker_set_program(program);
        temporary_dir_create(dir, "federation");
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, NULL), ST_OK);
        start_upstream(&upstreams[0], 1);
        start_upstream(&upstreams[1], 2);
}

static void tear_down(void)
{
        for (size_t i = 0; i < 2; i++) {
                if (upstreams[i].server)
                        http_server_stop(upstreams[i].server);
                buf_deinit(&upstreams[i].file);
        }
        debuginfo_store_close(store);
        temporary_dir_remove(dir);
}

static void arrived(void *context, const struct stored_object *object)
{
        (void)context;
        ck_assert_int_eq(object->source, SOURCE_UPSTREAM);
        atomic_fetch_add(&arrivals, 1);
}

static void failed(void *context, const struct build_id *id, const struct error *err)
{
        (void)context;
        (void)id;
        ck_assert_uint_gt(strlen(err->text), 0);
        atomic_fetch_add(&failures, 1);
}

static void upstream_changed(void *context, const struct upstream_status *status)
{
        (void)context;
        atomic_fetch_add(status->state == UPSTREAM_CLOSED ? &came_back : &went, 1);
}

static unsigned breaker_failures = 100, breaker_pause_s = 1, background_rate;

static struct federation *start(size_t upstream_count, uint64_t miss_s, uint64_t error_s)
{
        const char *urls[] = { upstreams[0].url, upstreams[1].url };
        const struct federation_options o = { .size = sizeof o,
                                              .urls = urls,
                                              .url_count = upstream_count,
                                              .miss_s = miss_s,
                                              .error_s = error_s,
                                              .threads = THREADS,
                                              .rate = background_rate,
                                              .breaker_failures = breaker_failures,
                                              .breaker_pause_s = breaker_pause_s,
                                              .upstream_changed = upstream_changed,
                                              .arrived = arrived,
                                              .failed = failed };
        struct federation *f;

        ck_assert_int_eq(federation_start(store, &o, &f, NULL), ST_OK);
        return f;
}

static enum status fetch(struct federation *f, uint8_t n, const char *way)
{
        struct build_id id = id_of(n);

        return federation_fetch(f, &id, OBJECT_DEBUGINFO, &(struct federation_client){ .forwarded_for = way }, NULL,
                                NULL);
}

/* A request on a thread of its own. */
struct question {
        pthread_t thread;
        struct federation *federation;
        uint8_t id;
        const char *way;
        atomic_bool cancel, done;
        enum status st;
};

static void *run_request(void *arg)
{
        struct question *q = arg;
        struct build_id id = id_of(q->id);

        q->st = federation_fetch(q->federation, &id, OBJECT_DEBUGINFO,
                                 &(struct federation_client){ .forwarded_for = q->way, .cancel = &q->cancel }, NULL,
                                 NULL);
        atomic_store(&q->done, true);
        return NULL;
}

static void send_request(struct question *q, struct federation *f, uint8_t id, const char *way)
{
        *q = (struct question){ .federation = f, .id = id, .way = way };
        ck_assert_int_eq(pthread_create(&q->thread, NULL, run_request, q), 0);
}

static enum status wait_for_answer(struct question *q)
{
        pthread_join(q->thread, NULL);
        return q->st;
}

static void wait_until_requested(struct upstream *u, unsigned times)
{
        int64_t end = monotonic_ns() + PATIENCE_NS;

        while (atomic_load(&u->asked) < times) {
                ck_assert_msg(monotonic_ns() < end, "the upstream was asked %u times, not %u", u->asked, times);
                sched_yield();
        }
}

/* Request objects in the background for samples of a sender. */
static void request_from(struct federation *f, const struct build_id *ids, size_t count, uint32_t sender)
{
        for (size_t i = 0; i < count; i++) {
                const struct wanted_object object = { ids[i], sender, 1 };

                federation_request(f, &object, 1, OBJECT_DEBUGINFO);
        }
}

static enum upstream_state state_of(struct federation *f, size_t i)
{
        struct upstream_status status;

        federation_get_upstream(f, i, &status);
        return status.state;
}

START_TEST(object_of_upstream_is_stored_and_reported)
{
        struct federation *f = start(1, 0, 0);
        struct build_id id = id_of(1);
        struct stored_object object;

        ck_assert_int_eq(fetch(f, 1, NULL), ST_OK);
        ck_assert_int_eq(debuginfo_store_stat(store, &id, OBJECT_DEBUGINFO, &object, NULL), ST_OK);
        ck_assert_uint_eq(object.size_bytes, upstreams[0].file.size);
        ck_assert_int_eq(fetch(f, 1, NULL), ST_OK);
        federation_stop(f); /* it may be stored shortly before it is reported */
        ck_assert_uint_eq(upstreams[0].asked, 1);
        ck_assert_uint_eq(arrivals, 1);
}
END_TEST

START_TEST(background_requests_are_fetched_once)
{
        struct federation *f = start(2, 0, 0);
        const struct build_id ids[] = { id_of(1), id_of(2), id_of(1), id_of(2) };
        int64_t end = monotonic_ns() + PATIENCE_NS;

        request_from(f, ids, 4, 0);
        while (atomic_load(&arrivals) < 2) {
                ck_assert_msg(monotonic_ns() < end, "%u arrived", arrivals);
                sched_yield();
        }
        request_from(f, ids, 4, 0);
        federation_stop(f);
        ck_assert_uint_eq(upstreams[0].asked, 2); /* it is queried first, also for objects that only the second has */
        ck_assert_uint_eq(upstreams[1].asked, 1);
}
END_TEST

static void store_object(const struct upstream *u)
{
        struct object_claim claim = { .build_id = u->has, .kind = OBJECT_DEBUGINFO };
        struct object_upload *upload;
        struct stored_object object;
        bool same;

        ck_assert_int_eq(object_upload_begin(store, &claim, &upload, NULL), ST_OK);
        ck_assert_int_eq(object_upload_append(upload, u->file.data, u->file.size, NULL), ST_OK);
        ck_assert_int_eq(object_upload_finish(upload, &object, &same, NULL), ST_OK);
}

static atomic_bool wishes;

static void *request_in_background(void *federation)
{
        struct build_id id = id_of(1);

        atomic_store(&wishes, true);
        request_from(federation, &id, 1, 0);
        return NULL;
}

/*
 * The end of a fetch: it stores the object and removes the pending request, here while a background request waits for
 * the lock.
 */
START_TEST(object_stored_during_background_request_is_not_requested)
{
        struct federation *f = start(1, 0, 0);
        struct federation_status s;
        pthread_t thread;

        atomic_store(&upstreams[0].holds, true);
        pthread_mutex_lock(&f->lock);
        ck_assert_int_eq(pthread_create(&thread, NULL, request_in_background, f), 0);
        while (!atomic_load(&wishes))
                sched_yield();
        store_object(&upstreams[0]); /* by a worker process, which takes a while */
        pthread_mutex_unlock(&f->lock);
        pthread_join(thread, NULL);
        federation_get_status(f, &s);
        ck_assert_uint_eq(s.queued + s.in_flight, 0);
        federation_stop(f);
}
END_TEST

/* Otherwise waiting requests would fetch it again and again. */
START_TEST(object_with_alias_is_fetched_once)
{
        static const char go_id[] = "abcdefghijklmnopqrst/abcdefghijklmnopqrst";
        struct federation *f = start(1, 600, 0);
        const struct build_id id = id_of(3);
        struct stored_object object;
        struct build_id other;

        build_id_from_go(&other, go_id, sizeof go_id - 1);
        pthread_mutex_lock(&upstreams[0].lock);
        upstreams[0].has = other;
        buf_deinit(&upstreams[0].file);
        buf_init(&upstreams[0].file, MiB(1));
        make_object(&id, go_id, &upstreams[0].file);
        pthread_mutex_unlock(&upstreams[0].lock);
        for (int i = 0; i < 2; i++)
                ck_assert_int_eq(
                        federation_fetch(f, &other, OBJECT_DEBUGINFO, &(struct federation_client){ 0 }, NULL, NULL),
                        ST_NOT_FOUND);
        ck_assert_uint_eq(upstreams[0].asked, 1);
        ck_assert_int_eq(debuginfo_store_stat(store, &id, OBJECT_DEBUGINFO, &object, NULL), ST_OK);
        federation_stop(f);
        ck_assert_uint_eq(arrivals, 1);
}
END_TEST

START_TEST(concurrent_requests_are_merged)
{
        struct federation *f = start(1, 0, 0);
        struct question q[8];

        atomic_store(&upstreams[0].holds, true);
        for (size_t i = 0; i < 8; i++)
                send_request(&q[i], f, 1, NULL);
        wait_until_requested(&upstreams[0], 1);
        atomic_store(&upstreams[0].holds, false);
        for (size_t i = 0; i < 8; i++)
                ck_assert_int_eq(wait_for_answer(&q[i]), ST_OK);
        ck_assert_uint_eq(upstreams[0].asked, 1);
        federation_stop(f);
}
END_TEST

struct readers {
        struct federation *federation;
        uint64_t found; /* when they were released */
        unsigned in_flight;
        bool were_let_go;
};

static void check_state_when_released(void *context, struct download *d)
{
        struct readers *r = context;
        struct upstream_status s;

        if (d)
                return;
        federation_get_upstream(r->federation, 0, &s);
        r->found = s.answers[UPSTREAM_FOUND];
        r->in_flight = s.in_flight;
        r->were_let_go = true;
}

START_TEST(merged_requests_are_released_after_upstream_is_recorded)
{
        struct federation *f = start(1, 0, 0);
        struct readers r = { .federation = f, .in_flight = 1 };
        struct fetch_entry w = { .id = id_of(1), .resource = "debuginfo", .forwarded_for = "" };
        struct stored_object object;

        ck_assert_int_eq(
                federation_query_upstreams(&f->upstreams, &w, &f->stop, check_state_when_released, &r, &object, NULL),
                FEDERATION_STORED);
        ck_assert(r.were_let_go);
        ck_assert_uint_eq(r.found, 1);
        ck_assert_uint_eq(r.in_flight, 0);
        federation_stop(f);
}
END_TEST

START_TEST(miss_is_cached)
{
        struct federation *f = start(2, 600, 0);

        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(fetch(f, 9, NULL), ST_NOT_FOUND);
        ck_assert_uint_eq(upstreams[0].asked, 1);
        ck_assert_uint_eq(upstreams[1].asked, 1);
        ck_assert_uint_eq(failures, 0);
        federation_stop(f);
}
END_TEST

START_TEST(cached_miss_expires)
{
        struct federation *f = start(1, 1, 600);
        int64_t end = monotonic_ns() + PATIENCE_NS;

        while (atomic_load(&upstreams[0].asked) < 2) {
                ck_assert_int_eq(fetch(f, 9, NULL), ST_NOT_FOUND);
                ck_assert_int_lt(monotonic_ns(), end);
        }
        federation_stop(f);
}
END_TEST

START_TEST(unreachable_upstream_is_not_a_miss)
{
        struct federation *f;

        http_server_stop(upstreams[0].server);
        upstreams[0].server = NULL;
        f = start(2, 600, 600);
        ck_assert_int_eq(fetch(f, 9, NULL), ST_BUSY); /* the second does not have it, but the first might */
        ck_assert_int_eq(fetch(f, 9, NULL), ST_BUSY);
        ck_assert_uint_eq(upstreams[1].asked, 1); /* not queried again at once */
        ck_assert_uint_eq(failures, 1);
        ck_assert_int_eq(fetch(f, 2, NULL), ST_OK); /* objects of the second are available */
        federation_stop(f);
}
END_TEST

START_TEST(only_not_found_is_a_miss)
{
        static const unsigned says[] = { 1, 401, 403, 500, 502, 504 };
        struct federation *f = start(1, 600, 600);
        uint8_t id = 10;

        for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
                atomic_store(&upstreams[0].says, says[i]);
                ck_assert_msg(fetch(f, id++, NULL) == ST_BUSY, "after %u", says[i]);
        }
        atomic_store(&upstreams[0].says, 404);
        ck_assert_int_eq(fetch(f, id++, NULL), ST_NOT_FOUND);
        atomic_store(&upstreams[0].says, 410);
        ck_assert_int_eq(fetch(f, id++, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(state_of(f, 0), UPSTREAM_CLOSED);
        federation_stop(f);
}
END_TEST

/* The servers of this program send Retry-After with these statuses. */
START_TEST(retry_after_of_upstream_is_respected)
{
        static const unsigned says[] = { 429, 503 };

        for (uint8_t i = 0; i < 2; i++) {
                struct federation *f = start(1, 600, 600);
                struct upstream_status status;

                atomic_store(&upstreams[0].asked, 0);
                atomic_store(&upstreams[0].says, says[i]);
                ck_assert_int_eq(fetch(f, 10, NULL), ST_BUSY);
                atomic_store(&upstreams[0].says, 404);
                ck_assert_int_eq(fetch(f, 11, NULL), ST_BUSY);
                ck_assert_uint_eq(upstreams[0].asked, 1);
                federation_get_upstream(f, 0, &status);
                ck_assert_int_eq(status.state, UPSTREAM_OPEN);
                ck_assert_uint_gt(status.retry_in_s, 1); /* more than breaker_pause_s */
                federation_stop(f);
        }
}
END_TEST

START_TEST(cancelled_request_ends_at_once)
{
        struct federation *f = start(1, 0, 0);
        struct question q;

        atomic_store(&upstreams[0].holds, true);
        send_request(&q, f, 1, NULL);
        wait_until_requested(&upstreams[0], 1);
        ck_assert(!atomic_load(&q.done));
        atomic_store(&q.cancel, true);
        ck_assert_int_eq(wait_for_answer(&q), ST_BUSY); /* the upstream still delays its response */
        federation_stop(f);
}
END_TEST

START_TEST(request_ends_at_deadline_and_fetch_continues)
{
        struct federation *f = start(1, 0, 0);
        const struct build_id id = id_of(1);
        struct federation_client client = { .until_ns = monotonic_ns() + 50000000 };

        atomic_store(&upstreams[0].holds, true);
        ck_assert_int_eq(federation_fetch(f, &id, OBJECT_DEBUGINFO, &client, NULL, NULL), ST_BUSY);
        ck_assert_int_ge(monotonic_ns(), client.until_ns);
        wait_until_requested(&upstreams[0], 1);
        atomic_store(&upstreams[0].holds, false);
        ck_assert_int_eq(federation_fetch(f, &id, OBJECT_DEBUGINFO, &(struct federation_client){ 0 }, NULL, NULL),
                         ST_OK);
        ck_assert_uint_eq(upstreams[0].asked, 1);
        federation_stop(f);
}
END_TEST

START_TEST(stop_does_not_wait_for_an_upstream)
{
        struct federation *f = start(1, 0, 0);
        const struct build_id ids[] = { id_of(1), id_of(2), id_of(3), id_of(4), id_of(5), id_of(6) };
        int64_t begin;

        atomic_store(&upstreams[0].holds, true);
        request_from(f, ids, 6, 0);
        wait_until_requested(&upstreams[0], 1);
        begin = monotonic_ns();
        federation_stop(f);
        ck_assert_int_lt(monotonic_ns() - begin, 30000000000); /* the fetch itself would take 90 s */
        ck_assert_uint_eq(arrivals, 0);
        ck_assert_uint_eq(failures, 0);
}
END_TEST

static void fail_until_open(struct federation *f, uint8_t *id)
{
        atomic_store(&upstreams[0].asked, 0);
        atomic_store(&upstreams[0].says, 500);
        for (unsigned i = 0; i < breaker_failures; i++)
                ck_assert_int_eq(fetch(f, (*id)++, NULL), ST_BUSY);
        ck_assert_int_eq(state_of(f, 0), UPSTREAM_OPEN);
        ck_assert_uint_eq(atomic_exchange(&went, 0), 1);
}

START_TEST(failing_upstream_opens_circuit_breaker)
{
        struct federation *f;
        uint8_t id = 30;

        breaker_failures = 3;
        breaker_pause_s = 600;
        f = start(1, 600, 600);
        fail_until_open(f, &id);
        ck_assert_int_eq(fetch(f, id++, NULL), ST_BUSY);
        ck_assert_uint_eq(upstreams[0].asked, 3);
        federation_stop(f);
}
END_TEST

START_TEST(successful_probe_closes_circuit_breaker)
{
        int64_t end = monotonic_ns() + PATIENCE_NS;
        struct federation *f;
        uint8_t id = 30;

        breaker_failures = 3;
        f = start(1, 600, 600);
        fail_until_open(f, &id);
        while (atomic_load(&upstreams[0].asked) < 4) { /* its pause has ended: one probe, which fails */
                ck_assert_int_lt(monotonic_ns(), end);
                ck_assert_int_eq(fetch(f, id++, NULL), ST_BUSY);
                poll(NULL, 0, 20);
        }
        ck_assert_int_eq(state_of(f, 0), UPSTREAM_OPEN);
        ck_assert_uint_eq(came_back, 0);
        atomic_store(&upstreams[0].says, 404); /* like any response */
        while (fetch(f, id++, NULL) != ST_NOT_FOUND) {
                ck_assert_int_lt(monotonic_ns(), end);
                poll(NULL, 0, 20);
        }
        ck_assert_int_eq(state_of(f, 0), UPSTREAM_CLOSED);
        ck_assert_uint_eq(came_back, 1);
        ck_assert_uint_eq(went, 0);
        federation_stop(f);
}
END_TEST

START_TEST(an_upstream_is_shown_without_its_password)
{
        char text[FETCH_URL_TEXT];

        ck_assert_str_eq(fetch_url_redact("https://me:se@cret@host:8002/a@b", text), "https://host:8002/a@b");
        ck_assert_str_eq(fetch_url_redact("http://host/?x@y", text), "http://host/?x@y");
        ck_assert_str_eq(fetch_url_redact("host", text), "host");
}
END_TEST

START_TEST(background_requests_do_not_delay_clients)
{
        struct federation *f = start(1, 600, 600);
        const struct build_id ids[] = { id_of(50), id_of(51), id_of(52), id_of(53), id_of(54), id_of(1) };
        struct question q;

        atomic_store(&upstreams[0].holds, true);
        request_from(f, ids, 6, 0);
        wait_until_requested(&upstreams[0],
                             THREADS); /* all threads wait; the last two background requests are queued */
        send_request(&q, f, 1, NULL);  /* the last of them */
        wait_until_requested(&upstreams[0], THREADS + 1);
        atomic_store(&upstreams[0].holds, false);
        ck_assert_int_eq(wait_for_answer(&q), ST_OK);
        federation_stop(f);
        ck_assert_uint_le(upstreams[0].asked, 6); /* none is queued twice */
}
END_TEST

static struct build_id make_random_id(uint32_t n)
{
        struct build_id id = { .size = 20, .bytes = { 0xbb } };

        memcpy(id.bytes + 1, &n, sizeof n);
        return id;
}

/* A sender names 50,000 build-ids that no upstream has, and the threads are occupied by the first of them. */
START_TEST(object_of_another_sender_is_fetched_before_thousands_of_unknown_ones)
{
        struct federation *f = start(1, 600, 600);
        const struct build_id honest = id_of(1);
        int64_t end = monotonic_ns() + PATIENCE_NS;
        struct federation_status s;

        atomic_store(&upstreams[0].holds, true);
        for (uint32_t i = 0; i < 50000; i++) {
                const struct build_id id = make_random_id(i);

                request_from(f, &id, 1, 7);
        }
        federation_get_status(f, &s);
        ck_assert_uint_ge(s.queued, LIMIT_FETCH_SENDER_IDS - THREADS);
        ck_assert_uint_le(s.queued, LIMIT_FETCH_SENDER_IDS);
        wait_until_requested(&upstreams[0], THREADS);
        request_from(f, &honest, 1, 8);
        atomic_store(&upstreams[0].holds, false);
        while (!atomic_load(&arrivals)) {
                ck_assert_int_lt(monotonic_ns(), end);
                sched_yield();
        }
        federation_stop(f);
        ck_assert_uint_le(upstreams[0].asked, 4 * THREADS); /* those in flight, and the first turns */
}
END_TEST

static struct fetch_entry *make_entry(uint32_t sender, uint64_t weight)
{
        struct fetch_entry *e = calloc(1, sizeof *e);

        ck_assert_ptr_nonnull(e);
        e->sender = sender;
        e->weight = weight;
        return e;
}

static void check_next(struct fetch_order *o, uint32_t sender, uint64_t weight)
{
        struct fetch_entry *e = fetch_order_take(o);

        ck_assert_ptr_nonnull(e);
        ck_assert_uint_eq(e->sender, sender);
        ck_assert_uint_eq(e->weight, weight);
        free(e);
}

START_TEST(senders_take_turns_and_the_most_sampled_is_first)
{
        static const struct {
                uint32_t sender;
                uint64_t weight;
        } requested[] = { { 1, 5 }, { 1, 9 }, { 1, 7 }, { 2, 1 }, { 3, 2 }, { 3, 4 } };
        struct fetch_order o;

        fetch_order_init(&o);
        for (size_t i = 0; i < sizeof requested / sizeof *requested; i++)
                ck_assert(fetch_order_add(&o, make_entry(requested[i].sender, requested[i].weight)));
        check_next(&o, 1, 9);
        check_next(&o, 2, 1);
        check_next(&o, 3, 4);
        check_next(&o, 1, 7);
        check_next(&o, 3, 2);
        check_next(&o, 1, 5);
        ck_assert_ptr_null(fetch_order_take(&o));
        fetch_order_deinit(&o);
}
END_TEST

START_TEST(background_requests_have_a_rate)
{
        struct federation *f;
        struct build_id ids[40];

        background_rate = 1;
        f = start(1, 600, 600);
        for (uint32_t i = 0; i < 40; i++)
                ids[i] = make_random_id(i);
        pthread_mutex_lock(&f->lock);
        f->next_background_ns = monotonic_ns() + INT64_C(3600000000000); /* an hour ahead of the rate */
        pthread_mutex_unlock(&f->lock);
        request_from(f, ids, 40, 7);
        ck_assert_int_eq(fetch(f, 1, NULL), ST_OK); /* a client does not wait */
        ck_assert_uint_eq(upstreams[0].asked, 1);
        federation_stop(f);
}
END_TEST

START_TEST(failed_background_request_is_not_repeated_soon)
{
        struct federation *f = start(2, 600, 1);
        struct stored_object object;
        struct build_id id = id_of(7);
        int64_t until = monotonic_ns() + 2000000000;

        pthread_mutex_lock(&upstreams[0].lock);
        upstreams[0].has = id; /* the object it sends has another build-id */
        pthread_mutex_unlock(&upstreams[0].lock);
        do {
                ck_assert_int_eq(fetch(f, 7, NULL), ST_BUSY);
                poll(NULL, 0, 50);
        } while (monotonic_ns() < until); /* past error_s */
        ck_assert_uint_eq(upstreams[0].asked, 1);
        ck_assert_uint_eq(upstreams[1].asked, 1);
        ck_assert_uint_eq(failures, 1);
        ck_assert_int_eq(debuginfo_store_stat(store, &id, OBJECT_DEBUGINFO, &object, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(state_of(f, 0), UPSTREAM_CLOSED);
        federation_stop(f);
}
END_TEST

/* The X-Forwarded-For value seen by the upstream, to be used as that of a request from another service. */
static void way_of(struct upstream *u, char ret[static FORWARDED_SIZE])
{
        pthread_mutex_lock(&u->lock);
        memcpy(ret, u->way, FORWARDED_SIZE);
        pthread_mutex_unlock(&u->lock);
}

START_TEST(request_carries_its_forwarding_path)
{
        struct federation *f = start(1, 0, 0);
        char direct[FORWARDED_SIZE], forwarded[FORWARDED_SIZE], want[FORWARDED_SIZE + 32];

        ck_assert_int_eq(fetch(f, 8, NULL), ST_NOT_FOUND);
        way_of(&upstreams[0], direct);
        ck_assert_uint_eq(strlen(direct), FORWARDED_NAME_SIZE - 1);
        ck_assert_int_eq(fetch(f, 9, "192.0.2.7, 2001:db8::1"), ST_NOT_FOUND);
        way_of(&upstreams[0], forwarded);
        snprintf(want, sizeof want, "192.0.2.7, 2001:db8::1, %s", direct);
        ck_assert_str_eq(forwarded, want);
        federation_stop(f);
}
END_TEST

START_TEST(looping_request_is_not_forwarded)
{
        struct federation *f = start(1, 0, 0);
        char way[FORWARDED_SIZE], longer[FORWARDED_SIZE + 64];

        ck_assert_int_eq(fetch(f, 8, NULL), ST_NOT_FOUND);
        way_of(&upstreams[0], way);
        ck_assert_int_eq(fetch(f, 1, way), ST_NOT_FOUND); /* the upstream has it */
        snprintf(longer, sizeof longer, "192.0.2.7,\t%s , _cairn-0123456789abcdef", way);
        ck_assert_int_eq(fetch(f, 1, longer), ST_NOT_FOUND);
        ck_assert_uint_eq(upstreams[0].asked, 1);
        ck_assert_int_eq(fetch(f, 1, "_cairn-0123456789abcdef"), ST_OK); /* that of another service */
        federation_stop(f);
}
END_TEST

START_TEST(forwarding_is_limited_to_eight_servers)
{
        struct federation *f = start(1, 0, 0);

        ck_assert_int_eq(fetch(f, 1, "a, b, c, d, e, f, g, h"), ST_NOT_FOUND);
        ck_assert_uint_eq(upstreams[0].asked, 0);
        ck_assert_int_eq(fetch(f, 1, "a, b, c, d, e, f, g"), ST_OK);
        federation_stop(f);
}
END_TEST

START_TEST(forwarding_path_of_any_length_is_accepted)
{
        struct federation *f = start(1, 0, 0);
        char way[5000];

        memset(way, 'x', sizeof way - 1);
        way[sizeof way - 1] = '\0';
        ck_assert_int_eq(fetch(f, 1, way), ST_NOT_FOUND);
        way[FORWARDED_SIZE - FORWARDED_NAME_SIZE - 2] = '\0';
        ck_assert_int_eq(fetch(f, 1, way), ST_OK);
        federation_stop(f);
}
END_TEST

/* Two services that concurrently request the same build-id from each other would otherwise deadlock. */
START_TEST(forwarded_request_does_not_wait_for_direct_one)
{
        struct federation *f = start(1, 0, 0);
        struct question direct, forwarded;

        atomic_store(&upstreams[0].holds, true);
        send_request(&direct, f, 1, NULL);
        wait_until_requested(&upstreams[0], 1);
        send_request(&forwarded, f, 1, "_cairn-0123456789abcdef");
        wait_until_requested(&upstreams[0], 2);
        atomic_store(&upstreams[0].holds, false);
        ck_assert_int_eq(wait_for_answer(&direct), ST_OK);
        ck_assert_int_eq(wait_for_answer(&forwarded), ST_OK);
        federation_stop(f);
}
END_TEST

/* Nor may they wait for a thread: services whose threads all wait for each other would otherwise not respond. */
START_TEST(forwarded_requests_need_no_service_thread)
{
        struct federation *f = start(1, 0, 0);
        struct question direct[THREADS], forwarded;

        atomic_store(&upstreams[0].holds, true);
        for (uint8_t i = 0; i < THREADS; i++)
                send_request(&direct[i], f, (uint8_t)(20 + i), NULL);
        wait_until_requested(&upstreams[0], THREADS);
        send_request(&forwarded, f, 1, "_cairn-0123456789abcdef");
        wait_until_requested(&upstreams[0], THREADS + 1);
        atomic_store(&upstreams[0].holds, false);
        for (size_t i = 0; i < THREADS; i++)
                ck_assert_int_eq(wait_for_answer(&direct[i]), ST_NOT_FOUND);
        ck_assert_int_eq(wait_for_answer(&forwarded), ST_OK);
        federation_stop(f);
}
END_TEST

#define ROOM (FEDERATION_CLIENT_FETCHES_MAX + THREADS)

static void wait_until_known(struct federation *f, size_t in_flight, size_t queued)
{
        int64_t end = monotonic_ns() + PATIENCE_NS;
        struct federation_status s = { 0 };

        do {
                ck_assert_msg(monotonic_ns() < end, "%zu questions are in flight and %zu queued", (size_t)s.in_flight,
                              (size_t)s.queued);
                sched_yield();
                federation_get_status(f, &s);
        } while (s.in_flight != in_flight || s.queued != queued);
}

START_TEST(requests_over_the_limit_are_queued)
{
        static const char *const ways[] = { NULL, "_cairn-0123456789abcdef" };

        for (size_t w = 0; w < 2; w++) {
                struct federation *f = start(1, 0, 0);
                static struct question q[ROOM + 3];

                atomic_store(&upstreams[0].holds, true);
                for (uint8_t i = 0; i < ROOM + 3; i++)
                        send_request(&q[i], f, (uint8_t)(20 + i), ways[w]);
                wait_until_known(f, ROOM, 3);
                atomic_store(&upstreams[0].holds, false);
                for (size_t i = 0; i < ROOM + 3; i++)
                        ck_assert_int_eq(wait_for_answer(&q[i]), ST_NOT_FOUND);
                federation_stop(f);
        }
}
END_TEST

/* Otherwise a cycle of services whose threads are all used by direct requests would deadlock. */
START_TEST(requests_forwarded_further_have_a_separate_limit)
{
        struct federation *f = start(1, 0, 0);
        static struct question q[ROOM + 3], once, twice;

        atomic_store(&upstreams[0].holds, true);
        for (uint8_t i = 0; i < ROOM + 3; i++)
                send_request(&q[i], f, (uint8_t)(20 + i), NULL);
        wait_until_known(f, ROOM, 3);
        send_request(&once, f, 1, "_cairn-0123456789abcdef");
        wait_until_known(f, ROOM + 1, 3);
        send_request(&twice, f, 2, "_cairn-0123456789abcdef, _cairn-1123456789abcdef");
        wait_until_known(f, ROOM + 2, 3);
        atomic_store(&upstreams[0].holds, false);
        for (size_t i = 0; i < ROOM + 3; i++)
                ck_assert_int_eq(wait_for_answer(&q[i]), ST_NOT_FOUND);
        ck_assert_int_eq(wait_for_answer(&once), ST_OK);
        ck_assert_int_eq(wait_for_answer(&twice), ST_NOT_FOUND);
        federation_stop(f);
}
END_TEST

START_TEST(forwarded_request_can_be_cancelled)
{
        struct federation *f = start(1, 0, 0);
        struct question q;

        atomic_store(&upstreams[0].holds, true);
        send_request(&q, f, 1, "_cairn-0123456789abcdef");
        wait_until_requested(&upstreams[0], 1);
        atomic_store(&q.cancel, true);
        ck_assert_int_eq(wait_for_answer(&q), ST_BUSY);
        ck_assert_uint_eq(failures, 0);
        federation_stop(f);
}
END_TEST

START_TEST(clients_behind_a_proxy_share_one_request)
{
        struct federation *f = start(1, 0, 0);

        ck_assert_int_eq(fetch(f, 9, "192.0.2.1"), ST_NOT_FOUND);
        ck_assert_int_eq(fetch(f, 9, "192.0.2.2"), ST_NOT_FOUND);
        ck_assert_int_eq(fetch(f, 9, NULL), ST_NOT_FOUND);
        ck_assert_uint_eq(upstreams[0].asked, 1);
        federation_stop(f);
}
END_TEST

START_TEST(misses_of_forwarded_and_direct_requests_are_separate)
{
        struct federation *f = start(1, 0, 0);

        ck_assert_int_eq(fetch(f, 9, "_cairn-0123456789abcdef"), ST_NOT_FOUND);
        ck_assert_int_eq(fetch(f, 9, NULL), ST_NOT_FOUND);
        ck_assert_uint_eq(upstreams[0].asked, 2);
        ck_assert_int_eq(fetch(f, 9, "_cairn-fedcba9876543210"), ST_NOT_FOUND); /* no upstream had it */
        ck_assert_uint_eq(upstreams[0].asked, 2);
        federation_stop(f);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("federation", object_of_upstream_is_stored_and_reported, background_requests_are_fetched_once,
                        object_stored_during_background_request_is_not_requested, object_with_alias_is_fetched_once,
                        concurrent_requests_are_merged, merged_requests_are_released_after_upstream_is_recorded,
                        miss_is_cached, cached_miss_expires, unreachable_upstream_is_not_a_miss,
                        only_not_found_is_a_miss, retry_after_of_upstream_is_respected,
                        failing_upstream_opens_circuit_breaker, successful_probe_closes_circuit_breaker,
                        an_upstream_is_shown_without_its_password,
                        object_of_another_sender_is_fetched_before_thousands_of_unknown_ones,
                        senders_take_turns_and_the_most_sampled_is_first, background_requests_have_a_rate,
                        background_requests_do_not_delay_clients, failed_background_request_is_not_repeated_soon,
                        cancelled_request_ends_at_once, request_ends_at_deadline_and_fetch_continues,
                        stop_does_not_wait_for_an_upstream, request_carries_its_forwarding_path,
                        looping_request_is_not_forwarded, forwarding_is_limited_to_eight_servers,
                        forwarding_path_of_any_length_is_accepted, forwarded_request_does_not_wait_for_direct_one,
                        forwarded_requests_need_no_service_thread, requests_over_the_limit_are_queued,
                        requests_forwarded_further_have_a_separate_limit, forwarded_request_can_be_cancelled,
                        clients_behind_a_proxy_share_one_request, misses_of_forwarded_and_direct_requests_are_separate)
