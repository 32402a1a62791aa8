/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_READER_H
#define CAIRN_COMMON_READER_H

/**
 * @file
 * Bounded cursor over untrusted bytes.
 *
 * Invariant: pos <= size. A read past the end returns false, does not move the cursor and records the offset of the
 * first failure, so a chain of reads joined with || can be reported once with reader_error(). Sub-readers carry the
 * inner length and the absolute offset of their start.
 *
 * Threads: one reader belongs to one thread; the bytes may be shared.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct reader {
        const uint8_t *data;
        size_t size;
        size_t pos;
        uint64_t base;    /* offset of data[0] in the whole input, for error messages */
        uint64_t fail_at; /* offset of the first failure, valid if failed */
        bool failed;
        bool big_endian;
};

void reader_init(struct reader *r, const void *data, size_t size);

static inline size_t reader_left(const struct reader *r)
{
        return r->size - r->pos;
}

bool reader_u8(struct reader *r, uint8_t *ret) MUST_CHECK;
bool reader_u16(struct reader *r, uint16_t *ret) MUST_CHECK;
bool reader_u32(struct reader *r, uint32_t *ret) MUST_CHECK;
bool reader_u64(struct reader *r, uint64_t *ret) MUST_CHECK;

/** LEB128; more than 64 significant bits fail rather than wrap. */
bool reader_uleb128(struct reader *r, uint64_t *ret) MUST_CHECK;
bool reader_sleb128(struct reader *r, int64_t *ret) MUST_CHECK;

/** Borrow n bytes; valid as long as the reader's input. */
bool reader_bytes(struct reader *r, uint64_t n, const uint8_t **ret) MUST_CHECK;

/** Borrow a NUL-terminated string; the terminator lies inside the input. */
bool reader_cstr(struct reader *r, const char **ret) MUST_CHECK;

bool reader_skip(struct reader *r, uint64_t n) MUST_CHECK;
bool reader_seek(struct reader *r, uint64_t pos) MUST_CHECK;

/** Create a reader for the next n bytes and skip them. */
bool reader_sub(struct reader *r, uint64_t n, struct reader *ret) MUST_CHECK;

/** Report the first failure as ST_BAD_DATA: "WHAT is cut off or malformed at 0x...". */
enum status reader_error(const struct reader *r, struct error *err, const char *what);

#if defined(__clang_analyzer__) && !defined(ERROR_BODIES) /* common/error.h */
#define reader_error(r, err, what) (reader_error(r, err, what), ST_BAD_DATA)
#endif

#endif
