/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UNWIND_QUOTA_H
#define CAIRN_AGENT_UNWIND_QUOTA_H

/**
 * @file
 * How much of the arrays that all unwind tables share each owner has.
 *
 * An owner is a user together with a container. What a file's table takes is
 * the file's owner's, so that programs of the distribution that a user runs
 * count for root; mappings are the process's. The system itself (root outside
 * of containers, and whoever the agent runs as) has no bound but the arrays.
 * Any other owner has a quarter, and all others together three quarters: who
 * makes up users (subordinate ids) leaves the system its part all the same.
 *
 * A rule belongs to whose file brought it first, for good. Past
 * LIMIT_AGENT_UNWIND_OWNERS all further owners are one.
 *
 * Threads: one thread at a time.
 */
#include <stdint.h>
#include <sys/types.h>

#include "agent/id_table.h"

enum unwind_resource { UNWIND_RULES, UNWIND_ROWS, UNWIND_PAGES, UNWIND_MAPPINGS, UNWIND_RESOURCE_COUNT };

struct unwind_quota_owner;

struct unwind_quota {
        struct id_table by_key;
        struct unwind_quota_owner *owners; /* owned */
        uint32_t count, capacity;
        uint64_t sizes[UNWIND_RESOURCE_COUNT]; /* of the arrays */
        uint64_t used_by_others[UNWIND_RESOURCE_COUNT]; /* by all but the system */
        uid_t own;
};

#define UNWIND_OWNER_SYSTEM 0

/** @param own the user that the agent runs as. */
void unwind_quota_init(struct unwind_quota *q, const uint64_t sizes[static UNWIND_RESOURCE_COUNT], uid_t own);
void unwind_quota_deinit(struct unwind_quota *q);

/** The owner's number. @param container "" when there is none. */
uint32_t unwind_quota_owner(struct unwind_quota *q, uid_t uid, const char *container);

/** How much more the owner may take. */
uint64_t unwind_quota_left(const struct unwind_quota *q, uint32_t owner, enum unwind_resource r);
void unwind_quota_take(struct unwind_quota *q, uint32_t owner, enum unwind_resource r, uint64_t n);
void unwind_quota_give_back(struct unwind_quota *q, uint32_t owner, enum unwind_resource r, uint64_t n);

#endif
