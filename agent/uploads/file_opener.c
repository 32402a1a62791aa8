/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uploads/file_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/program/log.h"
#include "sampling/objects/open_in_root.h"
#include "sandbox/fd_pass.h"
#include "uploader/split.h"

#define POLL_MS 100 /* latency of a stop */

struct request {
        uint64_t max_bytes;
        char path[LIMIT_PATH_BYTES];
};

/* The child's messages, each a packet of one byte. */
enum message {
        MESSAGE_MISSING,
        MESSAGE_LOCAL,    /* the descriptor follows */
        MESSAGE_REMOTE,   /* a temporary file is needed */
        MESSAGE_PROGRESS, /* of the copy */
        MESSAGE_COPIED,
};

/* ---- in the child, forked from a threaded process: async-signal-safe calls only ---- */

static bool send_opener_message(int socket, enum message m)
{
        char byte = (char)m;

        return send(socket, &byte, 1, MSG_NOSIGNAL) == 1;
}

static bool write_piece(int fd, const char *data, size_t n)
{
        while (n) {
                ssize_t done = write(fd, data, n);

                if (done < 0 && errno != EINTR)
                        return false;
                data += done > 0 ? done : 0;
                n -= done > 0 ? (size_t)done : 0;
        }
        return true;
}

static bool copy_remote_file(int socket, int from, int to, uint64_t max_bytes)
{
        static char piece[65536]; /* of the child only, after the fork */
        uint64_t copied = 0;

        for (;;) {
                ssize_t n = read(from, piece, sizeof piece);

                if (n == 0)
                        return true;
                if (n < 0 && errno == EINTR)
                        continue;
                copied += n > 0 ? (uint64_t)n : 0;
                if (n < 0 || copied > max_bytes || !write_piece(to, piece, (size_t)n) ||
                    !send_opener_message(socket, MESSAGE_PROGRESS))
                        return false;
        }
}

bool file_is_execute_only(int fd)
{
        struct stat st;
        mode_t executes, reads;

        if (fstat(fd, &st) < 0)
                return true;
        executes = st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH);
        reads = st.st_mode & (S_IRUSR | S_IRGRP | S_IROTH);
        return (executes << 2) & ~reads; /* S_IRUSR is S_IXUSR << 2, and so on */
}

static void answer_request(int socket, const struct request *r, int root_fd)
{
        _cleanup_close_ int fd = root_fd < 0 ? -1 : open_regular_in_root(root_fd, r->path, 0);
        _cleanup_close_ int to = -1;
        struct error ignored;
        bool copied;

        if (fd < 0 || file_is_execute_only(fd)) {
                send_opener_message(socket, MESSAGE_MISSING);
        } else if (is_on_local_filesystem(fd)) {
                send_opener_message(socket, MESSAGE_LOCAL);
                fd_send(socket, fd);
        } else if (send_opener_message(socket, MESSAGE_REMOTE)) {
                copied =
                        !fd_receive(socket, &to, &ignored) && to >= 0 && copy_remote_file(socket, fd, to, r->max_bytes);
                send_opener_message(socket, copied ? MESSAGE_COPIED : MESSAGE_MISSING);
        }
}

static _Noreturn void serve_opens(int socket, pid_t parent)
{
        static struct request r;

        prctl(PR_SET_NAME, "cairn-open");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || (socket > 0 && syscall(SYS_close_range, 0, socket - 1, 0)) ||
            syscall(SYS_close_range, socket + 1, ~0u, 0))
                _exit(1);
        for (;;) {
                _cleanup_close_ int root_fd = -1;
                struct error ignored;

                if (recv(socket, &r, sizeof r, 0) != sizeof r || fd_receive(socket, &root_fd, &ignored))
                        _exit(0);
                answer_request(socket, &r, root_fd);
        }
}

/* ---- in the agent ---- */

static bool start_opener_child(struct file_opener *o)
{
        pid_t parent = getpid();
        int sockets[2];

        if (o->child)
                return true;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
                return false;
        o->child = fork();
        if (o->child == 0)
                serve_opens(sockets[1], parent);
        close(sockets[1]);
        if (o->child < 0) {
                close(sockets[0]);
                o->child = 0;
                return false;
        }
        o->socket = sockets[0];
        return true;
}

static void reap_stuck_openers(struct file_opener *o)
{
        size_t kept = 0;

        for (size_t i = 0; i < o->stuck_count; i++)
                if (waitpid(o->stuck[i], NULL, WNOHANG) == 0)
                        o->stuck[kept++] = o->stuck[i];
        o->stuck_count = kept;
}

/* Kill the child; if it is stuck, it is reaped when the mount responds. */
static void abandon_opener_child(struct file_opener *o)
{
        if (!o->child)
                return;
        kill(o->child, SIGKILL);
        close(o->socket);
        o->stuck[o->stuck_count++] = o->child;
        o->child = 0;
}

