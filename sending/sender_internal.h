/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SENDING_SENDER_INTERNAL_H
#define CAIRN_SENDING_SENDER_INTERNAL_H

#include "sending/sender.h"

/** Queue a gzip-compressed OTLP request under an id. @param packed  taken. */
enum status sender_queue_batch(struct sender *s, const struct hash128 *id, struct buf *packed,
                               struct error *err) MUST_CHECK;

#endif
