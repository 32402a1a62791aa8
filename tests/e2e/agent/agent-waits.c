/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for known reasons: each in a thread and a function of its own, named by the reason. What they wait for is done
 * by another process. Prints the process id and the address of the futex, runs when a line can be read from standard
 * input, and then prints for each reason the nanoseconds that its thread was not on a CPU.
 *
 *   agent-waits SECONDS FILE     FILE: written and synchronized; "-": none, no wait for a disk
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 100000000
#define SENDERS 5

static const struct timespec one_pause = { .tv_nsec = PAUSE_NS };
static uint64_t end_ns;
static _Atomic uint32_t *shared_futex; /* shared with the other process */
static int senders[SENDERS], sender_count;

static uint64_t read_clock(clockid_t clock)
{
        struct timespec t;

        clock_gettime(clock, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void require(int ok, const char *step)
{
        if (!ok) {
                perror(step);
                exit(1);
        }
}

/* ---- the other process: after each pause it ends the wait of each thread ---- */

static void end_waits(void)
{
        const uint64_t one = 1;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
                nanosleep(&one_pause, NULL);
                for (int i = 0; i < sender_count; i++)
                        if (write(senders[i], &one, sizeof one) < 0)
                                _exit(0);
                atomic_fetch_add(shared_futex, 1);
                syscall(SYS_futex, shared_futex, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
}

/* ---- waits ---- */

struct waiting {
        const char *reason;
        void (*wait)(int fd);
        int fd;
        uint64_t waited_ns;
};

__attribute__((noinline)) static void wait_sleep(int fd)
{
        (void)fd;
        nanosleep(&one_pause, NULL);
}

__attribute__((noinline)) static void wait_futex(int fd)
{
        (void)fd;
        syscall(SYS_futex, shared_futex, FUTEX_WAIT, atomic_load(shared_futex), NULL, NULL, 0);
}

__attribute__((noinline)) static void wait_file(int fd)
{
        char bytes[8];

        require(read(fd, bytes, sizeof bytes) == sizeof bytes, "read");
}

__attribute__((noinline)) static void wait_poll(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };

        require(poll(&p, 1, -1) == 1, "poll");
        wait_file(fd);
}

__attribute__((noinline)) static void wait_signal(int fd)
{
        sigset_t set;

        (void)fd;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigtimedwait(&set, NULL, &one_pause);
}

__attribute__((noinline)) static void wait_ipc(int fd)
{
        struct sembuf take = { .sem_op = -1 };

        semtimedop(fd, &take, 1, &one_pause);
}

__attribute__((noinline)) static void wait_child(int fd)
{
        pid_t child = fork();

        (void)fd;
        if (child == 0) {
                nanosleep(&one_pause, NULL);
                _exit(0);
        }
        require(waitpid(child, NULL, 0) == child, "waitpid");
}

__attribute__((noinline)) static void wait_disk(int fd)
{
        char bytes[4096] = { 1 };

        require(pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes && fsync(fd) == 0, "fsync");
}

/* Two threads that compute on one CPU. */
__attribute__((noinline)) static void wait_run_queue(int fd)
{
        (void)fd;
        for (volatile int i = 0; i < 100000; i++)
                ;
}

static void *compute(void *unused)
{
        (void)unused;
        while (read_clock(CLOCK_MONOTONIC) < end_ns)
                wait_run_queue(-1);
        return NULL;
}

static void *run_waits(void *argument)
{
        struct waiting *w = argument;
        uint64_t from, used;

        pthread_setname_np(pthread_self(), w->reason);
        from = read_clock(CLOCK_MONOTONIC);
        used = read_clock(CLOCK_THREAD_CPUTIME_ID);
        while (read_clock(CLOCK_MONOTONIC) < end_ns)
                w->wait(w->fd);
        w->waited_ns = read_clock(CLOCK_MONOTONIC) - from - (read_clock(CLOCK_THREAD_CPUTIME_ID) - used);
        return NULL;
}

/* ---- setup ---- */

static int open_pipe(void)
{
        int fds[2];

        require(pipe(fds) == 0, "pipe");
        senders[sender_count++] = fds[1];
        return fds[0];
}

static int open_unix_socket(void)
{
        int fds[2];

        require(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
        senders[sender_count++] = fds[1];
        return fds[0];
}

static int open_event(void)
{
        int fd = eventfd(0, 0);

        require(fd >= 0, "eventfd");
        senders[sender_count++] = fd;
        return fd;
}

static int open_network(void)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof a;
        int reader = socket(AF_INET, SOCK_DGRAM, 0), writer = socket(AF_INET, SOCK_DGRAM, 0);

        require(reader >= 0 && writer >= 0 && bind(reader, (struct sockaddr *)&a, sizeof a) == 0 &&
                        getsockname(reader, (struct sockaddr *)&a, &size) == 0 &&
                        connect(writer, (struct sockaddr *)&a, size) == 0,
                "socket");
        senders[sender_count++] = writer;
        return reader;
}

static void start_thread(pthread_t *t, void *(*run)(void *), void *argument, int is_pinned)
{
        pthread_attr_t attr;
        cpu_set_t first;

        CPU_ZERO(&first);
        CPU_SET(0, &first);
        pthread_attr_init(&attr);
        if (is_pinned)
                pthread_attr_setaffinity_np(&attr, sizeof first, &first);
        require(pthread_create(t, &attr, run, argument) == 0, "pthread_create");
        pthread_attr_destroy(&attr);
}

int main(int argc, char **argv)
{
        struct waiting all[] = {
                { "run_queue", wait_run_queue, -1, 0 }, { "sleep", wait_sleep, -1, 0 }, { "futex", wait_futex, -1, 0 },
                { "signal", wait_signal, -1, 0 },       { "child", wait_child, -1, 0 }, { "pipe", wait_file, -1, 0 },
                { "unix_socket", wait_file, -1, 0 },    { "event", wait_file, -1, 0 },  { "network", wait_file, -1, 0 },
                { "poll", wait_poll, -1, 0 },           { "ipc", wait_ipc, -1, 0 },     { "disk", wait_disk, -1, 0 },
        };
        enum { MOST = sizeof all / sizeof *all };
        int count = MOST;
        pthread_t threads[MOST], other;
        char line[16];

        if (argc != 3)
                return 2;
        shared_futex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        require(shared_futex != MAP_FAILED, "mmap");
        all[5].fd = open_pipe();
        all[6].fd = open_unix_socket();
        all[7].fd = open_event();
        all[8].fd = open_network();
        all[9].fd = open_pipe();
        all[10].fd = semget(IPC_PRIVATE, 1, 0600);
        if (strcmp(argv[2], "-") == 0)
                count--;
        else
                all[11].fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        require(all[10].fd >= 0 && (count < MOST || all[11].fd >= 0), "open");
        printf("%d 0x%" PRIxPTR "\n", (int)getpid(), (uintptr_t)shared_futex);
        fflush(stdout);
        require(fgets(line, sizeof line, stdin) != NULL, "standard input");
        if (fork() == 0)
                end_waits();
        end_ns = read_clock(CLOCK_MONOTONIC) + (uint64_t)(atof(argv[1]) * 1e9);
        for (int i = 0; i < count; i++)
                start_thread(&threads[i], run_waits, &all[i], i == 0);
        start_thread(&other, compute, NULL, 1);
        for (int i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
        semctl(all[10].fd, 0, IPC_RMID);
        for (int i = 0; i < count; i++)
                printf("%s %" PRIu64 "\n", all[i].reason, all[i].waited_ns);
        return 0;
}
