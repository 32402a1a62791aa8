/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to systemd's notification socket, and their intervals. */
#include <check.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/program/service_notify.h"
#include "tests/support/suite.h"

/* Each test has a process of its own, so that the environment is set only there. */
static int start_notify(const char *watchdog_us)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "cairn-notify-%d", (int)getpid());
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        char name[sizeof a.sun_path + 1];

        ck_assert_int_eq(
                bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
                0);
        snprintf(name, sizeof name, "@%s", a.sun_path + 1);
        setenv("NOTIFY_SOCKET", name, 1);
        setenv("WATCHDOG_USEC", watchdog_us, 1);
        unsetenv("WATCHDOG_PID");
        service_notify_init();
        ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
        return fd;
}

static bool receive_watchdog_message(int fd)
{
        char text[64];
        ssize_t n = recv(fd, text, sizeof text - 1, 0);

        if (n < 0)
                return false;
        text[n] = 0;
        ck_assert_str_eq(text, "WATCHDOG=1");
        return true;
}

START_TEST(watchdog_messages_are_sent_at_half_the_interval)
{
        int fd = start_notify("600000");
        int64_t began = monotonic_ns();
        int most = service_notify_interval_ms();

        ck_assert_int_eq(most, 150);
        service_notify_alive();
        ck_assert(receive_watchdog_message(fd));
        service_notify_alive();
        if (receive_watchdog_message(fd)) /* the time has already passed on a busy machine */
                ck_assert_int_ge(monotonic_ns() - began, 300 * INT64_C(1000000));
        while (!receive_watchdog_message(fd)) {
                poll(NULL, 0, 5);
                service_notify_alive();
        }
        ck_assert_int_ge(monotonic_ns() - began, 300 * INT64_C(1000000));
        close(fd);
}
END_TEST

START_TEST(long_watchdog_interval_is_limited_to_a_day)
{
        int fd = start_notify("18446744073709551615");

        ck_assert_int_eq(service_notify_interval_ms(), 43200000);
        service_notify_alive();
        ck_assert(receive_watchdog_message(fd));
        service_notify_alive();
        ck_assert(!receive_watchdog_message(fd));
        close(fd);
}
END_TEST

START_TEST(short_watchdog_interval_is_limited)
{
        int fd = start_notify("1");

        ck_assert_int_eq(service_notify_interval_ms(), 5);
        close(fd);
}
END_TEST

START_TEST(no_watchdog_means_no_interval)
{
        int fd = start_notify("0");

        ck_assert_int_eq(service_notify_interval_ms(), -1);
        service_notify_alive();
        ck_assert(!receive_watchdog_message(fd));
        close(fd);
}
END_TEST

TEST_SUITE("service notify", watchdog_messages_are_sent_at_half_the_interval,
           long_watchdog_interval_is_limited_to_a_day, short_watchdog_interval_is_limited,
           no_watchdog_means_no_interval)
