/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds per observation of a histogram, by a single thread and by one thread per processor concurrently. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/metrics.h"

#define OBSERVATIONS 20000000
#define THREADS_MAX 64

static struct histogram observed = HISTOGRAM("bench_duration_seconds", "Of nothing.", "");

static void *observe_durations(void *context)
{
        uint64_t state = 88172645463325252u + (uintptr_t)&context;

        (void)context;
        for (int i = 0; i < OBSERVATIONS; i++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                histogram_observe(&observed,
                                  (int64_t)(state >> (24 + state % 24))); /* up to 18 minutes, evenly by magnitude */
        }
        return NULL;
}

static double measure_observation_ns(long count)
{
        int64_t start = monotonic_ns();
        pthread_t threads[THREADS_MAX];

        for (long i = 0; i < count; i++)
                if (pthread_create(&threads[i], NULL, observe_durations, NULL))
                        abort();
        for (long i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
        return (double)(monotonic_ns() - start) / OBSERVATIONS;
}

int main(void)
{
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        if (cpus > THREADS_MAX)
                cpus = THREADS_MAX;
        printf("%.1f ns per observation by one thread, %.1f ns by each of %ld\n", measure_observation_ns(1),
               measure_observation_ns(cpus), cpus);
        return 0;
}
