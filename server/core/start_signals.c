/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/start_signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/program/log.h"

static void *wait_for_start_signal(void *arg)
{
        struct start_signals *s = arg;
        struct pollfd fds[] = { { .fd = s->signal_fd, .events = POLLIN }, { .fd = s->end_fd, .events = POLLIN } };
        struct signalfd_siginfo info;

        while (poll(fds, 2, -1) < 0)
                if (errno != EINTR)
                        return NULL;
        if (!fds[0].revents || read(s->signal_fd, &info, sizeof info) != sizeof info)
                return NULL;
        if (!fds[1].revents) {
                log_info("serve", "%s: stopped during the start", strsignal((int)info.ssi_signo));
                _exit(EXIT_SUCCESS);
        }
        s->got = (int)info.ssi_signo;
        return NULL;
}

static void close_start_signals(struct start_signals *s)
{
        cleanup_close(&s->signal_fd);
        cleanup_close(&s->end_fd);
}

enum status start_signals_begin(struct start_signals *s, struct error *err)
{
        sigset_t set;
        int failed;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        *s = (struct start_signals){ .signal_fd = signalfd(-1, &set, SFD_CLOEXEC), .end_fd = eventfd(0, EFD_CLOEXEC) };
        failed = s->signal_fd < 0 || s->end_fd < 0 ? errno : pthread_create(&s->thread, NULL, wait_for_start_signal, s);
        if (failed) {
                close_start_signals(s);
                return error_os(err, failed, "cannot wait for signals");
        }
        pthread_setname_np(s->thread, "start");
        return ST_OK;
}

int start_signals_end(struct start_signals *s)
{
        const uint64_t one = 1;
        ssize_t written = write(s->end_fd, &one, sizeof one);

        (void)written; /* the counter of an eventfd has room for it */
        pthread_join(s->thread, NULL);
        close_start_signals(s);
        return s->got;
}
