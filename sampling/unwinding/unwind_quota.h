/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWIND_QUOTA_H
#define CAIRN_SAMPLING_UNWINDING_UNWIND_QUOTA_H

/**
 * @file
 * Quotas for the arrays that all unwind tables share, per owner.
 *
 * An owner is a user together with a container. A table counts for the owner
 * of the file, so distribution programs run by a user count for root; mappings
 * count for the process. The system (root outside containers, and the agent's
 * own user) is limited only by the arrays. Any other owner may use a quarter,
 * and all others together three quarters: the system keeps its share even when
 * a user creates further users (subordinate ids).
 *
 * A rule counts for the owner of the first file that had it, permanently. Past
 * LIMIT_AGENT_UNWIND_OWNERS further owners share one quota.
 *
 * Threads: one thread at a time.
 */
#include <stdint.h>
#include <sys/types.h>

#include "common/hash/id_table.h"

enum unwind_resource { UNWIND_RULES, UNWIND_ROWS, UNWIND_PAGES, UNWIND_MAPPINGS, UNWIND_RESOURCE_COUNT };

struct unwind_quota_owner;

struct unwind_quota {
        struct id_table by_key;
        struct unwind_quota_owner *owners; /* owned */
        uint32_t count;                    /* 0, or more than UNWIND_OWNER_REST */
        size_t capacity;
        uint64_t sizes[UNWIND_RESOURCE_COUNT];          /* of the arrays */
        uint64_t used_by_others[UNWIND_RESOURCE_COUNT]; /* by all but the system */
        uid_t own;
};

#define UNWIND_OWNER_SYSTEM 0

/** @param own  uid of the agent. */
void unwind_quota_init(struct unwind_quota *q, const uint64_t sizes[static UNWIND_RESOURCE_COUNT], uid_t own);
void unwind_quota_deinit(struct unwind_quota *q);

/** The index of an owner, added if new. @param container  "": none. */
uint32_t unwind_quota_get_owner(struct unwind_quota *q, uid_t uid, const char *container);

/** The amount that the owner may still use. */
uint64_t unwind_quota_get_remaining(const struct unwind_quota *q, uint32_t owner, enum unwind_resource r);
void unwind_quota_charge(struct unwind_quota *q, uint32_t owner, enum unwind_resource r, uint64_t n);
void unwind_quota_refund(struct unwind_quota *q, uint32_t owner, enum unwind_resource r, uint64_t n);

#endif
