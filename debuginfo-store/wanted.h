/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_WANTED_H
#define CAIRN_DEBUGINFO_STORE_WANTED_H

/**
 * @file
 * What the federation was asked for: one entry for each question that is queued, in flight, or answered with "not
 * found" or a failure until a time. Entries whose time has come are dropped when somebody looks for their like, and
 * earlier when there are WANTED_MAX.
 *
 * Threads: none of its own; the caller's lock.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "debuginfo-store/download.h"
#include "debuginfo-store/forwarded.h"

#define WANTED_MAX 100000
#define WANTED_BUCKETS 4096

enum wanted_state { WANTED_QUEUED, WANTED_IN_FLIGHT, WANTED_MISSING, WANTED_FAILED };

struct wanted {
        struct wanted *next;         /* in its bucket */
        struct wanted *next_queued;
        struct build_id id;
        char *part;                  /* as in struct fetch_question */
        enum wanted_state state;
        int64_t forget_ns;           /* monotonic; WANTED_MISSING and WANTED_FAILED */
        struct download *download;   /* what comes just now; NULL none */
        char *forwarded_for;         /* to send */
        char *via;                   /* as in struct forwarded */
};

/** Is it a part of an object, and not a whole one? */
bool wanted_is_piece(const char *part);

struct wanted_table {
        struct wanted *buckets[WANTED_BUCKETS];
        size_t count;
        size_t hand;                 /* the bucket where room is made next */
};

void wanted_deinit(struct wanted_table *t);

/** The entry of a question that came this way, or one that answers it too: a direct one that found nothing. NULL. */
struct wanted *wanted_find(struct wanted_table *t, const struct build_id *id, const char *part, const struct forwarded *way);
/** A new one, WANTED_QUEUED; NULL when all of a full table is under way, or memory is out. */
struct wanted *wanted_add(struct wanted_table *t, const struct build_id *id, const char *part, const struct forwarded *way);
void wanted_forget(struct wanted_table *t, struct wanted *w);

#endif
