/* SPDX-License-Identifier: Apache-2.0 */
#include "http/accept_thread.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool lacks_resources(int os_errno)
{
        return os_errno == EMFILE || os_errno == ENFILE || os_errno == ENOBUFS || os_errno == ENOMEM;
}

#define ROOM_PAUSE_MS 5
#define ACCEPT_BATCH 64 /* so that a flood of connections does not delay the end of the thread */

/* Accept some that wait. @return the time until the next attempt in ms; -1: when another connection arrives */
static int accept_waiting(const struct accept_thread *t)
{
        for (int i = 0; i < ACCEPT_BATCH; i++) {
                struct sockaddr_storage address;
                socklen_t n = sizeof address;
                int fd;

                if (!t->has_room(t->context))
                        return ROOM_PAUSE_MS;
                fd = accept4(t->listener, (struct sockaddr *)&address, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd >= 0)
                        t->take(t->context, fd, (struct sockaddr *)&address, n);
                else if (lacks_resources(errno))
                        return ACCEPT_PAUSE_MS;
                else if (errno != ECONNABORTED && errno != EINTR)
                        return -1;
        }
        return 0;
}

static void *run_accept_thread(void *arg)
{
        const struct accept_thread *t = arg;
        int pause_ms = -1;

        pthread_setname_np(pthread_self(), "http-accept");
        for (;;) {
                struct pollfd p[] = { { .fd = t->wake, .events = POLLIN },
                                      { .fd = pause_ms < 0 ? t->listener : -1, .events = POLLIN } };

                if (poll(p, 2, pause_ms) >= 0 && p[0].revents)
                        return NULL;
                pause_ms = accept_waiting(t);
        }
}

enum status accept_thread_start(struct accept_thread *t, struct error *err)
{
        int rc;

        t->wake = eventfd(0, EFD_CLOEXEC);
        if (t->wake < 0)
                return error_os(err, errno, "cannot accept connections");
        rc = pthread_create(&t->thread, NULL, run_accept_thread, t);
        if (rc) {
                close(t->wake);
                return error_os(err, rc, "cannot accept connections");
        }
        t->is_started = true;
        return ST_OK;
}

void accept_thread_stop(struct accept_thread *t)
{
        if (!t->is_started)
                return;
        (void)!eventfd_write(t->wake, 1);
        pthread_join(t->thread, NULL);
        t->is_started = false;
        close(t->listener);
        close(t->wake);
}
