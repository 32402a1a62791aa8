/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/cpu_turn.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t turns;
static pthread_once_t turns_once = PTHREAD_ONCE_INIT;

static void init_cpu_turns(void)
{
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        sem_init(&turns, 0, cpus > 0 ? (unsigned)cpus : 1);
}

void cpu_turn_begin(void)
{
        pthread_once(&turns_once, init_cpu_turns);
        while (sem_wait(&turns) < 0 && errno == EINTR)
                ;
}

void cpu_turn_end(void)
{
        sem_post(&turns);
}
