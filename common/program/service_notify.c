/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program/service_notify.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text/number_text.h"

#define INTERVAL_LEAST_MS 10
#define INTERVAL_MOST_MS 86400000 /* a shorter interval than required is harmless */

static struct {
        struct sockaddr_un address;
        socklen_t address_size; /* 0: notifications are not requested */
        int watchdog_ms;        /* minimum time between keep-alives: half of WatchdogSec=; 0: none required */
        int64_t told_ns;
} notify;

/* "/path", or "@name" in the abstract namespace. */
static void parse_notify_socket(const char *text)
{
        size_t n = strlen(text);

        if ((text[0] != '/' && text[0] != '@') || n < 2 || n >= sizeof notify.address.sun_path)
                return;
        notify.address.sun_family = AF_UNIX;
        memcpy(notify.address.sun_path, text, n + 1);
        if (text[0] == '@')
                notify.address.sun_path[0] = 0;
        notify.address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (text[0] == '/'));
}

/* WATCHDOG_PID, if set, is the process that the watchdog supervises. */
static void parse_watchdog(const char *microseconds, const char *pid)
{
        uint64_t us, number;

        if (pid && (!parse_uint(pid, &number) || number != (uint64_t)getpid()))
                return;
        if (!parse_uint(microseconds, &us) || !us)
                return;
        us /= 2000;
        notify.watchdog_ms = us < INTERVAL_LEAST_MS  ? INTERVAL_LEAST_MS
                             : us > INTERVAL_MOST_MS ? INTERVAL_MOST_MS
                                                     : (int)us;
}

void service_notify_init(void)
{
        const char *socket_name = getenv("NOTIFY_SOCKET"), *us = getenv("WATCHDOG_USEC");

        if (socket_name)
                parse_notify_socket(socket_name);
        if (us && notify.address_size)
                parse_watchdog(us, getenv("WATCHDOG_PID"));
        unsetenv("NOTIFY_SOCKET");
        unsetenv("WATCHDOG_USEC");
        unsetenv("WATCHDOG_PID");
}

/* Send errors are ignored: the message is repeated, or the watchdog detects that it is missing. */
static void send_notification(const char *text)
{
        _cleanup_close_ int fd = -1;

        if (!notify.address_size)
                return;
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
                (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&notify.address,
                             notify.address_size);
}

void service_notify_ready(void)
{
        send_notification("READY=1");
}

void service_notify_reloading(void)
{
        char text[80];

        snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(monotonic_ns() / 1000));
        send_notification(text);
}

void service_notify_stopping(void)
{
        send_notification("STOPPING=1");
}

void service_notify_alive(void)
{
        int64_t now = monotonic_ns();

        if (!notify.watchdog_ms || (notify.told_ns && now - notify.told_ns < notify.watchdog_ms * INT64_C(1000000)))
                return;
        notify.told_ns = now;
        send_notification("WATCHDOG=1");
}

int service_notify_interval_ms(void)
{
        return notify.watchdog_ms ? notify.watchdog_ms / 2 : -1;
}
