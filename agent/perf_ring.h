/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PERF_RING_H
#define CAIRN_AGENT_PERF_RING_H

/**
 * @file
 * Taking whole records out of the memory that the kernel fills for one CPU.
 *
 * The kernel owns data_head, we own data_tail; both only grow and are taken
 * modulo the size, a power of two. A record may lie around the end: then it is
 * put together in a buffer. What cannot be a record (shorter than its header,
 * longer than what is there) means that the place in the ring is not known any
 * more: all of it is given up and counted.
 *
 * Threads: one ring belongs to one thread.
 * Source: perf_event_open(2), "MMAP layout".
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_RING_RECORD_MAX 65536 /* header.size has 16 bits */

struct perf_ring {
        struct perf_event_mmap_page *page; /* borrowed, as data */
        const uint8_t *data;
        size_t size;        /* of data, a power of two */
        uint64_t tail, head; /* of this turn */
        uint64_t broken;    /* times that the ring had to be given up */
        uint8_t *joined;    /* owned, PERF_RING_RECORD_MAX bytes */
};

/** @param data  size bytes, a power of two. False without memory. */
bool perf_ring_init(struct perf_ring *r, struct perf_event_mmap_page *page, const void *data, size_t size);
void perf_ring_deinit(struct perf_ring *r);

/** Look at what is there now; what comes later belongs to the next turn. */
void perf_ring_begin(struct perf_ring *r);

/**
 * The next record of this turn; it is passed.
 * @param bytes_ret  borrowed until the next call.
 * @return false when there is none.
 */
bool perf_ring_next(struct perf_ring *r, const uint8_t **bytes_ret, size_t *n_ret);

/** Give the room of the passed records back to the kernel. */
void perf_ring_end(struct perf_ring *r);

#endif
