/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_INTERNAL_H
#define CAIRN_AGENT_UPLOADS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/upload_files.h"
#include "agent/upload_known.h"
#include "agent/uploads.h"
#include "common/limits.h"
#include "http/client.h"
#include "uploader/upload_list.h"

struct uploads {
        struct uploads_options options; /* its texts are the caller's until uploads_destroy() */
        struct http_client *client;     /* used by the thread alone */
        pthread_t thread;
        struct upload_workers workers;  /* the same */
        atomic_bool stop;
        pthread_mutex_t lock;           /* what follows */
        pthread_cond_t changed;
        struct upload_known known;
        struct upload_offer offers[LIMIT_AGENT_UPLOAD_OFFERS];
        size_t offer_count;
        int64_t not_before_ns;          /* the service gets no question until then */
        uint64_t pause_ms;              /* the last one */
        struct uploads_stats stats;
};

/** Files that are asked about together: items[i] is open as fds[i]. */
struct upload_round {
        struct upload_list list;
        int fds[UPLOAD_FILES_MAX * LIMIT_AGENT_UPLOAD_OFFERS];
};

/** Ask about a round's files and send what is wanted. */
void upload_round_run(struct uploads *u, struct upload_round *round);

/** What came of a build-id. */
void uploads_end(struct uploads *u, const struct build_id *id, enum upload_end end, uint64_t *counter);

/** Wait, without the lock. False when the agent ends. */
bool uploads_wait(struct uploads *u, uint64_t ms);

#endif
