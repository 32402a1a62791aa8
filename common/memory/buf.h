/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_MEMORY_BUF_H
#define CAIRN_COMMON_MEMORY_BUF_H

/**
 * @file
 * A growable byte buffer with a maximum size.
 *
 * A failed append leaves the content unchanged and marks the buffer as failed; every later append fails too, so a
 * sequence of appends needs one test at its end: buf_status().
 */
#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/memory/memory_budget.h"

struct buf {
        uint8_t *data; /* owned; NULL while empty */
        size_t size;
        size_t capacity;
        size_t max; /* limit of size */
        enum status failed;
        struct memory_reservation memory; /* for capacity bytes; MEMORY_BASE: not reserved */
};

void buf_init(struct buf *b, size_t max);
/**
 * Like buf_init(), but memory is reserved from the budget. Code that takes ownership of data must take the reservation
 * too.
 */
void buf_init_budget(struct buf *b, size_t max, enum memory_use use);
void buf_deinit(struct buf *b);
#define _cleanup_buf_ _cleanup_(buf_deinit)

/** Reset content and failure, keep the memory. */
void buf_clear(struct buf *b);

/** ST_OK, or the first failure (ST_TOO_BIG, ST_NO_MEMORY, ST_BUSY from the budget). */
enum status buf_status(const struct buf *b, struct error *err, const char *what);

/** The slow path of buf_reserve(). */
void *buf_grow(struct buf *b, size_t n);

/** Make room for n more bytes and return their address; NULL on failure. buf_commit() adds them to size. */
static inline void *buf_reserve(struct buf *b, size_t n)
{
        bool fits = b->data && !b->failed && n <= b->capacity - b->size && n <= b->max - b->size;

        return fits ? b->data + b->size : buf_grow(b, n);
}

static inline void buf_commit(struct buf *b, size_t n)
{
        assert(n <= b->capacity - b->size); /* at most the bytes reserved */
        b->size += n;
}

static inline enum status buf_append(struct buf *b, const void *data, size_t n)
{
        void *to;

        if (n == 0)
                return b->failed;
        to = buf_reserve(b, n);
        if (!to)
                return b->failed;
        memcpy(to, data, n);
        b->size += n;
        return ST_OK;
}

static inline enum status buf_append_u8(struct buf *b, uint8_t v)
{
        return buf_append(b, &v, 1);
}

/* Integers are little-endian. */
static inline enum status buf_append_u16(struct buf *b, uint16_t v)
{
        v = htole16(v);
        return buf_append(b, &v, sizeof v);
}

static inline enum status buf_append_u32(struct buf *b, uint32_t v)
{
        v = htole32(v);
        return buf_append(b, &v, sizeof v);
}

static inline enum status buf_append_u64(struct buf *b, uint64_t v)
{
        v = htole64(v);
        return buf_append(b, &v, sizeof v);
}

enum status buf_append_str(struct buf *b, const char *s);
/** Append text percent-encoded, except unreserved characters and those in keep. Source: RFC 3986, 2.3. */
void buf_append_url_encoded(struct buf *b, const char *text, const char *keep);
enum status buf_append_uleb128(struct buf *b, uint64_t v);
enum status buf_append_sleb128(struct buf *b, int64_t v);
enum status buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/** Append a NUL, not counted in size, and return the text, borrowed until the next call; NULL on failure. */
const char *buf_cstr(struct buf *b);

#endif
