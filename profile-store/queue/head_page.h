/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_QUEUE_HEAD_PAGE_H
#define CAIRN_PROFILE_STORE_QUEUE_HEAD_PAGE_H

/**
 * @file
 * What one node answers another one about its head: a header, then the records of batches as in a segment of the raw
 * queue. A header of a segment precedes each record whose position does not follow the one before it.
 * Format: docs/formats/head-page.md
 *
 * Threads: one reader or writer belongs to one thread.
 */
#include "profile-store/queue/raw_segment.h"
#include "profile-store/tables/tables.h"

struct head_page_header {
        char node[NODE_ID_SIZE]; /* whose queue the positions are of */
        uint64_t flushed;        /* batches up to this position are in the tables */
        uint64_t last;           /* the page is complete up to this position */
        int64_t version;         /* of the log of samples: it has all that the node no longer has in its head */
        bool has_more;           /* after `last` */
};

struct head_page_writer {
        struct buf *to;
        uint64_t next_position; /* 0: no record yet */
};

/** Append the header; it can be replaced later. */
void head_page_write_header(struct buf *to, const struct head_page_header *h);
/** Replace the header at the start of a page. */
void head_page_replace_header(struct buf *page, const struct head_page_header *h);
/** Append a record; positions ascend. A failure is recorded in the buf. */
void head_page_write_record(struct head_page_writer *w, const struct raw_record *record);

struct head_page_reader {
        struct head_page_header header;
        const uint8_t *rest;
        size_t rest_size;
        struct raw_segment segment;
        bool in_segment;
        uint64_t before; /* position of the record before */
};

/** Read the header. The page is borrowed. ST_BAD_DATA, ST_UNSUPPORTED for a newer version. */
enum status head_page_read(struct head_page_reader *r, const void *page, size_t n, struct error *err) MUST_CHECK;
/** The next record; *found_ret is false after the last one. ST_BAD_DATA for a damaged or cut page. */
enum status head_page_next(struct head_page_reader *r, struct raw_record *ret, bool *found_ret,
                           struct error *err) MUST_CHECK;

#endif
