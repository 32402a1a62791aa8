/* SPDX-License-Identifier: Apache-2.0 */
#include "package-trees/inspector.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "sandbox/fd_pass.h"
#include "sandbox/worker.h"

/* a worker gets no more files after this time, because its CPU limit covers all its files */
#define BATCH_NS 30000000000ll

struct inspector_run_state {
        const struct inspector_options *o;
        int64_t start_ns;
        int socket, contents_fd;
        bool has_file; /* the worker is inspecting a file */
        bool is_over;
};

static enum status read_worker_contents(const struct inspector_run_state *b, size_t n, struct package_contents *ret,
                                        struct error *err)
{
        _cleanup_free_ void *bytes = malloc(n);

        if (!bytes)
                return error_no_memory(err);
        if (pread(b->contents_fd, bytes, n, 0) != (ssize_t)n)
                return error_set(err, ST_BAD_DATA, "the worker's result is truncated");
        return package_contents_read(steal_ptr(bytes), n, ret, err);
}

static void handle_inspector_answer(struct inspector_run_state *b, const struct inspector_answer *a)
{
        struct package_contents contents = { 0 };
        struct error err;
        enum status st = ST_OK;

        b->has_file = false;
        if (a->size > LIMIT_SCAN_FOUND_BYTES)
                st = error_set(&err, ST_BAD_DATA, "the worker's result is damaged");
        if (!st && a->size)
                st = read_worker_contents(b, (size_t)a->size, &contents, &err);
        if (!st && a->status) {
                st = a->status < 0 && a->status >= ST_USAGE ? (enum status)a->status : ST_BAD_DATA;
                error_set(&err, st, "%.*s", (int)sizeof a->text, a->text);
        }
        b->o->done(b->o->context, &contents, st, st ? &err : NULL);
        package_contents_deinit(&contents);
}

static void serve_inspector(void *context, int socket)
{
        struct inspector_run_state *b = context;
        struct inspector_answer a;
        ssize_t n = recv(socket, &a, sizeof a, MSG_DONTWAIT | MSG_TRUNC);
        _cleanup_close_ int fd = -1;

        if (n != (ssize_t)sizeof a || b->is_over)
                return;
        if (b->has_file)
                handle_inspector_answer(b, &a);
        if (monotonic_ns() - b->start_ns < BATCH_NS)
                fd = b->o->next(b->o->context);
        b->has_file = fd >= 0;
        b->is_over = fd < 0;
        fd_send(socket, fd);
}

enum status inspector_run(const struct inspector_options *options, struct error *err)
{
        static const char *const args[] = { "scan", NULL };
        _cleanup_close_ int contents = memfd_create("found", MFD_CLOEXEC), theirs = -1, ours = -1;
        _cleanup_close_ int scratch = open(options->scratch_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        struct inspector_run_state b = { .o = options, .start_ns = monotonic_ns(), .contents_fd = contents };
        int ends[2];
        enum status st;

        if (contents < 0 || scratch < 0)
                return error_os(err, errno, "cannot create a temporary file in '%s'", options->scratch_dir);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
                return error_os(err, errno, "cannot create a socket for a worker");
        theirs = ends[0];
        ours = ends[1];
        st = worker_run(&(struct worker_job){ .args = args,
                                              .fds = (const int[]){ theirs, contents, scratch },
                                              .fd_count = 3,
                                              .data_bytes = LIMIT_SCAN_DATA_BYTES,
                                              .cpu_s = LIMIT_SCAN_CPU_S,
                                              .cancel = options->cancel,
                                              .serve = serve_inspector,
                                              .serve_context = &b,
                                              .serve_fd = ours },
                        err);
        if (!b.has_file || st == ST_BUSY)
                return st;
        if (!st)
                st = error_set(err, ST_BAD_DATA, "the worker did not answer");
        options->done(options->context, &(struct package_contents){ 0 }, st, err);
        return ST_OK;
}
