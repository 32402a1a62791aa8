/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_INDEX_RETRY_H
#define CAIRN_PIPELINE_INDEX_RETRY_H

/**
 * @file
 * Retry with exponential backoff for objects whose indexing failed for a
 * reason that lies in the service and not in the object: the disk or the
 * index's map is full, the disk is read-only, a worker cannot be started.
 *
 * One object at a time is tried again, after a pause that doubles up to
 * INDEX_RETRY_PAUSE_MAX_S. Each success releases two more, so all waiting
 * objects go through once the cause is gone, while an object that fails for
 * ever costs at most two attempts per success of another one.
 *
 * Threads: the owner's lock.
 */
#include "pipeline/id_set.h"

#define INDEX_RETRY_PAUSE_S 5
#define INDEX_RETRY_PAUSE_MAX_S 300
#define INDEX_RETRY_RELEASED 2

struct index_retry {
        struct id_set ids;
        int64_t due_ns;   /* when the next is tried; 0: one is being tried, or none is waiting */
        unsigned pause_s; /* 0 after a success */
        struct error why; /* last failure; text is "" once all objects succeeded */
};

void index_retry_deinit(struct index_retry *r);

/** An attempt failed. @param starts_ret whether a pause of r->pause_s begins. @return ST_NO_MEMORY: not recorded. */
enum status index_retry_add(struct index_retry *r, const struct build_id *id, const struct error *why, int64_t now_ns,
                            bool *starts_ret) MUST_CHECK;

/** Remove the object that is due; false when none is. */
bool index_retry_take(struct index_retry *r, int64_t now_ns, struct build_id *ret);

/** An attempt succeeded: take the objects to try next, up to INDEX_RETRY_RELEASED. Returns their number. */
size_t index_retry_release(struct index_retry *r, struct build_id ret[static INDEX_RETRY_RELEASED]);

/** An attempt ended without evidence about the cause: if objects wait for its outcome, start another pause. */
void index_retry_continue(struct index_retry *r, int64_t now_ns);

#endif
