/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cairn worker explain object|second-opinion NAME`: why addresses of ELF files are what they are.
 *
 * Descriptors: 3 debuginfo, 4 executable, 5 dwz supplementary file (each may be
 * closed), 6 the addresses, 8 bytes each, 7 where the report goes, 8 package of split DWARF, 9 a socket on which to ask
 * for its single files (these may be closed too). NAME is for messages.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "common/file.h"
#include "sandbox/worker.h"
#include "symbolizer/explain.h"
#include "symbolizer/explain_libdw.h"
#include "symbolizer/extract_ask.h"

enum { DEBUGINFO_FD = 3, EXECUTABLE_FD, ALTLINK_FD, ADDRESSES_FD, OUTPUT_FD, DWP_FD, ASK_FD };

static int open_or_none(int fd)
{
        return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

static enum status explain(bool second_opinion, const char *name, struct error *err)
{
        struct dwo_asker asker = { .socket = open_or_none(ASK_FD), .lock = PTHREAD_MUTEX_INITIALIZER };
        const struct extract_inputs in = { .debuginfo_fd = open_or_none(DEBUGINFO_FD),
                                           .executable_fd = open_or_none(EXECUTABLE_FD),
                                           .altlink_fd = open_or_none(ALTLINK_FD),
                                           .dwp_fd = open_or_none(DWP_FD),
                                           .dwo = { .open = asker.socket >= 0 ? dwo_ask : NULL, .context = &asker },
                                           .name = name };
        uint64_t addresses[EXPLAIN_ADDRESSES_MAX];
        _cleanup_buf_ struct buf report = { 0 };
        ssize_t n = pread(ADDRESSES_FD, addresses, sizeof addresses, 0);
        enum status st;

        if (n < 0)
                return error_os(err, errno, "cannot read the addresses");
        buf_init(&report, EXPLAIN_REPORT_BYTES_MAX);
        if (second_opinion)
                st = explain_second_opinion(in.debuginfo_fd >= 0 ? in.debuginfo_fd : in.executable_fd, in.altlink_fd, name,
                                            addresses, (size_t)n / sizeof *addresses, &report, err);
        else
                st = explain_write(&in, addresses, (size_t)n / sizeof *addresses, &report, err);
        return st ? st : file_write_all(OUTPUT_FD, report.data, report.size, "report", err);
}

int worker_explain(int argc, char **argv)
{
        bool second_opinion = argc > 1 && strcmp(argv[1], "second-opinion") == 0;
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_DESCRIPTORS, &err);

        if (!st)
                st = explain(second_opinion, argc > 2 ? argv[2] : "object", &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}
