/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC server with many clients and a handler pool; some clients disconnect before their response. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "grpc/grpc_internal.h"
#include "tests/support/http_raw.h"
#include "tests/support/suite.h"

#define CLIENTS 8
#define CALLS 25
#define POOL_TIMEOUT_S 60

static atomic_int handled, finished, answered, cancelled;
static atomic_bool let_go;

static void echo_grpc_message(struct grpc_call *call, void *context)
{
        size_t n;
        const uint8_t *message = grpc_call_message(call, &n);
        struct buf answer;

        (void)context;
        atomic_fetch_add(&handled, 1);
        buf_init(&answer, KiB(64));
        buf_append(&answer, message, n);
        grpc_call_reply(call, &answer);
}

static void wait_for_leave(struct grpc_call *call, void *context)
{
        (void)context;
        atomic_fetch_add(&handled, 1);
        while (!deadline_expired(grpc_call_deadline(call)) && !atomic_load(&let_go))
                usleep(1000);
        atomic_fetch_add(&cancelled, deadline_expired(grpc_call_deadline(call)));
        grpc_call_fail(call, GRPC_ABORTED, 0, "gone");
}

static void count_finished(void *context, const struct grpc_call *call)
{
        (void)context;
        (void)call;
        atomic_fetch_add(&finished, 1);
}

static const struct grpc_method methods[] = {
        { .path = "/t/Echo", .max_message = KiB(64), .memory = MEMORY_INGEST, .handle = echo_grpc_message },
        { .path = "/t/Wait", .max_message = KiB(64), .memory = MEMORY_INGEST, .handle = wait_for_leave },
};
static struct http_server *http;
static struct grpc_server *server;

static void set_up(void)
{
        const struct http_pool_options pool = { .name = "test", .threads = 4, .timeout_s = POOL_TIMEOUT_S };
        const struct http_options h = {
                .size = sizeof h, .host = "127.0.0.1", .pools = &pool, .pool_count = 1, .threads = 2
        };
        struct grpc_options o = { .size = sizeof o,
                                  .host = "127.0.0.1",
                                  .methods = methods,
                                  .method_count = 2,
                                  .max_connections = 64,
                                  .max_per_address = 64,
                                  .finished = count_finished };
        struct error err;

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, NULL), ST_OK);
        ck_assert_int_eq(http_server_start(&h, NULL, 0, NULL, &http, &err), ST_OK);
        o.http = http;
        ck_assert_int_eq(grpc_server_start(&o, &server, &err), ST_OK);
}

static void stop_servers(void)
{
        grpc_server_stop(server);
        http_server_stop(http);
        ck_assert_uint_eq(memory_use_held(MEMORY_CONNECTIONS), 0);
        ck_assert_uint_eq(memory_use_held(MEMORY_INGEST), 0);
}

/* ---- a client ---- */

struct client {
        int fd;
        nghttp2_session *h2;
        size_t sent, closed;
};

static int count_answer(nghttp2_session *h2, int32_t stream_id, uint32_t code, void *context)
{
        struct client *c = context;

        (void)h2;
        (void)stream_id;
        c->closed++;
        atomic_fetch_add(&answered, code == NGHTTP2_NO_ERROR);
        return 0;
}

static ssize_t read_message(nghttp2_session *h2, int32_t stream_id, uint8_t *to, size_t n, uint32_t *flags,
                            nghttp2_data_source *source, void *context)
{
        static const char message[] = "\0\0\0\0\5hello";

        (void)h2;
        (void)stream_id;
        (void)source;
        (void)context;
        ck_assert_uint_ge(n, sizeof message - 1);
        memcpy(to, message, sizeof message - 1);
        *flags = NGHTTP2_DATA_FLAG_EOF;
        return sizeof message - 1;
}

static void open_client(struct client *c)
{
        nghttp2_session_callbacks *callbacks;

        *c = (struct client){ .fd = raw_connect(grpc_server_port(server)) };
        ck_assert_int_eq(nghttp2_session_callbacks_new(&callbacks), 0);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, count_answer);
        ck_assert_int_eq(nghttp2_session_client_new(&c->h2, callbacks, c), 0);
        nghttp2_session_callbacks_del(callbacks);
        ck_assert_int_eq(nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static void close_client(struct client *c)
{
        close(c->fd);
        nghttp2_session_del(c->h2);
}

static nghttp2_nv make_nv(const char *name, const char *value)
{
        return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                             NGHTTP2_NV_FLAG_NONE };
}

static void send_frames(struct client *c)
{
        const uint8_t *data;
        ssize_t n;

        while ((n = nghttp2_session_mem_send(c->h2, &data)) > 0)
                raw_send(c->fd, data, (size_t)n);
}

static void send_call(struct client *c, const char *path)
{
        const nghttp2_nv headers[] = { make_nv(":method", "POST"), make_nv(":scheme", "http"), make_nv(":path", path),
                                       make_nv(":authority", "x"), make_nv("content-type", "application/grpc") };
        const nghttp2_data_provider provider = { .read_callback = read_message };

        ck_assert_int_gt(nghttp2_submit_request(c->h2, NULL, headers, 5, &provider, NULL), 0);
        c->sent++;
        send_frames(c);
}

