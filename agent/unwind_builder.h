/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UNWIND_BUILDER_H
#define CAIRN_AGENT_UNWIND_BUILDER_H

/**
 * @file
 * Makes unwind tables beside the sampling: a thread hands files to a confined
 * worker, a few at a time, since they belong to others, may hold anything and
 * may be cut off while they are read. A file that brings the worker down is
 * tried once more alone; then it has no table.
 *
 * Threads: unwind_builder_put() and _take() by one thread; the builder's own
 * thread does the rest.
 */
#include "sandbox/nursery.h"
#include "unwind-tables/table.h"

struct unwind_builder;

struct unwind_built {
        uint32_t ticket;
        int fd; /* owned; for unwind_result_read(); -1: the file has no table */
};

/** @param nursery borrowed, for the builder alone; NULL: each worker is a program that is started. */
enum status unwind_builder_create(struct nursery *nursery, struct unwind_builder **ret, struct error *err) MUST_CHECK;
/** Waits for the worker that runs. NULL is fine. */
void unwind_builder_destroy(struct unwind_builder *b);

/** Ask for the table of a file. The first one starts the thread. @param fd taken, also on failure. False without memory. */
bool unwind_builder_put(struct unwind_builder *b, uint32_t ticket, int fd);

/** A descriptor that is readable when there is something to take. */
int unwind_builder_fd(const struct unwind_builder *b);

/** Take one that is done; false when there is none. */
bool unwind_builder_take(struct unwind_builder *b, struct unwind_built *ret);

#endif
