/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_run() takes memory from the budget and calls worker_run_with_data(), which the fork server calls too. That
 * one computes the limits, prepares struct launch, forks, and waits.
 *
 * The child, run_child(), places the descriptors, sets the limits, changes the user, and executes the program or, if
 * the parent has only one thread, calls the entry function. The parent, watch_worker(), polls a pidfd, the worker's
 * stderr and the job's serve_fd, and kills the worker when it is cancelled or late. The outcome becomes a status: a
 * signal in report_signal(), an exit code in report_exit(), with the last line of stderr as the reason.
 *
 * The confinement itself is in confine.c, the user in worker_user.c. No locks: each call has its own state.
 */
#include "sandbox/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exit_code.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/text/utf8.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker_budget.h"
#include "sandbox/worker_user.h"

static struct metric started_workers =
        METRIC_COUNTER("cairn_workers_started_total", "Worker processes that were started as a program.", "");

#define FIRST_FD 3
#define FDS_MAX 16
#define ARGS_MAX 32
#define OPEN_FILES_MAX 256
#define POLL_MS 100 /* latency of a cancel */
#define KILL_WAIT_MS 10000
#define EXIT_CODE_BASE 100
#define EXIT_NOT_STARTED 127

static const char *program = "/proc/self/exe";
static int (*entry)(int argc, char **argv);

void worker_set_program(const char *path)
{
        program = path;
}

void worker_set_entry(int (*run)(int argc, char **argv))
{
        entry = run;
}

int worker_exit_code(enum status st)
{
        return st ? EXIT_CODE_BASE - (int)st : EXIT_DONE;
}

int worker_not_started(const struct error *err)
{
        fprintf(stderr, "%s\n", PRINTABLE(err->text));
        return EXIT_NOT_STARTED;
}

/*
 * Everything the child needs between fork and exec, prepared before the fork: only async-signal-safe calls are allowed
 * in between.
 */
struct launch {
        char *argv[ARGS_MAX + 3];
        int argc;
        int (*entry)(int argc, char **argv); /* called in the child; NULL: the program is executed */
        int fds[FDS_MAX];
        size_t fd_count;
        int null_fd, stderr_fd;
        pid_t parent;
        struct rlimit memory, data, cpu, file;
        bool keeps_user;
};

/* The last bytes of the worker's stderr. */
struct tail {
        char text[4096];
        size_t size;
};

static void set_limit(int which, rlim_t soft, rlim_t hard)
{
        struct rlimit l = { soft, hard };

        setrlimit(which, &l);
}

/* Source numbers may collide with targets, so copy the sources out of the way first. */
static bool place_fds(const struct launch *l)
{
        int high[FDS_MAX + 2];
        size_t n = l->fd_count;
        int past = FIRST_FD + FDS_MAX;

        for (size_t i = 0; i < n; i++) {
                high[i] = l->fds[i] < 0 ? -1 : fcntl(l->fds[i], F_DUPFD, past);
                if (l->fds[i] >= 0 && high[i] < 0)
                        return false;
        }
        high[n] = fcntl(l->null_fd, F_DUPFD, past);
        high[n + 1] = fcntl(l->stderr_fd, F_DUPFD, past);
        if (high[n] < 0 || high[n + 1] < 0 || dup2(high[n], 0) < 0 || dup2(high[n], 1) < 0 || dup2(high[n + 1], 2) < 0)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (high[i] < 0)
                        close(FIRST_FD + (int)i);
                else if (dup2(high[i], FIRST_FD + (int)i) < 0)
                        return false;
        }
        return syscall(SYS_close_range, FIRST_FD + (unsigned)n, ~0u, 0) == 0;
}