static void receive_answers(struct client *c)
{
        while (c->closed < c->sent) {
                uint8_t data[4096];
                ssize_t n = recv(c->fd, data, sizeof data, 0);

                if (n <= 0)
                        return;
                ck_assert_int_eq(nghttp2_session_mem_recv(c->h2, data, (size_t)n), n);
                send_frames(c);
        }
}

static void *run_client(void *arg)
{
        struct client c;

        (void)arg;
        open_client(&c);
        for (int i = 0; i < CALLS; i++) {
                send_call(&c, "/t/Echo");
                if (i % 3 == 0)
                        receive_answers(&c);
        }
        receive_answers(&c);
        close_client(&c);
        return NULL;
}

static void run_clients(void *(*run)(void *))
{
        pthread_t threads[CLIENTS];

        for (int i = 0; i < CLIENTS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
        for (int i = 0; i < CLIENTS; i++)
                pthread_join(threads[i], NULL);
}

START_TEST(calls_of_many_clients_are_all_answered)
{
        run_clients(run_client);
        ck_assert_int_eq(atomic_load(&handled), CLIENTS * CALLS);
        ck_assert_int_eq(atomic_load(&answered), CLIENTS * CALLS);
        stop_servers();
        ck_assert_int_eq(atomic_load(&finished), CLIENTS * CALLS);
}
END_TEST

static void *leave_early(void *arg)
{
        struct client c;

        (void)arg;
        open_client(&c);
        send_call(&c, "/t/Wait");
        send_call(&c, "/t/Echo");
        close_client(&c);
        return NULL;
}

START_TEST(calls_of_disconnected_clients_are_cancelled)
{
        run_clients(leave_early);
        stop_servers();
        /* A connection may end before its calls are read, and calls of a disconnected client are not handled. */
        ck_assert_int_le(atomic_load(&handled), atomic_load(&finished));
        ck_assert_int_le(atomic_load(&finished), 2 * CLIENTS);
        ck_assert_int_eq(atomic_load(&answered), 0);
}
END_TEST

START_TEST(stop_waits_for_running_calls)
{
        struct client c;

        open_client(&c);
        send_call(&c, "/t/Wait");
        while (!atomic_load(&handled))
                usleep(1000);
        close_client(&c);
        while (!atomic_load(&cancelled))
                usleep(1000);
        open_client(&c);
        send_call(&c, "/t/Wait");
        while (atomic_load(&handled) < 2)
                usleep(1000);
        atomic_store(&let_go, true);
        stop_servers();
        receive_answers(&c);
        close_client(&c);
        ck_assert_int_eq(atomic_load(&answered), 1);
        ck_assert_int_eq(atomic_load(&finished), 2);
}
END_TEST

/* Like a worker, which shares all descriptors for a moment after it was forked. */
static pid_t fork_holder(int *until_ret)
{
        int until[2];
        pid_t pid;
        char byte;

        ck_assert_int_eq(pipe(until), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                close(until[1]);
                (void)!read(until[0], &byte, 1);
                _exit(0);
        }
        close(until[0]);
        *until_ret = until[1];
        return pid;
}

/* With sanitizers: later epoll events for it were a use after free. */
START_TEST(connection_shared_with_another_process_is_removed)
{
        struct client c;
        pid_t holder;
        int until;

        open_client(&c);
        send_call(&c, "/t/Echo");
        receive_answers(&c);
        holder = fork_holder(&until);
        shutdown(c.fd, SHUT_RDWR);
        while (memory_use_held(MEMORY_CONNECTIONS))
                usleep(1000);
        close_client(&c);
        for (int i = 0; i < 3; i++) {
                open_client(&c);
                send_call(&c, "/t/Echo");
                receive_answers(&c);
                close_client(&c);
        }
        close(until);
        ck_assert_int_eq(waitpid(holder, NULL, 0), holder);
        stop_servers();
        ck_assert_int_eq(atomic_load(&answered), 4);
}
END_TEST

START_TEST(idle_connection_is_closed_without_memory)
{
        struct memory_reservation others = { .use = MEMORY_CONNECTIONS };
        struct client idle[2], c;
        char byte;

        for (int i = 0; i < 2; i++) {
                open_client(&idle[i]);
                send_call(&idle[i], "/t/Echo");
                receive_answers(&idle[i]);
        }
        while (memory_reserve(&others, KiB(1), NULL) == ST_OK)
                continue;
        memory_shrink(&others, others.bytes - KiB(16)); /* to start a call */
        open_client(&c);
        send_call(&c, "/t/Echo");
        receive_answers(&c);
        ck_assert_int_eq(atomic_load(&answered), 3);
        while (recv(idle[0].fd, &byte, 1, 0) > 0)
                continue;
        send_call(&idle[1], "/t/Echo");
        receive_answers(&idle[1]);
        ck_assert_int_eq(atomic_load(&answered), 4);
        memory_release(&others);
        close_client(&idle[0]);
        close_client(&idle[1]);
        close_client(&c);
        stop_servers();
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { calls_of_many_clients_are_all_answered,
                                       calls_of_disconnected_clients_are_cancelled, stop_waits_for_running_calls,
                                       connection_shared_with_another_process_is_removed,
                                       idle_connection_is_closed_without_memory };

        return suite_run_with("threads_grpc", set_up, NULL, tests, sizeof tests / sizeof *tests);
}
