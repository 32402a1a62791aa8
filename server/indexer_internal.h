/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INDEXER_INTERNAL_H
#define CAIRN_SERVER_INDEXER_INTERNAL_H

#include <pthread.h>

#include "server/id_set.h"
#include "server/index_retry.h"
#include "server/indexer.h"
#include "server/later.h"
#include "server/needs.h"

#define INDEXER_THREADS_MAX 4

struct indexer {
        struct indexer_options options;
        char *scratch_dir;
        pthread_mutex_t lock;
        pthread_cond_t work;
        struct id_set queue, running; /* an object that is added while it runs is queued again, and waits for its end */
        struct later later;           /* those of which a companion came, and more are to come */
        struct index_retry retry;     /* those that could not be indexed for a reason that is not theirs */
        struct needs needs;
        uint64_t looks;               /* how often there may have been more for open_other() */
        pthread_mutex_t write;        /* the index has one writer at a time */
        atomic_bool stop;
        pthread_t threads[INDEXER_THREADS_MAX];
        unsigned thread_count;
};

/** Read one object and load it; what became of it is logged and counted. */
void index_job_run(struct indexer *ix, const struct build_id *id);
/** Make its metrics appear. */
void index_job_metrics(void);

/** It could not be indexed for a reason that lies in the service: try again, after a pause. */
void indexer_postpone(struct indexer *ix, const struct build_id *id, const struct error *why);
/** It was indexed, or not (is_success false) for a reason of its own: see to those that were postponed. */
void indexer_ended(struct indexer *ix, bool is_success);

/** What of it is not here, in place of what was said before. @param looks as the indexer had them when the job began. */
void indexer_note_missing(struct indexer *ix, const struct build_id *object, const struct id_set *missing, uint64_t looks);

/** As symbol_index_mark(); a failure is logged. */
void indexer_mark(struct indexer *ix, const struct build_id *id, enum symbol_object_state state, const char *reason,
                  const struct symbol_inputs *inputs);

#endif
