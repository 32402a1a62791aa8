/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/processes/mount_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/processes/open_in_root.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "sandbox/fd_pass.h"

#define ANSWERS 64
#define NAME_BYTES 64

struct request {
        enum mount_probe_kind kind;
        char name[NAME_BYTES], path[LIMIT_PATH_BYTES];
};

struct answer {
        uint64_t key;
        int64_t until_ns; /* 0: free */
        bool answers;
};

static struct {
        pid_t child; /* 0: none */
        int socket;
        pid_t stuck[LIMIT_AGENT_PROBES_STUCK];
        size_t stuck_count;
        struct answer answers[ANSWERS];
        struct mount_probe_stats stats;
} probe;

/* ---- in the child, forked from a threaded process: async-signal-safe calls only ---- */

/* O_PATH first, as in object_cache.c, so that devices and FIFOs are not opened. */
static void read_first_page(int path_fd)
{
        _cleanup_close_ int fd = -1;
        struct stat st;
        char page[4096];

        if (path_fd < 0 || fstat(path_fd, &st) || !S_ISREG(st.st_mode))
                return;
        fd = reopen_for_reading(path_fd);
        if (fd >= 0)
                (void)!pread(fd, page, sizeof page, 0);
}

static void access_probed_file(const struct request *r, int proc_fd)
{
        _cleanup_close_ int fd = -1, root = -1;

        if (r->kind == MOUNT_PROBE_MAPPING && r->name[0])
                fd = openat(proc_fd, r->name, O_PATH | O_CLOEXEC);
        if (fd < 0 && r->path[0] == '/') {
                root = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
                fd = root < 0 ? -1 : open_in_root(root, r->path, O_PATH);
        }
        if (fd < 0 && r->kind == MOUNT_PROBE_MAPPING && r->path[0] == '/')
                fd = open(r->path, O_PATH | O_CLOEXEC);
        read_first_page(fd);
}

static _Noreturn void serve_probes(int socket, pid_t parent)
{
        static struct request r; /* of the child only, after the fork */

        prctl(PR_SET_NAME, "cairn-probe");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || (socket > 0 && syscall(SYS_close_range, 0, socket - 1, 0)) ||
            syscall(SYS_close_range, socket + 1, ~0u, 0))
                _exit(1);
        for (;;) {
                _cleanup_close_ int proc_fd = -1;
                struct error ignored;

                if (recv(socket, &r, sizeof r, 0) != sizeof r || fd_receive(socket, &proc_fd, &ignored))
                        _exit(0);
                if (proc_fd >= 0)
                        access_probed_file(&r, proc_fd);
                if (send(socket, "", 1, MSG_NOSIGNAL) != 1)
                        _exit(0);
        }
}

/* ---- in the agent ------------------------------------------------------------------------- */

static bool start_probe_child(void)
{
        pid_t parent = getpid();
        int sockets[2];

        if (probe.child)
                return true;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
                return false;
        probe.child = fork();
        if (probe.child == 0)
                serve_probes(sockets[1], parent);
        close(sockets[1]);
        if (probe.child < 0) {
                close(sockets[0]);
                probe.child = 0;
                return false;
        }
        probe.socket = sockets[0];
        return true;
}

static void reap_stuck_children(void)
{
        size_t kept = 0;

        for (size_t i = 0; i < probe.stuck_count; i++)
                if (waitpid(probe.stuck[i], NULL, WNOHANG) == 0)
                        probe.stuck[kept++] = probe.stuck[i];
        probe.stuck_count = kept;
}

/* Kill the child; if it is stuck, it is reaped when the mount responds. */
static void abandon_probe_child(void)
{
        if (!probe.child)
                return;
        kill(probe.child, SIGKILL);
        close(probe.socket);
        probe.stuck[probe.stuck_count++] = probe.child;
        probe.child = 0;
}

enum outcome { ANSWERED, SILENT, NOT_ASKED };

static enum outcome probe_by_child(const struct request *r, int proc_fd)
{
        int64_t until = monotonic_ns() + LIMIT_AGENT_FILE_WAIT_MS * INT64_C(1000000), left_ns;
        struct pollfd p = { .events = POLLIN };
        char byte;

        if (!start_probe_child() || send(probe.socket, r, sizeof *r, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof *r) {
                abandon_probe_child();
                return NOT_ASKED;
        }
        fd_send(probe.socket, proc_fd);
        p.fd = probe.socket;
        while ((left_ns = until - monotonic_ns()) > 0)
                if (poll(&p, 1, (int)(left_ns / 1000000) + 1) > 0) {
                        if (recv(probe.socket, &byte, 1, MSG_DONTWAIT) == 1)
                                return ANSWERED;
                        abandon_probe_child(); /* it was killed */
                        return NOT_ASKED;
                }
        abandon_probe_child();
        return SILENT;
}

/* The entry for this key, else the one that expires first. */
static struct answer *find_mount_answer(uint64_t key)
{
        struct answer *oldest = &probe.answers[0];

        for (size_t i = 0; i < ANSWERS; i++) {
                if (probe.answers[i].until_ns && probe.answers[i].key == key)
                        return &probe.answers[i];
                if (probe.answers[i].until_ns < oldest->until_ns)
                        oldest = &probe.answers[i];
        }
        return oldest;
}

static bool probe_mount(struct answer *a, uint64_t key, const struct request *r, int proc_fd)
{
        bool answered_before = a->key == key && a->until_ns && a->answers;
        enum outcome outcome;

        reap_stuck_children();
        if (probe.stuck_count == LIMIT_AGENT_PROBES_STUCK)
                return answered_before;
        outcome = probe_by_child(r, proc_fd);
        if (outcome == NOT_ASKED)
                return true;
        probe.stats.timeouts += outcome == SILENT;
        *a = (struct answer){ .key = key,
                              .answers = outcome == ANSWERED,
                              .until_ns = monotonic_ns() +
                                          (outcome == ANSWERED ? MOUNT_PROBE_ANSWER_MS * INT64_C(1000000)
                                                               : LIMIT_AGENT_MOUNT_RETRY_S * INT64_C(1000000000)) };
        return a->answers;
}

bool mount_probe_is_responsive(uint64_t key, enum mount_probe_kind kind, int proc_fd, const char *name,
                               const char *path)
{
        struct answer *a = find_mount_answer(key);
        struct request r = { .kind = kind };
        bool answers;

        if (strlen(name) >= sizeof r.name || strlen(path) >= sizeof r.path)
                return true;
        memcpy(r.name, name, strlen(name));
        memcpy(r.path, path, strlen(path));
        if (a->until_ns && a->key == key && monotonic_ns() < a->until_ns)
                answers = a->answers;
        else
                answers = probe_mount(a, key, &r, proc_fd);
        probe.stats.skipped += !answers;
        return answers;
}

uint64_t mount_probe_make_key(int proc_fd)
{
        struct stat st;

        return UINT64_C(1) << 63 | (fstat(proc_fd, &st) ? 0 : (uint64_t)st.st_ino);
}

void mount_probe_end(void)
{
        abandon_probe_child();
        reap_stuck_children();
}

void mount_probe_get_stats(struct mount_probe_stats *ret)
{
        reap_stuck_children();
        *ret = probe.stats;
        ret->stuck = probe.stuck_count;
}
