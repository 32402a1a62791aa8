/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_ROUND_INTERNAL_H
#define CAIRN_SCAN_ROUND_INTERNAL_H

/* One walk of the trees, between the thread that walks (round.c) and those that have files looked at (round_look.c). */
#include <sys/stat.h>

#include "scan/scan_internal.h"

#define ROUND_QUEUE_MAX 256
#define ROUND_COMMIT_COUNT 64      /* results that wait for a commit at most, */
#define ROUND_COMMIT_NS 1000000000 /* and how long */

struct job {
        char *path; /* owned */
        struct stat info;
};

struct round {
        struct scan *s;
        pthread_mutex_t lock;
        pthread_cond_t changed;      /* of the queue */
        struct job queue[ROUND_QUEUE_MAX];
        size_t first, count;
        bool is_walked;              /* nothing is queued any more */
        struct scan_result results[ROUND_COMMIT_COUNT];
        size_t result_count, item_count;
        int64_t committed_ns, told_ns;
        uint64_t seen, read, archives, objects, errors;
};

void round_look_metrics(void);

/** A thread: have workers look at what is queued, until the walk is over. */
void *round_look_at_files(void *round);

/* Called with the lock held. */
void round_commit(struct round *r); /* lets it go meanwhile */
void round_count_error(struct round *r, const char *path, enum status st, const struct error *why);

#endif
