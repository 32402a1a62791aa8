/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SENDING_SPOOL_FILE_H
#define CAIRN_SENDING_SPOOL_FILE_H

/**
 * @file
 * File format of one spooled batch (docs/formats/spool.md).
 *
 * Threads: no shared state.
 */
#include <stdint.h>

#include "common/error.h"
#include "common/hash.h"

#define SPOOL_FILE_HEADER_BYTES 72

struct spool_batch {
        uint64_t number; /* of the file; batches are sent in this order */
        int64_t made_unix_ns;
        struct hash128 id;      /* sent as "X-Cairn-Batch" */
        const uint8_t *payload; /* borrowed: a gzip-compressed OTLP request */
        size_t payload_size;
};

void spool_file_write_header(const struct spool_batch *b, uint8_t ret[static SPOOL_FILE_HEADER_BYTES]);

/* Which version of the program wrote a header: its checksum is at the same place in all; unknown if that is wrong. */
enum spool_version { SPOOL_VERSION_OWN, SPOOL_VERSION_OTHER, SPOOL_VERSION_UNKNOWN };
enum spool_version spool_file_judge_version(const uint8_t head[static SPOOL_FILE_HEADER_BYTES]);

/**
 * Parse a whole file.
 * @param number  from the file's name; the header must agree.
 * @param name    for error messages.
 * @param ret     borrows data; untouched on failure.
 * @return ST_OK; ST_BAD_DATA for a file that is truncated, damaged or of another kind;
 *         ST_UNSUPPORTED for another version.
 */
enum status spool_file_parse(const void *data, size_t n, uint64_t number, const char *name, struct spool_batch *ret,
                             struct error *err) MUST_CHECK;

#endif
