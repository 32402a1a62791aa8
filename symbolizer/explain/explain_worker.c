/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "sandbox/worker.h"
#include "symbolizer/explain/explain.h"
#include "symbolizer/workers/dwo_request.h"

static void serve_dwo_request(void *from, int socket)
{
        dwo_request_serve(from, socket);
}

static enum status read_report(int fd, struct buf *to, struct error *err)
{
        struct stat s;
        void *room;

        if (fstat(fd, &s) < 0)
                return error_os(err, errno, "cannot read the worker's report");
        if (s.st_size <= 0 || s.st_size > EXPLAIN_REPORT_BYTES_MAX)
                return error_set(err, ST_BAD_DATA, "the worker's report has %jd bytes", (intmax_t)s.st_size);
        room = buf_reserve(to, (size_t)s.st_size);
        if (room) {
                if (pread(fd, room, (size_t)s.st_size, 0) != s.st_size)
                        return error_set(err, ST_BAD_DATA, "the worker's report is cut off");
                buf_commit(to, (size_t)s.st_size);
        }
        return buf_status(to, err, "the report");
}

enum status explain_run_worker(const struct extract_inputs *in, enum explain_job what, const uint64_t *addresses,
                               size_t count, const atomic_bool *cancel, struct buf *to, struct error *err)
{
        const char *const args[] = { "explain", what == EXPLAIN_OBJECT ? "object" : "second-opinion", in->name,
                                     in->file_name, NULL };
        _cleanup_close_ int question = memfd_create("addresses", MFD_CLOEXEC);
        _cleanup_close_ int out = memfd_create("report", MFD_CLOEXEC);
        _cleanup_close_ int ask = -1, answer = -1;
        ssize_t bytes = (ssize_t)(count * sizeof *addresses);
        enum status st;

        if (count > EXPLAIN_ADDRESSES_MAX)
                return error_set(err, ST_USAGE, "more than %d addresses; split them into several requests",
                                 EXPLAIN_ADDRESSES_MAX);
        if (question < 0 || out < 0 || pwrite(question, addresses, (size_t)bytes, 0) != bytes)
                return error_os(err, errno, "cannot pass addresses to a worker");
        if (in->dwo.open && (st = dwo_request_create_sockets(&ask, &answer, err)))
                return st;
        const int fds[] = { in->debuginfo_fd,
                            in->executable_fd,
                            in->altlink_fd,
                            question,
                            out,
                            in->dwp_fd > 0 ? in->dwp_fd : -1,
                            ask };
        const struct worker_job job = { .args = args,
                                        .fds = fds,
                                        .fd_count = sizeof fds / sizeof *fds,
                                        .cpu_s = EXPLAIN_CPU_S,
                                        .cancel = cancel,
                                        .serve = in->dwo.open ? serve_dwo_request : NULL,
                                        .serve_context = (void *)&in->dwo,
                                        .serve_fd = answer };

        st = worker_run(&job, err);
        return st ? st : read_report(out, to, err);
}
