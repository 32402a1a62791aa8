/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/fork_server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exit_code.h"
#include "sandbox/worker_budget.h"
#include "sandbox/worker_user.h"

#define FDS_MAX 16
#define ARGS_MAX 8
#define ARGS_BYTES 512
#define POLL_MS 100 /* latency of a cancel */

struct fork_server {
        pid_t pid;
        int socket; /* -1: the fork server has exited */
        bool is_ready;
};

/* One packet each way, after an initial one by which the fork server reports that it is ready. */
struct request {
        uint64_t memory_bytes, data_bytes, file_bytes, cpu_s, wall_s;
        uint32_t fd_count, arg_count;
        uint8_t is_open[FDS_MAX]; /* its descriptor is passed along */
        char args[ARGS_BYTES];    /* NUL-terminated arguments */
};

struct answer {
        enum status st;
        struct error err;
};

union control {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

/* ---- in the fork server -------------------------------------------------------------- */

static bool receive_fds(struct msghdr *m, const struct request *r, int ret[static FDS_MAX])
{
        struct cmsghdr *c = CMSG_FIRSTHDR(m);
        size_t got = c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
                             ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
                             : 0,
               used = 0;

        for (size_t i = 0; i < FDS_MAX; i++) {
                ret[i] = -1;
                if (i < r->fd_count && r->is_open[i] && used < got)
                        memcpy(&ret[i], CMSG_DATA(c) + sizeof(int) * used++, sizeof(int));
        }
        return used == got;
}

/* False when the parent has exited. */
static bool receive_job(int socket, struct request *ret, int fds_ret[static FDS_MAX])
{
        union control control;
        struct iovec io = { ret, sizeof *ret };
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
        };
        ssize_t n;

        do
                n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        return n == sizeof *ret && receive_fds(&m, ret, fds_ret);
}

/* While a job runs, the only event on the socket is the end of the parent. */
static void handle_socket_end(void *context, int socket)
{
        (void)socket;
        atomic_store((atomic_bool *)context, true);
}

static struct answer run_forked_job(int socket, struct request *r, const int *fds)
{
        const char *args[ARGS_MAX + 1] = { NULL }, *at = r->args;
        atomic_bool cancel = false;
        const struct worker_job job = { .args = args,
                                        .fds = fds,
                                        .fd_count = r->fd_count,
                                        .memory_bytes = r->memory_bytes,
                                        .data_bytes = r->data_bytes,
                                        .file_bytes = r->file_bytes,
                                        .cpu_s = r->cpu_s,
                                        .wall_s = r->wall_s,
                                        .cancel = &cancel,
                                        .serve = handle_socket_end,
                                        .serve_context = &cancel,
                                        .serve_fd = socket };
        struct answer a = { .err = { .text = "" } };

        for (uint32_t i = 0; i < r->arg_count; i++, at += strlen(at) + 1)
                args[i] = at;
        a.st = worker_run(&job, &a.err);
        return a;
}

static _Noreturn void fork_server_main(int socket, pid_t parent, enum status (*prepare)(struct error *err))
{
        static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2 };
        struct request r;
        int fds[FDS_MAX];

        prctl(PR_SET_NAME, "cairn-forkserv");
        for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
                signal(ignored[i], SIG_IGN);
        /* If another fork server's socket stayed open here, that one would not detect its end. */
        if ((socket > STDERR_FILENO + 1 && close_range(STDERR_FILENO + 1, (unsigned)socket - 1, 0) < 0) ||
            close_range((unsigned)socket + 1, ~0u, 0) < 0)
                _exit(EXIT_FAILED);
        if (!worker_user_become() || (prepare && prepare(NULL)))
                _exit(EXIT_FAILED);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* must follow a change of uid, which clears it */
        if (getppid() != parent)
                _exit(EXIT_FAILED);
        if (send(socket, "", 1, MSG_NOSIGNAL) != 1)
                _exit(EXIT_FAILED);
        while (receive_job(socket, &r, fds)) {
                struct answer a = run_forked_job(socket, &r, fds);

                for (size_t i = 0; i < FDS_MAX; i++)
                        if (fds[i] >= 0)
                                close(fds[i]);
                if (send(socket, &a, sizeof a, MSG_NOSIGNAL) != sizeof a)
                        break;
        }
        _exit(EXIT_DONE);
}

/* ---- in the parent ------------------------------------------------------------------ */

enum status fork_server_create(enum status (*prepare)(struct error *err), int (*run)(int argc, char **argv),
                               struct fork_server **ret, struct error *err)
{
        struct fork_server *f = calloc(1, sizeof *f);
        pid_t parent = getpid();
        int sockets[2];