static _Noreturn void run_child(const struct launch *l)
{
        struct sigaction default_action = { .sa_handler = SIG_DFL };
        sigset_t none;

        setsid(); /* the parent decides on the terminal's Ctrl-C */
        for (int s = 1; s < NSIG; s++)
                sigaction(s, &default_action, NULL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (!place_fds(l))
                _exit(EXIT_NOT_STARTED);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!BUILT_WITH_SANITIZER) {
                setrlimit(RLIMIT_AS, &l->memory);
                setrlimit(RLIMIT_DATA, &l->data);
        }
        setrlimit(RLIMIT_CPU, &l->cpu);
        set_limit(RLIMIT_CORE, 0, 0);
        setrlimit(RLIMIT_FSIZE, &l->file);
        set_limit(RLIMIT_NOFILE, OPEN_FILES_MAX, OPEN_FILES_MAX);
        if (l->keeps_user)
                worker_user_drop_capabilities();
        else if (!worker_user_become())
                _exit(EXIT_NOT_STARTED);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* must follow a change of uid, which clears it */
        if (getppid() != l->parent)       /* it died before the previous line */
                _exit(EXIT_NOT_STARTED);
        if (l->entry)
                _exit(l->entry(l->argc - 1, (char **)l->argv + 1));
        execv(program, l->argv);
        _exit(EXIT_NOT_STARTED);
}

static void tail_append(struct tail *t, const char *text, size_t n)
{
        size_t room = sizeof t->text - 1;

        if (n > room) {
                text += n - room;
                n = room;
        }
        if (t->size + n > room) {
                size_t drop = t->size + n - room;

                memmove(t->text, t->text + drop, t->size - drop);
                t->size -= drop;
        }
        memcpy(t->text + t->size, text, n);
        t->size += n;
}

/* Read the available bytes; false at the end of the pipe. */
static bool tail_read(struct tail *t, int fd)
{
        for (;;) {
                char chunk[1024];
                ssize_t n = read(fd, chunk, sizeof chunk);

                if (n > 0)
                        tail_append(t, chunk, (size_t)n);
                else if (n == 0)
                        return false;
                else if (errno != EINTR)
                        return errno == EAGAIN;
        }
}

/* The last non-empty line; "" if there is none. */
static const char *tail_line(struct tail *t)
{
        char *line;

        while (t->size > 0 && (unsigned char)t->text[t->size - 1] <= ' ')
                t->size--;
        t->text[t->size] = 0;
        line = strrchr(t->text, '\n');
        return line ? line + 1 : t->text;
}

static uint64_t monotonic_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

enum outcome { ENDED, CANCELLED, TOO_LATE, STUCK };

/*
 * Reap a worker that has ended or was killed. One that reads from a mount whose server does not respond does not end
 * when it is killed: it is left to the kernel. False for such a worker.
 */
static bool reap_worker(pid_t pid, int pid_fd, int *status_ret)
{
        uint64_t deadline = monotonic_ms() + KILL_WAIT_MS;
        struct pollfd ended = { .fd = pid_fd, .events = POLLIN };

        while (poll(&ended, 1, POLL_MS) <= 0)
                if (monotonic_ms() >= deadline)
                        return false;
        while (waitpid(pid, status_ret, 0) < 0 && errno == EINTR)
                ;
        return true;
}

/* Wait for the worker. It is killed at its deadline or when cancelled. */
static enum outcome watch_worker(const struct worker_job *job, pid_t pid, int pid_fd, int stderr_fd, uint64_t wall_s,
                                 struct tail *tail, int *status_ret)
{
        uint64_t deadline = monotonic_ms() + wall_s * 1000;
        enum outcome outcome = ENDED;

        for (;;) {
                struct pollfd polled[] = { { .fd = pid_fd, .events = POLLIN },
                                           { .fd = stderr_fd, .events = POLLIN },
                                           { .fd = job->serve ? job->serve_fd : -1, .events = POLLIN } };

                poll(polled, 3, POLL_MS);
                if (polled[1].revents && !tail_read(tail, stderr_fd))
                        stderr_fd = -1;
                if (polled[0].revents)
                        break;
                if (job->serve && (polled[2].revents & POLLIN))
                        job->serve(job->serve_context, job->serve_fd);
                if (job->cancel && atomic_load(job->cancel))
                        outcome = CANCELLED;
                else if (monotonic_ms() >= deadline)
                        outcome = TOO_LATE;
                if (outcome != ENDED) {
                        kill(pid, SIGKILL);
                        break;
                }
        }
        if (!reap_worker(pid, pid_fd, status_ret))
                return STUCK;
        if (stderr_fd >= 0)
                tail_read(tail, stderr_fd);
        return outcome;
}

