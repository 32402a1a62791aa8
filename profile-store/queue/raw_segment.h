/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_QUEUE_RAW_SEGMENT_H
#define CAIRN_PROFILE_STORE_QUEUE_RAW_SEGMENT_H

/**
 * @file
 * The bytes of one raw queue segment (docs/formats/raw-queue.md): a header,
 * then records with consecutive positions, each with two checksums.
 *
 * Threads: one reader belongs to one thread.
 */
#include "common/error.h"
#include "common/hash.h"
#include "common/memory/buf.h"
#include "common/reader.h"

#define RAW_SEGMENT_HEADER_BYTES 32
#define RAW_RECORD_HEADER_BYTES 56

struct raw_record {
        uint64_t position; /* 1, 2, 3, ... over the life of the store */
        int64_t received_unix_ns;
        struct hash128 batch_id;
        const uint8_t *payload; /* borrowed */
        uint32_t payload_size;
};

struct raw_segment {
        struct reader reader;
        uint64_t next_position;
        size_t valid_end; /* end of the header and all whole records */
};

void raw_segment_encode_header(uint64_t first_position, uint8_t ret[static RAW_SEGMENT_HEADER_BYTES]);
void raw_record_encode_header(const struct raw_record *record, uint8_t ret[static RAW_RECORD_HEADER_BYTES]);

/** Start reading. ST_BAD_DATA for another kind of file, ST_UNSUPPORTED for a newer version. */
enum status raw_segment_begin(struct raw_segment *s, const void *data, size_t n, const char *name,
                              struct error *err) MUST_CHECK;

/** Start reading at a record, of which the position is known. */
void raw_segment_continue(struct raw_segment *s, const void *data, size_t n, uint64_t position);

/**
 * The next whole, intact record; false after the last one. Bytes after valid_end are then a torn tail: unacknowledged
 * records that a crash interrupted.
 */
bool raw_segment_next(struct raw_segment *s, struct raw_record *ret);

#endif
