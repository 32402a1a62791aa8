/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PACKER_H
#define CAIRN_COMMON_PACKER_H

/**
 * @file
 * gzip or zstd of a text that comes in pieces: each piece can be unpacked as
 * soon as its bytes are there, and all of them make one member or frame, as
 * HTTP's Content-Encoding wants it. Fast levels: the reader waits.
 *
 * Threads: a packer belongs to one at a time.
 * Source: RFC 1952, RFC 8878.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

struct packer;

enum status packer_create(enum packing packing, struct packer **ret, struct error *err) MUST_CHECK;
void packer_destroy(struct packer *p); /* takes NULL */

/** Append the packed n bytes of data to ret; last ends the text. */
enum status packer_add(struct packer *p, const void *data, size_t n, bool last, struct buf *ret,
                       struct error *err) MUST_CHECK;

#endif
