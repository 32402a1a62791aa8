/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_UPLOAD_QUEUE_H
#define CAIRN_AGENT_UPLOADS_UPLOAD_QUEUE_H

/**
 * @file
 * Files that wait for their upload. The next one is that with the most samples per byte (Smith's rule): at a limited
 * rate this order gives names to the most samples soonest, since a large file delays all others by its own time. So
 * small and busy programs come before the C library, and a file of a later interval may come before older ones.
 *
 * Threads: one at a time.
 */
#include <stdbool.h>

#include "uploader/upload_list.h"

struct queued_upload {
        struct upload_item item; /* path is owned */
        int fd;                  /* owned */
        uint64_t samples;        /* value of the samples with a frame in the object */
        int64_t asked_ns;        /* when the service was last asked whether it wants the file; 0: never */
};
void queued_upload_deinit(struct queued_upload *f);

struct upload_queue {
        struct queued_upload *items; /* owned, in no order */
        size_t count, capacity;
};
void upload_queue_deinit(struct upload_queue *q);

/** Takes f, also on failure, which is a lack of memory. */
bool upload_queue_add(struct upload_queue *q, struct queued_upload *f) MUST_CHECK;

/** Remove the file to be sent next; false if there is none. @param ret  owned. */
bool upload_queue_take(struct upload_queue *q, struct queued_upload *ret);

/** Remove the file at this index. @param ret  owned. */
void upload_queue_remove(struct upload_queue *q, size_t index, struct queued_upload *ret);

#endif