static enum status report_signal(int sig, uint64_t cpu_s, const char *name, struct error *err)
{
        switch (sig) {
        case SIGXCPU:
                return error_set(err, ST_BAD_DATA, "worker '%s' took more than %llu s of processor time", name,
                                 (unsigned long long)cpu_s);
        case SIGXFSZ:
                return error_set(err, ST_BAD_DATA, "worker '%s' wrote more than %zu bytes", name, LIMIT_OBJECT_BYTES);
        case SIGSYS:
                return error_set(err, ST_BAD_DATA, "worker '%s' made a forbidden system call (signal %d)", name, sig);
        default:
                return error_set(err, ST_BAD_DATA, "worker '%s' was killed by signal %d (%s)", name, sig,
                                 sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
        }
}

/* EAGAIN: another attempt may succeed, since programs also end so when they have no descriptors for their libraries. */
static enum status report_not_started(const char *name, const char *line, struct error *err)
{
        enum status st = line[0] ? error_set(err, ST_OS, "cannot start worker '%s': %.180s", name, line)
                                 : error_set(err, ST_OS, "cannot start worker '%s' from '%s'", name, program);

        if (err)
                err->os_errno = EAGAIN;
        return error_add_reason(err, st, WORKER_NOT_STARTED);
}

static enum status report_exit(int code, uint64_t memory_bytes, const char *name, const char *line, struct error *err)
{
        enum status st = (enum status)(EXIT_CODE_BASE - code);

        if (code == EXIT_DONE)
                return ST_OK;
        if (code == EXIT_NOT_STARTED)
                return report_not_started(name, line, err);
        if (st == ST_NO_MEMORY)
                return error_set(err, ST_TOO_BIG, "worker '%s' needs more than %llu MiB of memory", name,
                                 (unsigned long long)memory_bytes >> 20);
        if (st > ST_NOT_FOUND || st < ST_USAGE)
                st = ST_BAD_DATA;
        if (!line[0])
                return error_set(err, st, "worker '%s' exited with code %d without a reason", name, code);
        return error_set(err, st, "%.200s", line);
}

/* ST_OS; also ST_NO_MEMORY. */
static enum status report_start_failure(const char *name, const char *step, int os_errno, struct error *err)
{
        enum status st = error_os(err, os_errno, "cannot start worker '%s': cannot %s as uid %u", name, step,
                                  (unsigned)geteuid());

        return error_add_reason(err, st, WORKER_NOT_STARTED);
}

static enum status fill_launch(const struct worker_job *job, struct launch *l, struct error *err)
{
        size_t n = 0;

