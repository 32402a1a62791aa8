/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes in three phases of equal wall clock time: with one thread, with two threads on two CPUs, and with three
 * threads on one CPU. Threads are named "serial", "parallel" and "queued".
 *
 *   agent-latency SECONDS    prints its pid, waits for a line on standard input, and computes; SECONDS for each phase
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 3

static uint64_t phase_ns;

struct phase {
        const char *name;
        unsigned threads;
        int is_spread; /* over the CPUs; else all threads are on the first one */
        pthread_barrier_t begin;
        uint64_t end_ns;
};

static void require(int ok, const char *step)
{
        if (!ok) {
                perror(step);
                exit(1);
        }
}

static uint64_t read_clock(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static void compute_until(uint64_t end_ns)
{
        while (read_clock() < end_ns)
                for (volatile int i = 0; i < 10000; i++)
                        ;
}

static void *run_thread(void *argument)
{
        struct phase *p = argument;

        pthread_barrier_wait(&p->begin);
        pthread_barrier_wait(&p->begin);
        compute_until(p->end_ns);
        return NULL;
}

/* The number-th CPU that this process may use, from the first again after the last. */
static int find_allowed_cpu(unsigned number)
{
        cpu_set_t allowed;
        int cpu = -1;

        require(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
        number %= (unsigned)CPU_COUNT(&allowed);
        do
                cpu += 1;
        while (!CPU_ISSET(cpu, &allowed) || number-- > 0);
        return cpu;
}

static void start_phase_threads(struct phase *p, pthread_t *threads)
{
        require(pthread_barrier_init(&p->begin, NULL, p->threads + 1) == 0, "pthread_barrier_init");
        for (unsigned i = 0; i < p->threads; i++) {
                pthread_attr_t attr;
                cpu_set_t one;

                CPU_ZERO(&one);
                CPU_SET(find_allowed_cpu(p->is_spread ? i : 0), &one);
                pthread_attr_init(&attr);
                pthread_attr_setaffinity_np(&attr, sizeof one, &one);
                require(pthread_create(&threads[i], &attr, run_thread, p) == 0, "pthread_create");
                pthread_attr_destroy(&attr);
                pthread_setname_np(threads[i], p->name);
        }
        pthread_barrier_wait(&p->begin);
}

int main(int argc, char **argv)
{
        struct phase phases[] = { { .name = "serial", .threads = 1 },
                                  { .name = "parallel", .threads = 2, .is_spread = 1 },
                                  { .name = "queued", .threads = 3 } };
        enum { COUNT = sizeof phases / sizeof *phases };
        pthread_t threads[COUNT][THREADS_MAX];
        char line[16];

        if (argc != 2)
                return 2;
        phase_ns = (uint64_t)(atof(argv[1]) * 1e9);
        for (int i = 0; i < COUNT; i++)
                start_phase_threads(&phases[i], threads[i]);
        printf("%d\n", (int)getpid());
        fflush(stdout);
        require(fgets(line, sizeof line, stdin) != NULL, "standard input");
        for (int i = 0; i < COUNT; i++) {
                phases[i].end_ns = read_clock() + phase_ns;
                pthread_barrier_wait(&phases[i].begin);
                for (unsigned k = 0; k < phases[i].threads; k++)
                        pthread_join(threads[i][k], NULL);
        }
        return 0;
}
