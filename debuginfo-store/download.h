/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_DOWNLOAD_H
#define CAIRN_DEBUGINFO_STORE_DOWNLOAD_H

/**
 * @file
 * A file while it comes from an upstream: one writer, any number of clients that read what is there already.
 *
 * Nobody is told the end before the whole was verified and stored; what is found wrong then ends as a failure for all
 * who read it, so that nobody has a whole wrong file.
 *
 * Threads: any; every holder has a reference.
 */
#include <stdatomic.h>
#include <sys/types.h>

#include "debuginfo-store/fetch.h"

struct download;

/** With one reference. @param fd taken, also on failure: an empty file. */
enum status download_create(int fd, struct download **ret, struct error *err) MUST_CHECK;
struct download *download_ref(struct download *d); /* returns d */
void download_unref(struct download *d);           /* takes NULL */

/** The file, for the writer: borrowed. */
int download_fd(const struct download *d);
/** The writer's: more is there. */
void download_grew(struct download *d, const struct fetch_answer *answer);
/** The writer's: no more comes. @param stored all is well. */
void download_end(struct download *d, bool stored);

/** What is known of it. */
void download_get(struct download *d, struct fetch_answer *ret);

/**
 * Bytes at offset, waiting for some.
 * @return how many; 0 at the end; -1 and err when it failed or *cancel was set.
 */
ssize_t download_read(struct download *d, void *to, size_t n, uint64_t offset, const atomic_bool *cancel,
                      struct error *err);

#endif
