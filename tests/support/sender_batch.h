/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_SENDER_BATCH_H
#define CAIRN_TESTS_SUPPORT_SENDER_BATCH_H

/** @file Batches of arbitrary bytes for a sender. */
#include "sending/sender_internal.h"

/** @param packed  taken. */
static inline enum status put_sender_batch(struct sender *s, struct buf *packed, struct error *err)
{
        const struct hash128 id = batch_id_generate();

        return sender_queue_batch(s, &id, packed, err);
}

#endif
