/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_WISHES_H
#define CAIRN_SERVER_WISHES_H

/**
 * @file
 * Asks for missing objects again. A flush wishes only for what it meets first;
 * an upstream may get an object later, and a restart forgets what was queued.
 * So the objects that samples of the last day lack are wished for at the start
 * and every ten minutes; those remembered as missing are left out by the
 * federation itself.
 */
#include "profile-store/store.h"

struct wishes;

/** @param want called on a thread of its own. */
enum status wishes_start(struct profile_store *profiles, void (*want)(void *context, const struct build_id *ids, size_t count),
                         void *context, struct wishes **ret, struct error *err) MUST_CHECK;
/** Ask at once for whatever stored samples lack, of any age. */
void wishes_wake(struct wishes *w);
/** NULL is allowed. */
void wishes_stop(struct wishes *w);

#endif
