/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SEND_H
#define CAIRN_UPLOADER_SEND_H

/**
 * @file
 * Split, hash, compress and send one file. Source: docs/formats/upload.md, 3.
 *
 * Everything streams: memory is a slice of the file and the compressor's window.
 */
#include <stdatomic.h>

#include "http/client.h"
#include "uploader/sources.h"
#include "uploader/upload_list.h"

struct send_options {
        bool force;        /* replace what is as good or better */
        struct source_options sources;
        const char *label; /* kept with each object, debuginfo-store/store.h; NULL none */
};

/**
 * Send one item and set its state, sizes and reason.
 * @param moved counts unpacked bytes as they go, for progress; may be NULL.
 * @param stop  once true, the work before the request ends too; may be NULL.
 */
enum status send_item(struct http_client *client, struct upload_item *item, const struct send_options *o, _Atomic uint64_t *moved,
                      const atomic_bool *stop, struct error *err) MUST_CHECK;

/**
 * The same with the bytes to send in an open file, which nobody looks into here.
 * @param fd borrowed.
 */
enum status send_content(struct http_client *client, struct upload_item *item, int fd, uint64_t size,
                         const struct send_options *o, _Atomic uint64_t *moved, const atomic_bool *stop,
                         struct error *err) MUST_CHECK;

#endif