        assert(run);
        if (!f)
                return error_no_memory(err);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
                free(f);
                return error_os(err, errno, "cannot create a socket for the fork server");
        }
        f->pid = fork();
        if (f->pid == 0) {
                close(sockets[0]);
                worker_set_entry(run);
                fork_server_main(sockets[1], parent, prepare);
        }
        close(sockets[1]);
        f->socket = sockets[0];
        if (f->pid < 0) {
                int e = errno;

                close(f->socket);
                free(f);
                return error_os(err, e, "cannot start the fork server");
        }
        *ret = f;
        return ST_OK;
}

static void end_fork_server(struct fork_server *f)
{
        if (f->socket < 0)
                return;
        close(f->socket);
        f->socket = -1;
        kill(f->pid, SIGKILL); /* it may wait for a worker that reads from a mount that does not respond */
        while (waitpid(f->pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

void fork_server_destroy(struct fork_server *f)
{
        if (f)
                end_fork_server(f);
        free(f);
}

static bool fill_request(const struct worker_job *job, uint64_t data_bytes, struct request *r)
{
        size_t at = 0;

        *r = (struct request){ .memory_bytes = job->memory_bytes,
                               .data_bytes = data_bytes,
                               .file_bytes = job->file_bytes,
                               .cpu_s = job->cpu_s,
                               .wall_s = job->wall_s,
                               .fd_count = (uint32_t)job->fd_count };
        if (job->fd_count > FDS_MAX || job->serve)
                return false;
        for (const char *const *arg = job->args; *arg; arg++, r->arg_count++) {
                size_t size = strlen(*arg) + 1;

                if (r->arg_count == ARGS_MAX || size > sizeof r->args - at)
                        return false;
                memcpy(r->args + at, *arg, size);
                at += size;
        }
        return true;
}

static bool send_job(const struct fork_server *f, const struct worker_job *job, uint64_t data_bytes)
{
        union control control = { .bytes = { 0 } };
        struct request r;
        struct iovec io = { &r, sizeof r };
        struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
        struct cmsghdr *c = &control.align;
        size_t open_count = 0;

        if (!fill_request(job, data_bytes, &r))
                return false;
        for (size_t i = 0; i < job->fd_count; i++) {
                if (job->fds[i] < 0)
                        continue;
                r.is_open[i] = 1;
                memcpy(CMSG_DATA(c) + sizeof(int) * open_count++, &job->fds[i], sizeof(int));
        }
        if (open_count) {
                *c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                       .cmsg_type = SCM_RIGHTS,
                                       .cmsg_len = CMSG_LEN(open_count * sizeof(int)) };
                m.msg_control = control.bytes;
                m.msg_controllen = CMSG_SPACE(open_count * sizeof(int));
        }
        return sendmsg(f->socket, &m, MSG_NOSIGNAL) == sizeof r;
}

/* False if cancelled or if no packet will arrive. */
static bool receive_packet(const struct fork_server *f, const atomic_bool *cancel, void *ret, size_t size)
{
        struct pollfd p = { .fd = f->socket, .events = POLLIN };

        while (!(cancel && atomic_load(cancel)))
                if (poll(&p, 1, POLL_MS) > 0)
                        return recv(f->socket, ret, size, 0) == (ssize_t)size;
        return false;
}

/* A fork server whose preparation failed sends nothing, so no job has started. */
static bool check_fork_server(struct fork_server *f, const atomic_bool *cancel)
{
        char ready;

        if (!f || f->socket < 0)
                return false;
        if (!f->is_ready)
                f->is_ready = receive_packet(f, cancel, &ready, sizeof ready);
        if (!f->is_ready)
                end_fork_server(f);
        return f->is_ready;
}

static enum status run_in_fork_server(struct fork_server *f, const struct worker_job *job, uint64_t data_bytes,
                                      struct error *err)
{
        struct answer a;

        if (!check_fork_server(f, job->cancel) || !send_job(f, job, data_bytes))
                return worker_run_with_data(job, data_bytes, err);
        if (receive_packet(f, job->cancel, &a, sizeof a)) {
                if (a.st && err)
                        *err = a.err;
                return a.st;
        }
        end_fork_server(f);
        if (job->cancel && atomic_load(job->cancel))
                return error_set(err, ST_BUSY, "worker '%s' was stopped", job->args[0]);
        return error_set(err, ST_BUSY, "the fork server exited during '%s'; retry", job->args[0]);
}

enum status fork_server_run(struct fork_server *f, const struct worker_job *job, struct error *err)
{
        uint64_t granted;
        enum status st = worker_budget_acquire(job->data_bytes, true, job->cancel, &granted, err);

        if (st)
                return st;
        st = run_in_fork_server(f, job, granted ? granted : job->data_bytes, err);
        worker_budget_release(granted);
        return st;
}
