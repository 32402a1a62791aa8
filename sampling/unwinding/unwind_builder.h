/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWIND_BUILDER_H
#define CAIRN_SAMPLING_UNWINDING_UNWIND_BUILDER_H

/**
 * @file
 * Builds unwind tables in the background: a thread passes files to a
 * confined worker, a few at a time, because they are untrusted and may be
 * truncated while they are read. A file that crashes the worker is retried
 * alone once; after that it has no table. Workers that cannot be started are
 * logged once.
 *
 * Threads: unwind_builder_request() and _take() by one thread; the builder's
 * own thread does the rest.
 */
#include "sandbox/fork_server.h"
#include "unwind-tables/unwind_table.h"

struct unwind_builder;

enum unwind_build_end {
        UNWIND_BUILD_READ,      /* the worker read the file; it may have no CFI */
        UNWIND_BUILD_FAILED,    /* the file crashed the worker or exceeded its limits */
        UNWIND_BUILD_NO_WORKER, /* no worker could be started, so nothing is known about the file */
};

struct unwind_built {
        uint32_t ticket;
        int fd; /* owned; for unwind_result_read(); -1: no table */
        enum unwind_build_end end;
};

/** @param fork_server  borrowed, used by the builder only; NULL: each worker is a new program. */
enum status unwind_builder_create(struct fork_server *fork_server, struct unwind_builder **ret,
                                  struct error *err) MUST_CHECK;
/** Waits for the running worker. NULL is allowed. */
void unwind_builder_destroy(struct unwind_builder *b);

/** Queue a file. The first request starts the thread. @param fd  taken, also on failure. False without memory. */
bool unwind_builder_request(struct unwind_builder *b, uint32_t ticket, int fd);

/** A descriptor that is readable when results are available. */
int unwind_builder_fd(const struct unwind_builder *b);

/** Build the table of one file at once, to check whether workers can do it. @param fd  borrowed. */
enum status unwind_builder_try(struct fork_server *fork_server, int fd, struct error *err) MUST_CHECK;

/** Take one result; false when there is none. */
bool unwind_builder_take(struct unwind_builder *b, struct unwind_built *ret);

/**
 * `cairn-agent worker unwind`, in the worker. Descriptors: 3, 5, 7, ... files, 4, 6, 8, ... outputs for their tables.
 * The output of an unreadable file stays empty.
 */
#define WORKER_UNWIND_FILES 6 /* per run */
int worker_unwind(void);

#endif
