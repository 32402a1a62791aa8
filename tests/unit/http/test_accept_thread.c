/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting connections while the process has no file descriptor left. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "http/accept_thread.h"
#include "http/listen.h"
#include "tests/support/suite.h"

static atomic_int failure; /* errno of every call; 0 none */
static atomic_int failed;  /* calls that failed for it */
static int failed_pipe[2]; /* a byte for each of them */

/* Interposes the C library's function. */
int accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
        int (*accept)(int, struct sockaddr *, socklen_t *, int) =
                (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");

        if (!atomic_load(&failure))
                return accept(fd, address, n, flags);
        atomic_fetch_add(&failed, 1);
        (void)!write(failed_pipe[1], "x", 1);
        errno = atomic_load(&failure);
        return -1;
}

static bool has_always_room(void *context)
{
        (void)context;
        return true;
}

static void take_connection(void *context, int fd, const struct sockaddr *address, socklen_t n)
{
        const int *taken_pipe = context;

        (void)address;
        (void)n;
        close(fd);
        (void)!write(taken_pipe[1], "x", 1);
}

static void wait_for_bytes(int fd, int count)
{
        char c;

        for (int i = 0; i < count; i++)
                ck_assert_int_eq(read(fd, &c, 1), 1);
}

static int connect_to(uint16_t port)
{
        const struct sockaddr_in address = { .sin_family = AF_INET,
                                             .sin_port = htons(port),
                                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
        return fd;
}

/* Accept a connection that waits while each attempt fails, then fails no longer. @return ns that `attempts` took */
static int64_t accept_after_failures(int os_errno, int attempts)
{
        struct accept_thread t = { .has_room = has_always_room, .take = take_connection };
        int taken_pipe[2];
        _cleanup_close_ int client = -1;
        uint16_t port;
        int64_t began;

        ck_assert(pipe(taken_pipe) == 0 && pipe(failed_pipe) == 0);
        t.context = taken_pipe;
        ck_assert_int_eq(open_listen_socket("127.0.0.1", 0, &t.listener, &port, NULL), ST_OK);
        atomic_store(&failed, 0);
        atomic_store(&failure, os_errno);
        client = connect_to(port);
        began = monotonic_ns();
        ck_assert_int_eq(accept_thread_start(&t, NULL), ST_OK);
        wait_for_bytes(failed_pipe[0], attempts);
        began = monotonic_ns() - began;
        atomic_store(&failure, 0);
        wait_for_bytes(taken_pipe[0], 1);
        accept_thread_stop(&t);
        for (int i = 0; i < 2; i++) {
                close(taken_pipe[i]);
                close(failed_pipe[i]);
        }
        return began;
}

START_TEST(attempts_without_descriptors_are_apart)
{
        static const int codes[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };

        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
                ck_assert_int_ge(accept_after_failures(codes[i], 3), 2 * ACCEPT_PAUSE_MS * INT64_C(1000000));
}
END_TEST

START_TEST(connections_that_ended_meanwhile_cause_no_pause)
{
        /* So many pauses would exceed the time limit of the test. */
        accept_after_failures(ECONNABORTED, 2000);
}
END_TEST

/* Stop after the attempts have failed some times, and go on failing. */
static void stop_while_failing(int os_errno, int attempts)
{
        struct accept_thread t = { .has_room = has_always_room, .take = take_connection };
        _cleanup_close_ int client = -1;
        uint16_t port;

        ck_assert_int_eq(pipe2(failed_pipe, O_NONBLOCK), 0);
        ck_assert_int_eq(fcntl(failed_pipe[0], F_SETFL, 0), 0);
        ck_assert_int_eq(open_listen_socket("127.0.0.1", 0, &t.listener, &port, NULL), ST_OK);
        atomic_store(&failure, os_errno);
        client = connect_to(port);
        ck_assert_int_eq(accept_thread_start(&t, NULL), ST_OK);
        wait_for_bytes(failed_pipe[0], attempts);
        accept_thread_stop(&t);
        atomic_store(&failure, 0);
        close(failed_pipe[0]);
        close(failed_pipe[1]);
}

START_TEST(stop_does_not_wait_for_descriptors)
{
        stop_while_failing(EMFILE, 1);
}
END_TEST

/* As in a flood, some connection always waits. */
START_TEST(stop_does_not_wait_until_no_connection_waits)
{
        stop_while_failing(ECONNABORTED, 1000);
}
END_TEST

TEST_SUITE("accept_thread", attempts_without_descriptors_are_apart, connections_that_ended_meanwhile_cause_no_pause,
           stop_does_not_wait_for_descriptors, stop_does_not_wait_until_no_connection_waits)
