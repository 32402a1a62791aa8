/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SPOOL_FILE_H
#define CAIRN_AGENT_SPOOL_FILE_H

/**
 * @file
 * The bytes of one spooled batch (docs/formats/spool.md).
 *
 * Threads: no shared state.
 */
#include <stdint.h>

#include "common/error.h"
#include "common/hash.h"

#define SPOOL_FILE_HEADER_BYTES 72

struct spool_batch {
        uint64_t number;        /* of the file; batches are sent in its order */
        int64_t made_unix_ns;
        struct hash128 id;      /* goes along as "X-Cairn-Batch" */
        const uint8_t *payload; /* borrowed: a gzip'd OTLP request */
        size_t payload_size;
};

void spool_file_header(const struct spool_batch *b, uint8_t ret[static SPOOL_FILE_HEADER_BYTES]);

/**
 * Take a whole file apart.
 * @param number  what the file's name says; the header must agree.
 * @param name    for the error's text.
 * @param ret     borrows data; untouched on failure.
 * @return ST_OK; ST_BAD_DATA when it is no such file, is cut off or damaged;
 *         ST_UNSUPPORTED when a newer version wrote it.
 */
enum status spool_file_parse(const void *data, size_t n, uint64_t number, const char *name, struct spool_batch *ret,
                             struct error *err) MUST_CHECK;

#endif
