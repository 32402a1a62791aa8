/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_DOWNLOAD_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_DOWNLOAD_H

/**
 * @file
 * A download in progress from an upstream: one writer, any number of clients that read the bytes that have arrived.
 *
 * Readers see the end only after the whole file was verified and stored. If verification fails, every reader gets an
 * error, so that no client receives a complete bad file.
 *
 * Threads: any; reference counted.
 */
#include <stdatomic.h>
#include <sys/types.h>

#include "debuginfo-store/federation/fetch.h"

struct download;

/** Create with one reference. @param fd an empty file; takes it, also on failure. */
enum status download_create(int fd, struct download **ret, struct error *err) MUST_CHECK;
struct download *download_ref(struct download *d); /* returns d */
void download_unref(struct download *d);           /* takes NULL */

/** The file's descriptor, for the writer. Borrowed. */
int download_get_fd(const struct download *d);
/** Publish the bytes received so far. Called by the writer. */
void download_note_progress(struct download *d, const struct fetch_response *response);
/** End the download. Called by the writer. @param stored the file was verified and stored. */
void download_finish(struct download *d, bool stored);

/** The response as received so far. */
void download_get_answer(struct download *d, struct fetch_response *ret);

/**
 * Read bytes at offset; blocks until some have arrived.
 * @return number of bytes; 0 at the end; -1 and err if the download failed or *cancel was set.
 */
ssize_t download_read(struct download *d, void *to, size_t n, uint64_t offset, const atomic_bool *cancel,
                      struct error *err);

#endif
