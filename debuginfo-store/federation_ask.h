/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_ASK_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_ASK_H

/*
 * One question to the upstreams in their order, and keeping what comes.
 *
 * Threads: any, except init and deinit.
 */
#include "debuginfo-store/federation.h"
#include "debuginfo-store/wanted.h"

struct federation_asker {
        struct debuginfo_store *store;
        uint64_t timeout_s;
        struct upstream **upstreams;
        size_t upstream_count;
        void (*upstream_changed)(void *context, const struct upstream_status *status);
        void *context;
};

enum status federation_asker_init(struct federation_asker *a, struct debuginfo_store *store,
                                  const struct federation_options *options, struct error *err) MUST_CHECK;
void federation_asker_deinit(struct federation_asker *a); /* also after a failed init */

enum asked {
        ASKED_STORED,
        ASKED_MISSING, /* nobody has it */
        ASKED_REFUSED, /* what somebody has is not what was asked for, and nobody else has it */
        ASKED_FAILED   /* somebody who might have it did not answer, or cancel was set */
};

/**
 * @param w      the question; id, part and forwarded_for are read.
 * @param show   called with a file once its first bytes are there, and with NULL when it ended.
 * @param ret    of ASKED_STORED.
 * @param err    of the last two.
 */
enum asked federation_ask(struct federation_asker *a, const struct wanted *w, const atomic_bool *cancel,
                          void (*show)(void *context, struct download *d), void *context, struct stored_object *ret,
                          struct error *err);

#endif
