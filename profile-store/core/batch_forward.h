/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_BATCH_FORWARD_H
#define CAIRN_PROFILE_STORE_CORE_BATCH_FORWARD_H

/**
 * @file
 * The flush of a gateway: batches are sent to another node by options.forward, many in one page. They keep their ids,
 * so a page whose answer was lost, or that a second node gets as well, counts once. Positions in a page are those of
 * the queue of the gateway and only order its records; the other node gives each batch a position of its own.
 *
 * Threads: the caller holds the writer lock of the store.
 */
#include "profile-store/core/profile_store_internal.h"

/**
 * Send consecutive batches of the head; all of them are durable elsewhere after ST_OK.
 * @return ST_BAD_DATA or ST_TOO_BIG when the other node refuses one of them.
 */
enum status forward_batches(struct profile_store *s, struct batch *const *batches, size_t count,
                            struct error *err) MUST_CHECK;

#endif
