/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory/buf.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "common/memory/huge_pages.h"
#include "common/limits.h"

#define LARGE_BUF_BYTES MiB(16) /* above this size huge pages save most of the time of growing */

void buf_init(struct buf *b, size_t max)
{
        *b = (struct buf){ .max = max };
}

void buf_init_budget(struct buf *b, size_t max, enum memory_use use)
{
        *b = (struct buf){ .max = max, .memory.use = use };
}

void buf_deinit(struct buf *b)
{
        free(b->data);
        memory_release(&b->memory);
        *b = (struct buf){ .max = b->max, .memory = { .use = b->memory.use, .group = b->memory.group } };
}

void buf_clear(struct buf *b)
{
        b->size = 0;
        b->failed = ST_OK;
}

enum status buf_status(const struct buf *b, struct error *err, const char *what)
{
        if (b->failed == ST_TOO_BIG)
                return error_set(err, ST_TOO_BIG, "%s is larger than %zu bytes%s", what, b->max,
                                 b->memory.use == MEMORY_BASE ? "" : ", or than its share of --memory");
        if (b->failed == ST_BUSY)
                return error_set(err, ST_BUSY, "the memory for %s is in use; retry later", what);
        if (b->failed)
                return error_no_memory(err);
        return ST_OK;
}

void *buf_grow(struct buf *b, size_t n)
{
        size_t capacity;
        void *data;

        assert(b->size <= b->capacity);
        if (b->failed)
                return NULL;
        if (n > b->max - b->size) {
                b->failed = ST_TOO_BIG;
                return NULL;
        }
        capacity = b->capacity ? b->capacity * 2 : 256;
        if (capacity < b->size + n)
                capacity = b->size + n;
        if (capacity > b->max)
                capacity = b->max;
        if (b->memory.use != MEMORY_BASE) {
                b->failed = memory_resize(&b->memory, capacity, NULL);
                if (b->failed)
                        return NULL;
        }
        data = realloc(b->data, capacity ? capacity : 1);
        if (!data) {
                memory_shrink(&b->memory, b->capacity);
                b->failed = ST_NO_MEMORY;
                return NULL;
        }
        if (capacity >= LARGE_BUF_BYTES)
                advise_huge_pages(data, capacity);
        b->data = data;
        b->capacity = capacity;
        return b->data + b->size;
}

enum status buf_append_str(struct buf *b, const char *s)
{
        return buf_append(b, s, strlen(s));
}

void buf_append_url_encoded(struct buf *b, const char *text, const char *keep)
{
        for (const char *p = text; *p; p++) {
                if (((unsigned char)*p < 0x80 && isalnum((unsigned char)*p)) || strchr("-._~", *p) || strchr(keep, *p))
                        buf_append(b, p, 1);
                else
                        buf_printf(b, "%%%02X", (unsigned char)*p);
        }
}

enum status buf_append_uleb128(struct buf *b, uint64_t v)
{
        uint8_t out[10];
        size_t n = 0;

        if (v < 0x80)
                return buf_append_u8(b, (uint8_t)v);
        for (; v >= 0x80; v >>= 7)
                out[n++] = (uint8_t)v | 0x80;
        out[n++] = (uint8_t)v;
        return buf_append(b, out, n);
}

enum status buf_append_sleb128(struct buf *b, int64_t v)
{
        uint8_t out[10];
        size_t n = 0;

        for (;;) {
                uint8_t byte = v & 0x7f;

                v >>= 7;
                if ((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40))) {
                        out[n++] = byte;
                        return buf_append(b, out, n);
                }
                out[n++] = byte | 0x80;
        }
}

enum status buf_printf(struct buf *b, const char *fmt, ...)
{
        va_list args;
        int need;
        char *to;

        va_start(args, fmt);
        need = vsnprintf(NULL, 0, fmt, args);
        va_end(args);
        if (need < 0)
                return b->failed = ST_BAD_DATA;
        to = buf_reserve(b, (size_t)need + 1);
        if (!to)
                return b->failed;
        va_start(args, fmt);
        vsnprintf(to, (size_t)need + 1, fmt, args);
        va_end(args);
        b->size += (size_t)need;
        return ST_OK;
}

const char *buf_cstr(struct buf *b)
{
        char *nul = buf_reserve(b, 1);

        if (!nul)
                return NULL;
        *nul = 0;
        return (const char *)b->data;
}
