/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_CURSOR_H
#define CAIRN_DWARF_CURSOR_H

/**
 * @file
 * The bounded cursor of common/reader.h for a reader of hundreds of millions of
 * small values: everything is inline and returns the value itself.
 *
 * Invariant: pos <= end. A read that would pass the end gives 0, moves the
 * cursor to its end and sets failed, which stays; so every later read fails
 * too, loops end, and one test after many reads is enough.
 *
 * Threads: one cursor belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dwarf_cursor {
        const uint8_t *pos, *end;
        bool failed;
        bool swap; /* the byte order is not this machine's */
};

static inline size_t dwarf_left(const struct dwarf_cursor *c)
{
        return (size_t)(c->end - c->pos);
}

static inline uint64_t dwarf_fail(struct dwarf_cursor *c)
{
        c->pos = c->end;
        c->failed = true;
        return 0;
}

static inline void dwarf_skip(struct dwarf_cursor *c, uint64_t n)
{
        if (n > dwarf_left(c))
                dwarf_fail(c);
        else
                c->pos += n;
}

static inline uint8_t dwarf_u8(struct dwarf_cursor *c)
{
        if (c->pos == c->end)
                return (uint8_t)dwarf_fail(c);
        return *c->pos++;
}

static inline uint16_t dwarf_u16(struct dwarf_cursor *c)
{
        uint16_t v;

        if (dwarf_left(c) < sizeof v)
                return (uint16_t)dwarf_fail(c);
        memcpy(&v, c->pos, sizeof v);
        c->pos += sizeof v;
        return c->swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t dwarf_u32(struct dwarf_cursor *c)
{
        uint32_t v;

        if (dwarf_left(c) < sizeof v)
                return (uint32_t)dwarf_fail(c);
        memcpy(&v, c->pos, sizeof v);
        c->pos += sizeof v;
        return c->swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t dwarf_u64(struct dwarf_cursor *c)
{
        uint64_t v;

        if (dwarf_left(c) < sizeof v)
                return dwarf_fail(c);
        memcpy(&v, c->pos, sizeof v);
        c->pos += sizeof v;
        return c->swap ? __builtin_bswap64(v) : v;
}

static inline uint32_t dwarf_u24(struct dwarf_cursor *c)
{
        uint32_t a, b, d;

        if (dwarf_left(c) < 3)
                return (uint32_t)dwarf_fail(c);
        a = c->pos[0], b = c->pos[1], d = c->pos[2];
        c->pos += 3;
        return c->swap == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? a | b << 8 | d << 16 : a << 16 | b << 8 | d;
}

/** An unsigned value of 1, 2, 3, 4 or 8 bytes; another size fails. */
static inline uint64_t dwarf_uint(struct dwarf_cursor *c, unsigned bytes)
{
        switch (bytes) {
        case 1:
                return dwarf_u8(c);
        case 2:
                return dwarf_u16(c);
        case 3:
                return dwarf_u24(c);
        case 4:
                return dwarf_u32(c);
        case 8:
                return dwarf_u64(c);
        default:
                return dwarf_fail(c);
        }
}

/** For values of more than one byte; bits past the 64th fail rather than wrap, padding with zero bits is allowed. */
uint64_t dwarf_uleb_long(struct dwarf_cursor *c);
int64_t dwarf_sleb_long(struct dwarf_cursor *c);

static inline uint64_t dwarf_uleb(struct dwarf_cursor *c)
{
        if (c->pos != c->end && *c->pos < 0x80)
                return *c->pos++;
        return dwarf_uleb_long(c);
}

static inline int64_t dwarf_sleb(struct dwarf_cursor *c)
{
        if (c->pos != c->end && *c->pos < 0x80)
                return (int64_t)((uint64_t)*c->pos++ << 57) >> 57;
        return dwarf_sleb_long(c);
}

static inline void dwarf_skip_leb(struct dwarf_cursor *c)
{
        while (c->pos != c->end)
                if (*c->pos++ < 0x80)
                        return;
        dwarf_fail(c);
}

/** A string that ends inside the input; "" on failure. */
static inline const char *dwarf_cstr(struct dwarf_cursor *c)
{
        const uint8_t *start = c->pos, *nul = start == c->end ? NULL : memchr(start, 0, dwarf_left(c));

        if (!nul) {
                dwarf_fail(c);
                return "";
        }
        c->pos = nul + 1;
        return (const char *)start;
}

/** n bytes, borrowed; NULL on failure. */
static inline const uint8_t *dwarf_bytes(struct dwarf_cursor *c, uint64_t n)
{
        const uint8_t *start = c->pos;

        if (n > dwarf_left(c)) {
                dwarf_fail(c);
                return NULL;
        }
        c->pos += n;
        return start;
}

/** The length at the start of a unit: 4 bytes, or 12 of the 64-bit format. Sets *offset_size to 4 or 8. */
static inline uint64_t dwarf_initial_length(struct dwarf_cursor *c, uint8_t *offset_size)
{
        uint32_t length = dwarf_u32(c);

        *offset_size = 4;
        if (length < 0xfffffff0)
                return length;
        *offset_size = 8;
        return length == 0xffffffff ? dwarf_u64(c) : dwarf_fail(c);
}

#endif
