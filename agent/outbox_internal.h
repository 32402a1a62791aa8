/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_OUTBOX_INTERNAL_H
#define CAIRN_AGENT_OUTBOX_INTERNAL_H

#include "agent/outbox.h"

void outbox_append(struct outbox *o, struct batch *b);

/** Drop the oldest of the spool until so many bytes more fit; false when they never will. */
bool outbox_make_room(struct outbox *o, uint64_t disk_bytes);

#endif
