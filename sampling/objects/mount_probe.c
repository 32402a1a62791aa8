/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/mount_probe.h"

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

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "sampling/objects/open_in_root.h"
#include "sandbox/fd_pass.h"

#define ANSWERS 64
#define NAME_BYTES 64

struct request {
        enum mount_probe_kind kind;
        char name[NAME_BYTES], path[LIMIT_PATH_BYTES];
};

/* The last result for a mount, or for a file that did not respond. */
struct answer {
        uint64_t mount, file; /* file 0: of the mount */
        int64_t until_ns;     /* 0: free */
        bool answers;
        bool local;          /* mounts: the file system has no server */
        bool has_stuck_file; /* mounts: a file did not respond after others did */
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

/* Returns whether the file system is local. */
static bool access_probed_file(const struct request *r, int proc_fd)
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
        return fd < 0 || is_on_local_filesystem(fd); /* no file, so no access */
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
                char local;

                if (recv(socket, &r, sizeof r, 0) != sizeof r || fd_receive(socket, &proc_fd, &ignored))
                        _exit(0);
                local = proc_fd < 0 || access_probed_file(&r, proc_fd);
                if (send(socket, &local, 1, MSG_NOSIGNAL) != 1)
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

static enum outcome probe_by_child(const struct request *r, int proc_fd, bool *local_ret)
{
        int64_t until = monotonic_ns() + LIMIT_AGENT_FILE_WAIT_MS * INT64_C(1000000), left_ns;
        struct pollfd p = { .events = POLLIN };
        char local;

        if (!start_probe_child() || send(probe.socket, r, sizeof *r, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof *r) {
                abandon_probe_child();
                return NOT_ASKED;
        }
        fd_send(probe.socket, proc_fd);
        p.fd = probe.socket;
        while ((left_ns = until - monotonic_ns()) > 0)
                if (poll(&p, 1, (int)(left_ns / 1000000) + 1) > 0) {
                        if (recv(probe.socket, &local, 1, MSG_DONTWAIT) == 1) {
                                *local_ret = local;
                                return ANSWERED;
                        }
                        abandon_probe_child(); /* the child was killed */
                        return NOT_ASKED;
                }
        abandon_probe_child();
        return SILENT;
}

/* The entry for a mount or file, else a free one or the one that expires first, emptied. */
static struct answer *find_answer(uint64_t mount, uint64_t file)
{
        struct answer *oldest = &probe.answers[0];

        for (size_t i = 0; i < ANSWERS; i++) {
                struct answer *a = &probe.answers[i];

                if (a->until_ns && a->mount == mount && a->file == file)
                        return a;
                if (a->until_ns < oldest->until_ns)
                        oldest = a;
        }
        *oldest = (struct answer){ .mount = mount, .file = file };
        return oldest;
}

static bool is_file_stuck(const struct mount_probe_file *file)
{
        for (size_t i = 0; i < ANSWERS; i++)
                if (file->file && probe.answers[i].mount == file->mount && probe.answers[i].file == file->file)
                        return monotonic_ns() < probe.answers[i].until_ns;
        return false;
}

static int64_t after_seconds(int64_t s)
{
        return monotonic_ns() + s * INT64_C(1000000000);
}

static void record_silence(struct answer *mount, const struct mount_probe_file *file)
{
        probe.stats.timeouts++;
        if (file->file && mount->answers && !mount->has_stuck_file) {
                mount->has_stuck_file = true;
        } else {
                mount->answers = false;
                mount->until_ns = after_seconds(LIMIT_AGENT_MOUNT_RETRY_S);
        }
        if (file->file)
                find_answer(file->mount, file->file)->until_ns = after_seconds(MOUNT_PROBE_FILE_RETRY_S);
}

static bool probe_file(struct answer *mount, const struct mount_probe_file *file, const struct request *r)
{
        bool local = false;

        reap_stuck_children();
        if (probe.stuck_count == LIMIT_AGENT_PROBES_STUCK)
                return mount->answers && mount->local;
        switch (probe_by_child(r, file->proc_fd, &local)) {
        case ANSWERED:
                mount->answers = true;
                mount->local = local;
                mount->has_stuck_file = false;
                mount->until_ns = monotonic_ns() + MOUNT_PROBE_ANSWER_MS * INT64_C(1000000);
                return true;
        case SILENT:
                record_silence(mount, file);
                return false;
        default:
                return true;
        }
}

bool mount_probe_is_responsive(const struct mount_probe_file *file)
{
        struct answer *mount = find_answer(file->mount, 0);
        struct request r = { .kind = file->kind };
        bool answers, recent = monotonic_ns() < mount->until_ns;

        if (strlen(file->name) >= sizeof r.name || strlen(file->path) >= sizeof r.path)
                return true;
        memcpy(r.name, file->name, strlen(file->name));
        memcpy(r.path, file->path, strlen(file->path));
        if ((recent && !mount->answers) || is_file_stuck(file))
                answers = false;
        else if (recent && mount->local && !file->opens)
                answers = true;
        else
                answers = probe_file(mount, file, &r);
        probe.stats.skipped += !answers;
        return answers;
}

bool mount_probe_is_local(uint64_t mount)
{
        for (size_t i = 0; i < ANSWERS; i++) {
                const struct answer *a = &probe.answers[i];

                if (a->until_ns && a->mount == mount && !a->file)
                        return a->answers && a->local;
        }
        return false;
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