/* Wait for the child to write. False: it is silent or gone. */
static bool wait_for_opener(const struct file_opener *o)
{
        int64_t until = monotonic_ns() + LIMIT_AGENT_FILE_WAIT_MS * INT64_C(1000000);
        struct pollfd p = { .fd = o->socket, .events = POLLIN };

        while (monotonic_ns() < until && !atomic_load(o->stop))
                if (poll(&p, 1, POLL_MS) > 0)
                        return true;
        return false;
}

static bool receive_opener_message(const struct file_opener *o, enum message *ret)
{
        char byte;

        if (!wait_for_opener(o) || recv(o->socket, &byte, 1, MSG_DONTWAIT) != 1)
                return false;
        *ret = (enum message)byte;
        return true;
}

int file_opener_create_temporary(const struct file_opener *o)
{
        int fd = o->temporary ? open(o->temporary, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

        return fd >= 0 || split_create_temporary(&fd, NULL) == ST_OK ? fd : -1;
}

/* @param gone_ret  true: the child does not respond. */
static int receive_copy(const struct file_opener *o, bool *gone_ret)
{
        _cleanup_close_ int copy = file_opener_create_temporary(o);
        enum message m = MESSAGE_PROGRESS;

        fd_send(o->socket, copy);
        while (m == MESSAGE_PROGRESS)
                if (!receive_opener_message(o, &m)) {
                        *gone_ret = true;
                        return -1;
                }
        return m == MESSAGE_COPIED ? steal_fd(&copy) : -1;
}

/* @param gone_ret  true: the child does not respond. */
static int open_by_child(struct file_opener *o, int root_fd, const struct request *r, bool *gone_ret)
{
        struct error ignored;
        enum message m;
        int fd = -1;

        *gone_ret = !start_opener_child(o) || send(o->socket, r, sizeof *r, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof *r;
        if (*gone_ret)
                return -1;
        fd_send(o->socket, root_fd);
        *gone_ret = !receive_opener_message(o, &m);
        if (*gone_ret || m == MESSAGE_MISSING)
                return -1;
        if (m == MESSAGE_REMOTE)
                return receive_copy(o, gone_ret);
        *gone_ret = !wait_for_opener(o) || fd_receive(o->socket, &fd, &ignored);
        return *gone_ret ? -1 : fd;
}

/* Identifies the directory of the path in that root. AT_STATX_DONT_SYNC sends no request to a server. */
static uint64_t make_directory_key(int root_fd, const char *path)
{
        const char *slash = strrchr(path, '/');
        struct statx x = { 0 };

        (void)!statx(root_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &x);
        return hash_bytes64(path, slash ? (size_t)(slash - path) : 0) ^
               hash_bytes64(&(uint64_t[]){ x.stx_ino, x.stx_dev_major, x.stx_dev_minor }, 3 * sizeof(uint64_t));
}

static bool is_directory_silent(const struct file_opener *o, uint64_t key)
{
        for (size_t i = 0; i < FILE_OPENER_SILENT; i++)
                if (o->silent[i].key == key && monotonic_ns() < o->silent[i].until_ns)
                        return true;
        return false;
}

static void remember_silence(struct file_opener *o, uint64_t key)
{
        struct silent_directory *oldest = &o->silent[0];

        for (size_t i = 1; i < FILE_OPENER_SILENT; i++)
                if (o->silent[i].until_ns < oldest->until_ns)
                        oldest = &o->silent[i];
        *oldest = (struct silent_directory){ key, monotonic_ns() + FILE_OPENER_RETRY_S * INT64_C(1000000000) };
}

enum open_end file_opener_open(struct file_opener *o, int root_fd, const char *path, uint64_t max_bytes, int *fd_ret)
{
        struct request r = { .max_bytes = max_bytes };
        uint64_t key = make_directory_key(root_fd, path);
        bool gone;
        int fd;

        reap_stuck_openers(o);
        if (strlen(path) >= sizeof r.path)
                return OPEN_MISSING;
        memcpy(r.path, path, strlen(path));
        if (o->stuck_count == LIMIT_AGENT_PROBES_STUCK || is_directory_silent(o, key) || atomic_load(o->stop))
                return OPEN_SKIPPED;
        fd = open_by_child(o, root_fd, &r, &gone);
        if (gone) {
                abandon_opener_child(o);
                remember_silence(o, key);
                if (!atomic_load(o->stop))
                        log_warn("agent", "'%s' does not respond, so it is not searched for symbols", path);
                return OPEN_SKIPPED;
        }
        *fd_ret = fd;
        return fd < 0 ? OPEN_MISSING : OPEN_DONE;
}

void file_opener_end(struct file_opener *o)
{
        abandon_opener_child(o);
        reap_stuck_openers(o);
}
