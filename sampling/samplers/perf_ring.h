/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_PERF_RING_H
#define CAIRN_SAMPLING_SAMPLERS_PERF_RING_H

/**
 * @file
 * Reader of the ring buffer that the kernel fills for one CPU.
 *
 * The kernel owns data_head, the agent owns data_tail; both only grow and are
 * taken modulo the size, a power of two. A record may wrap around the end: it
 * is then copied to a buffer. An invalid record (shorter than its header,
 * longer than the available data) means that the position is lost: everything
 * up to data_head is discarded and counted.
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
        struct perf_event_mmap_page *page; /* borrowed, like data */
        const uint8_t *data;
        size_t size;         /* of data, a power of two */
        uint64_t tail, head; /* of this pass */
        uint64_t broken;     /* times that the position was lost */
        uint8_t *joined;     /* scratch for wrapped records; owned, PERF_RING_RECORD_MAX bytes */
};

/** @param data  size bytes, a power of two. False without memory. */
bool perf_ring_init(struct perf_ring *r, struct perf_event_mmap_page *page, const void *data, size_t size);
void perf_ring_deinit(struct perf_ring *r);

/** Start a pass over the records present now; later records belong to the next pass. */
void perf_ring_begin(struct perf_ring *r);

/**
 * Consume the next record of this pass.
 * @param bytes_ret  borrowed until the next call.
 * @return false when there is none.
 */
bool perf_ring_next(struct perf_ring *r, const uint8_t **bytes_ret, size_t *n_ret);

/** Return the space of consumed records to the kernel. */
void perf_ring_end(struct perf_ring *r);

#endif
