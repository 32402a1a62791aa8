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

#include "http/http_client.h"
#include "uploader/sources.h"
#include "uploader/upload_list.h"

struct send_options {
        bool force; /* replace an object of the same or better quality */
        struct source_options sources;
        const char *tag; /* stored with each object, see debuginfo-store/debuginfo_store.h; NULL: none */
};

/** An open file to send. */
struct upload_content {
        int fd; /* borrowed */
        uint64_t size_bytes;
        _Atomic uint64_t *moved; /* counts uncompressed bytes as they are read, for progress; may be NULL */
        const atomic_bool *stop; /* set to true to end, also while hashing before the request; may be NULL */
};

/** Send the content as one item and set its state, sizes and reason. */
enum status send_content(struct http_client *client, struct upload_item *item, const struct upload_content *content,
                         const struct send_options *o, struct error *err) MUST_CHECK;

#endif
