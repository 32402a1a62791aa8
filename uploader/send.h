/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SEND_H
#define CAIRN_UPLOADER_SEND_H

/**
 * @file
 * Hash, compress and send one file or its split debuginfo. Source: docs/formats/upload.md, 3.
 *
 * Content is streamed: memory use is a slice of the file and the compressor's window.
 */
#include <stdatomic.h>

#include "http/client.h"
#include "uploader/sources.h"
#include "uploader/upload_list.h"

struct send_options {
        bool force; /* replace an object of the same or better quality */
        struct source_options sources;
        const char *label; /* stored with each object, see debuginfo-store/store.h; NULL: none */
};

/**
 * Send the content of an open file as one item and set its state, sizes and reason.
 * @param fd    borrowed.
 * @param moved counts uncompressed bytes as they are read, for progress; may be NULL.
 * @param stop  set to true to end, also while hashing before the request; may be NULL.
 */
enum status send_content(struct http_client *client, struct upload_item *item, int fd, uint64_t size,
                         const struct send_options *o, _Atomic uint64_t *moved, const atomic_bool *stop,
                         struct error *err) MUST_CHECK;

#endif
