/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/perf_ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool perf_ring_init(struct perf_ring *r, struct perf_event_mmap_page *page, const void *data, size_t size)
{
        assert(size && (size & (size - 1)) == 0);
        *r = (struct perf_ring){ .page = page, .data = data, .size = size, .joined = malloc(PERF_RING_RECORD_MAX) };
        return r->joined != NULL;
}

void perf_ring_deinit(struct perf_ring *r)
{
        free(r->joined);
        *r = (struct perf_ring){ 0 };
}

static void discard_ring(struct perf_ring *r)
{
        r->tail = r->head;
        r->broken++;
}

void perf_ring_begin(struct perf_ring *r)
{
        r->tail = r->page->data_tail;
        /* Pairs with the barrier of the kernel between writing a record and data_head. */
        r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
        if (r->head - r->tail > r->size)
                discard_ring(r);
}

/* The n <= size bytes at the tail, contiguous. */
static const uint8_t *get_contiguous_record(struct perf_ring *r, size_t n)
{
        size_t at = r->tail & (r->size - 1), before_end = r->size - at;

        if (n <= before_end)
                return r->data + at;
        memcpy(r->joined, r->data + at, before_end);
        memcpy(r->joined + before_end, r->data, n - before_end);
        return r->joined;
}

bool perf_ring_next(struct perf_ring *r, const uint8_t **bytes_ret, size_t *n_ret)
{
        struct perf_event_header header;
        uint64_t left = r->head - r->tail;

        if (!left)
                return false;
        if (left >= sizeof header)
                memcpy(&header, get_contiguous_record(r, sizeof header), sizeof header);
        if (left < sizeof header || header.size < sizeof header || header.size > left) {
                discard_ring(r);
                return false;
        }
        *bytes_ret = get_contiguous_record(r, header.size);
        *n_ret = header.size;
        r->tail += header.size;
        return true;
}

void perf_ring_end(struct perf_ring *r)
{
        /* All reads of records come before this store. */
        __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}
