/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_INTERNAL_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_INTERNAL_H

#include <pthread.h>

#include "debuginfo-store/federation_ask.h"

#define FEDERATION_THREADS_MAX 16

/*
 * Errands at once of questions that came through so many services of ours. A question waits for one that came through one
 * more, so each number has room of its own: else services that ask each other in a ring could all be full of questions
 * that wait for each other.
 */
#define FEDERATION_ERRANDS_MAX 32     /* through none, and through one */
#define FEDERATION_ERRANDS_FAR_MAX 8  /* through each further number */

struct federation {
        struct federation_asker asker;
        struct federation_options options;
        char name[FORWARDED_NAME_SIZE];
        pthread_mutex_t lock;
        pthread_cond_t changed;   /* an entry's state, the number of errands, or stop */
        struct wanted_table table;
        struct wanted *queue_first, **queue_last;
        unsigned errands;         /* in all, */
        unsigned errands_through[FORWARD_LIMIT]; /* and by the services that their questions came through */
        atomic_bool stop;
        pthread_t threads[FEDERATION_THREADS_MAX];
        unsigned thread_count;
};

/* With the lock held: put a question at the end of the queue, and take it out of it. */
void federation_enqueue(struct federation *f, struct wanted *w);
void federation_dequeue(struct federation *f, struct wanted *w);
/* With the lock held: may one more question that came this way be asked now? */
bool federation_has_room(const struct federation *f, const struct wanted *w);
/* With the lock held: ask now, on a thread of its own. False when there is no room. */
bool federation_start_errand(struct federation *f, struct wanted *w);

#endif
