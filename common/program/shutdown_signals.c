/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program/shutdown_signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

enum status shutdown_signals_open(int *ret, struct error *err)
{
        sigset_t set;

        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return error_os(err, errno, "cannot block signals");
        *ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return *ret < 0 ? error_os(err, errno, "cannot wait for signals") : ST_OK;
}
