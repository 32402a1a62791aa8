/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/inspector.h"

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
#include "scan/inspector_protocol.h"

#define BATCH_NS 30000000000ll /* a worker gets no further file then, so that its limit of time is that of few files */

struct batch {
        const struct inspector_options *o;
        int64_t start_ns;
        int socket, found_fd;
        bool has_file; /* the worker looks at one */
        bool is_over;
};

static enum status read_found(const struct batch *b, size_t n, struct found *ret, struct error *err)
{
        _cleanup_free_ void *bytes = malloc(n);

        if (!bytes)
                return error_no_memory(err);
        if (pread(b->found_fd, bytes, n, 0) != (ssize_t)n)
                return error_set(err, ST_BAD_DATA, "the worker's answer is cut off");
        return found_read(steal_ptr(bytes), n, ret, err);
}

static void read_answer(struct batch *b, const struct inspector_answer *a)
{
        struct found found = { 0 };
        struct error err;
        enum status st = ST_OK;

        b->has_file = false;
        if (a->size > LIMIT_SCAN_FOUND_BYTES)
                st = error_set(&err, ST_BAD_DATA, "the worker's answer is damaged");
        if (!st && a->size)
                st = read_found(b, (size_t)a->size, &found, &err);
        if (!st && a->status) {
                st = a->status < 0 && a->status >= ST_USAGE ? (enum status)a->status : ST_BAD_DATA;
                error_set(&err, st, "%.*s", (int)sizeof a->text, a->text);
        }
        b->o->done(b->o->context, &found, st, st ? &err : NULL);
        found_deinit(&found);
}

static void serve(void *context, int socket)
{
        struct batch *b = context;
        struct inspector_answer a;
        ssize_t n = recv(socket, &a, sizeof a, MSG_DONTWAIT | MSG_TRUNC);
        _cleanup_close_ int fd = -1;

        if (n != (ssize_t)sizeof a || b->is_over)
                return;
        if (b->has_file)
                read_answer(b, &a);
        if (monotonic_ns() - b->start_ns < BATCH_NS)
                fd = b->o->next(b->o->context);
        b->has_file = fd >= 0;
        b->is_over = fd < 0;
        fd_pass(socket, fd);
}

enum status inspector_run(const struct inspector_options *options, struct error *err)
{
        static const char *const args[] = { "scan", NULL };
        _cleanup_close_ int found = memfd_create("found", MFD_CLOEXEC), theirs = -1, ours = -1;
        _cleanup_close_ int scratch = open(options->scratch_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        struct batch b = { .o = options, .start_ns = monotonic_ns(), .found_fd = found };
        int ends[2];
        enum status st;

        if (found < 0 || scratch < 0)
                return error_os(err, errno, "cannot create a temporary file in '%s'", options->scratch_dir);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
                return error_os(err, errno, "cannot make a socket for a worker");
        theirs = ends[0];
        ours = ends[1];
        st = worker_run(&(struct worker_job){ .args = args, .fds = (const int[]){ theirs, found, scratch }, .fd_count = 3,
                                              .data_bytes = LIMIT_SCAN_DATA_BYTES, .cpu_s = LIMIT_SCAN_CPU_S,
                                              .cancel = options->cancel, .serve = serve, .serve_context = &b,
                                              .serve_fd = ours }, err);
        if (!b.has_file || st == ST_BUSY)
                return st;
        if (!st)
                st = error_set(err, ST_BAD_DATA, "the worker gave no answer");
        options->done(options->context, &(struct found){ 0 }, st, err);
        return ST_OK;
}
