/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_ID_SET_H
#define CAIRN_PIPELINE_ID_SET_H

/**
 * @file
 * A small list of distinct build-ids in the order of their arrival.
 * Threads: the owner's lock.
 */
#include "common/build_id.h"
#include "common/error.h"

struct id_set {
        struct build_id *items;
        size_t count, capacity;
};

void id_set_deinit(struct id_set *s);
bool id_set_contains(const struct id_set *s, const struct build_id *id);
/** ST_OK also if the set contains it. */
enum status id_set_add(struct id_set *s, const struct build_id *id) MUST_CHECK;
void id_set_remove(struct id_set *s, const struct build_id *id);

#endif
