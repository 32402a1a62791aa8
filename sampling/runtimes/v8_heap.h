/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_V8_HEAP_H
#define CAIRN_SAMPLING_RUNTIMES_V8_HEAP_H

/**
 * @file
 * Objects in the heap of a V8 process: fields, types and strings.
 *
 * The process is a stranger that runs meanwhile, and its garbage collector moves objects: types are checked, lengths
 * are limited, and what no longer is an object of the expected type is not read.
 *
 * Addresses of objects are words of the heap: the low bits are 01. Fields are named by their offset.
 *
 * Threads: no shared state.
 * Source: V8 src/objects/objects.h, string.h, tagged-field.h.
 */
#include <stdbool.h>

#include "sampling/runtimes/python_layout.h"
#include "sampling/runtimes/v8_symbols.h"

struct v8_heap {
        struct process_memory memory;
        const struct v8_objects *objects; /* borrowed */
        uint64_t *left; /* bytes of sources, code and tables that may still be read; what is missing is read later */
};

/** Take n bytes from what may be read. False: there is not enough. */
static inline bool v8_heap_take(const struct v8_heap *h, uint64_t n)
{
        if (n > *h->left)
                return false;
        *h->left -= n;
        return true;
}

#define V8_TYPE_NONE UINT16_MAX /* of what is not an object */

/** The 8 bytes of a field; 0 when they cannot be read. */
uint64_t v8_heap_read_word(const struct v8_heap *h, uint64_t object, uint32_t offset);

/** The instance type of the object; V8_TYPE_NONE: it is none. */
uint16_t v8_heap_read_type(const struct v8_heap *h, uint64_t object);

static inline bool v8_heap_is_string(const struct v8_heap *h, uint16_t type)
{
        return type < h->objects->string_types;
}

/** The characters of a string that lies in one piece. */
struct v8_characters {
        uint64_t address; /* in the process */
        uint32_t count;
        uint8_t width; /* 1: Latin-1, 2: UTF-16 */
};

/** Find the characters of a string; false when there are none in one piece, or it is not a string. */
bool v8_heap_find_characters(const struct v8_heap *h, uint64_t string, struct v8_characters *ret);

/** Text of a string as UTF-8, cut at max characters. Owned; NULL: it cannot be read. */
char *v8_heap_read_text(const struct v8_heap *h, uint64_t string, size_t max);

/** Bytes of a ByteArray. Owned; NULL: there is none, it has more than max bytes, or they may not be read now. */
uint8_t *v8_heap_read_bytes(const struct v8_heap *h, uint64_t array, size_t max, size_t *size_ret);

#endif
