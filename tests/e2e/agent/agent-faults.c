// SPDX-License-Identifier: Apache-2.0
// Unusual and hostile processes; the first argument selects one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu_s(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
        perror(what);
        exit(1);
}

static void report_ready(const char *name)
{
        int fd = open(name, O_WRONLY | O_CREAT, 0644);

        if (fd < 0)
                die(name);
        close(fd);
}

// Reuses one pid, alternately for two programs.
static int reuse_pid(int rounds, char *programs[2])
{
        pid_t number = fork();

        if (number == 0)
                _exit(0);
        waitpid(number, NULL, 0);
        for (int i = 0; i < rounds; i++) {
                struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1 };
                long pid = syscall(SYS_clone3, &args, sizeof args);

                if (pid == 0) {
                        execl(programs[i % 2], programs[i % 2], NULL);
                        _exit(127);
                }
                if (pid < 0)
                        die("clone3");
                waitpid((pid_t)pid, NULL, 0);
        }
        return 0;
}

// Processes that exit while they are examined.
static int start_short_processes(const char *self, int rounds)
{
        for (int i = 0; i < rounds; i++) {
                for (int k = 0; k < 20; k++)
                        if (fork() == 0) {
                                execl(self, self, "spark", NULL);
                                _exit(127);
                        }
                while (wait(NULL) > 0)
                        ;
        }
        return 0;
}

static int run_short_process(void)
{
        while (cpu_s() < 0.003)
                ;
        return 0;
}

// The maximum number of executable mappings, continuously replaced.
static int replace_mappings(const char *self, int count, const char *name)
{
        int fd = open(self, O_RDONLY);
        long page = sysconf(_SC_PAGESIZE);
        char *at = mmap(NULL, (size_t)count * (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        for (int i = 0; i < count; i++)
                if (mmap(at + i * page, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
                    MAP_FAILED)
                        die("mmap");
        report_ready(name);
        for (;;) {
                double until = cpu_s() + 0.05;

                munmap(at, (size_t)page);
                while (cpu_s() < until)
                        ;
                mmap(at, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
        }
}

// Calls a library's function endlessly; the library's file may change in the meantime.
static int call_library(const char *path, const char *name)
{
        void *handle = dlopen(path, RTLD_NOW);
        void (*work)(void) = handle ? (void (*)(void))dlsym(handle, "work") : NULL;

        if (!work)
                return 1;
        report_ready(name);
        work();
        return 0;
}

int main(int argc, char **argv)
{
        alarm(120);
        if (argc == 5 && strcmp(argv[1], "reuse") == 0)
                return reuse_pid(atoi(argv[2]), argv + 3);
        if (argc == 3 && strcmp(argv[1], "storm") == 0)
                return start_short_processes(argv[0], atoi(argv[2]));
        if (argc == 2 && strcmp(argv[1], "spark") == 0)
                return run_short_process();
        if (argc == 4 && strcmp(argv[1], "mappings") == 0)
                return replace_mappings(argv[0], atoi(argv[2]), argv[3]);
        if (argc == 4 && strcmp(argv[1], "library") == 0)
                return call_library(argv[2], argv[3]);
        return 64;
}