        if (job->fd_count > FDS_MAX)
                return error_set(err, ST_USAGE, "a worker takes at most %d descriptors", FDS_MAX);
        l->argv[n++] = (char *)"cairn";
        l->argv[n++] = (char *)"worker";
        for (const char *const *arg = job->args; *arg; arg++) {
                if (n > ARGS_MAX)
                        return error_set(err, ST_USAGE, "a worker takes at most %d arguments", ARGS_MAX);
                l->argv[n++] = (char *)*arg;
        }
        l->argc = (int)n;
        l->entry = __libc_single_threaded ? entry : NULL; /* locks held by other threads would never be released */
        for (size_t i = 0; i < job->fd_count; i++)
                l->fds[i] = job->fds[i];
        l->fd_count = job->fd_count;
        l->parent = getpid();
        l->keeps_user = job->keeps_user;
        return ST_OK;
}

/* A worker gets at most this process's own limit, even if a privileged process could raise it. */
static uint64_t cap_to_own_limit(int which, uint64_t wanted)
{
        struct rlimit ours;

        return getrlimit(which, &ours) == 0 && ours.rlim_cur < wanted ? ours.rlim_cur : wanted;
}

static _Atomic uint64_t cpu_limit_s = LIMIT_WORKER_CPU_S;

void worker_set_cpu_limit(uint64_t seconds)
{
        atomic_store(&cpu_limit_s, seconds ? seconds : LIMIT_WORKER_CPU_S);
}

enum status worker_run_with_data(const struct worker_job *job, uint64_t data_bytes, struct error *err)
{
        uint64_t memory =
                cap_to_own_limit(RLIMIT_AS, job->memory_bytes ? job->memory_bytes : LIMIT_WORKER_MEMORY_BYTES);
        uint64_t data = cap_to_own_limit(RLIMIT_DATA, data_bytes && data_bytes < memory ? data_bytes : memory);
        uint64_t cpu_s = job->cpu_s ? job->cpu_s : atomic_load(&cpu_limit_s);
        uint64_t wall_s = job->wall_s ? job->wall_s : 2 * cpu_s;
        uint64_t file = job->file_bytes ? job->file_bytes : LIMIT_OBJECT_BYTES;
        struct launch launch = { .memory = { memory, memory },
                                 .data = { data, data },
                                 .cpu = { cpu_s, cpu_s + 1 },
                                 .file = { file, file } };
        _cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        _cleanup_close_ int read_fd = -1, write_fd = -1, pid_fd = -1;
        struct tail tail = { .size = 0 };
        enum outcome outcome;
        int pipe_fds[2], status = 0;
        enum status st;
        pid_t pid;

        if (null_fd < 0)
                return report_start_failure(job->args[0], "open /dev/null", errno, err);
        if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK))
                return report_start_failure(job->args[0], "make a pipe", errno, err);
        read_fd = pipe_fds[0];
        write_fd = pipe_fds[1];
        st = fill_launch(job, &launch, err);
        if (st)
                return st;
        launch.null_fd = null_fd;
        launch.stderr_fd = write_fd;
        pid = fork();
        if (pid < 0)
                return report_start_failure(job->args[0], "fork", errno, err);
        if (pid > 0)
                metric_add(&started_workers, 1);
        if (pid == 0)
                run_child(&launch);
        close(steal_fd(&write_fd));
        pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pid_fd < 0) {
                int saved = errno;

                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                return report_start_failure(job->args[0], "watch it", saved, err);
        }
        outcome = watch_worker(job, pid, pid_fd, read_fd, wall_s, &tail, &status);
        if (outcome == CANCELLED)
                return error_set(err, ST_BUSY, "worker '%s' was stopped", job->args[0]);
        if (outcome == STUCK)
                return error_set(err, ST_BAD_DATA, "worker '%s' cannot be killed: its file does not respond",
                                 job->args[0]);
        if (outcome == TOO_LATE)
                return error_set(err, ST_BAD_DATA, "worker '%s' took more than %llu s", job->args[0],
                                 (unsigned long long)wall_s);
        if (WIFSIGNALED(status))
                return report_signal(WTERMSIG(status), cpu_s, job->args[0], err);
        return report_exit(WEXITSTATUS(status), data, job->args[0], tail_line(&tail), err);
}

enum status worker_run(const struct worker_job *job, struct error *err)
{
        uint64_t granted = 0;
        enum status st = ST_OK;

        assert(job->args && job->args[0]);
        assert(!job->is_fetch || job->data_bytes);
        if (!job->is_fetch)
                st = worker_budget_acquire(job->data_bytes, false, job->cancel, &granted, err);
        if (st)
                return st;
        st = worker_run_with_data(job, granted ? granted : job->data_bytes, err);
        worker_budget_release(granted);
        return st;
}
