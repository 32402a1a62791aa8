/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/v8_heap.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/text/utf8.h"

#define MAP_INSTANCE_TYPE 12

/* Of strings, in all versions. */
#define STRING_LENGTH 12
#define STRING_CHARACTERS 16
#define CONS_FIRST 16
#define CONS_SECOND 24
#define SLICED_PARENT 16
#define SLICED_OFFSET 24
#define THIN_ACTUAL 16
#define EXTERNAL_DATA 24

/* Bits of a string's instance type. */
#define STRING_FORM 7
#define STRING_IS_LATIN1 8
#define STRING_IS_UNCACHED 16 /* of external ones: there is no pointer to the characters */

enum string_form {
        STRING_SEQUENTIAL = 0,
        STRING_CONS = 1,
        STRING_EXTERNAL = 2,
        STRING_SLICED = 3,
        STRING_THIN = 5,
};

#define BYTE_ARRAY_LENGTH 8
#define BYTE_ARRAY_DATA 16

uint64_t v8_heap_read_word(const struct v8_heap *h, uint64_t object, uint32_t offset)
{
        uint64_t ret;

        return v8_is_object(object) && h->memory.read(h->memory.ctx, object - 1 + offset, &ret, sizeof ret) ? ret : 0;
}

static uint32_t read_heap_int(const struct v8_heap *h, uint64_t object, uint32_t offset)
{
        uint32_t ret;

        return v8_is_object(object) && h->memory.read(h->memory.ctx, object - 1 + offset, &ret, sizeof ret) ? ret : 0;
}

uint16_t v8_heap_read_type(const struct v8_heap *h, uint64_t object)
{
        uint64_t map = v8_heap_read_word(h, object, 0);
        uint16_t type;

        if (!v8_is_object(map) || !h->memory.read(h->memory.ctx, map - 1 + MAP_INSTANCE_TYPE, &type, sizeof type))
                return V8_TYPE_NONE;
        return type;
}

bool v8_heap_find_characters(const struct v8_heap *h, uint64_t string, struct v8_characters *ret)
{
        uint64_t skipped = 0;
        uint32_t count = 0;
        bool is_sliced = false;

        for (int i = 0; i < LIMIT_V8_TEXT_DEPTH; i++) {
                uint16_t type = v8_heap_read_type(h, string);
                uint32_t length = read_heap_int(h, string, STRING_LENGTH);
                uint8_t width = type & STRING_IS_LATIN1 ? 1 : 2;

                if (!v8_heap_is_string(h, type))
                        return false;
                if (!is_sliced)
                        count = length;
                if (skipped + count > length)
                        return false;
                *ret = (struct v8_characters){ .count = count, .width = width };
                switch (type & STRING_FORM) {
                case STRING_SEQUENTIAL:
                        ret->address = string - 1 + STRING_CHARACTERS + skipped * width;
                        return true;
                case STRING_EXTERNAL:
                        if (type & STRING_IS_UNCACHED)
                                return false;
                        ret->address = v8_heap_read_word(h, string, EXTERNAL_DATA) + skipped * width;
                        return true;
                case STRING_SLICED:
                        skipped += v8_heap_read_word(h, string, SLICED_OFFSET) >> 32;
                        is_sliced = true;
                        string = v8_heap_read_word(h, string, SLICED_PARENT);
                        break;
                case STRING_THIN:
                        string = v8_heap_read_word(h, string, THIN_ACTUAL);
                        break;
                case STRING_CONS: /* flattened: the second part is empty */
                        if (read_heap_int(h, v8_heap_read_word(h, string, CONS_SECOND), STRING_LENGTH))
                                return false;
                        string = v8_heap_read_word(h, string, CONS_FIRST);
                        break;
                default:
                        return false;
                }
        }
        return false;
}

/* Append characters as UTF-8, and subtract their number from *left. */
static bool append_characters(const struct v8_heap *h, const struct v8_characters *c, size_t *left, struct buf *text)
{
        size_t n = c->count < *left ? c->count : *left;
        _cleanup_free_ uint8_t *raw = malloc(n * c->width + 1);
        uint32_t high = 0;

        if (!raw || !h->memory.read(h->memory.ctx, c->address, raw, n * c->width))
                return false;
        *left -= n;
        for (size_t i = 0; i < n; i++) {
                uint32_t unit = raw[i];
                bool follows = high;

                if (c->width == 2)
                        unit = raw[2 * i] | (uint32_t)raw[2 * i + 1] << 8;
                if (follows && unit >= 0xdc00 && unit < 0xe000) {
                        utf8_append_code_point(text, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
                        high = 0;
                        continue;
                }
                if (follows)
                        utf8_append_code_point(text, 0xfffd);
                high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
                if (!high)
                        utf8_append_code_point(text, unit && (unit < 0xd800 || unit >= 0xe000) ? unit : 0xfffd);
        }
        if (high)
                utf8_append_code_point(text, 0xfffd);
        return true;
}

/* Append the parts of a string from left to right. */
static bool append_string(const struct v8_heap *h, uint64_t string, size_t *left, struct buf *text)
{
        uint64_t later[LIMIT_V8_TEXT_DEPTH];
        struct v8_characters c;
        int depth = 0;

        for (int i = 0; i < 4 * LIMIT_V8_TEXT_DEPTH && *left; i++) {
                if (v8_heap_find_characters(h, string, &c)) {
                        if (!append_characters(h, &c, left, text))
                                return false;
                        if (!depth)
                                return true;
                        string = later[--depth];
                        continue;
                }
                if ((v8_heap_read_type(h, string) & STRING_FORM) != STRING_CONS || depth == LIMIT_V8_TEXT_DEPTH)
                        return false;
                later[depth++] = v8_heap_read_word(h, string, CONS_SECOND);
                string = v8_heap_read_word(h, string, CONS_FIRST);
        }
        return true;
}

char *v8_heap_read_text(const struct v8_heap *h, uint64_t string, size_t max)
{
        _cleanup_buf_ struct buf text;
        size_t left = max;

        buf_init(&text, 4 * max + 1);
        if (!v8_heap_is_string(h, v8_heap_read_type(h, string)) || !append_string(h, string, &left, &text) ||
            !buf_cstr(&text))
                return NULL;
        return strdup(buf_cstr(&text));
}

uint8_t *v8_heap_read_bytes(const struct v8_heap *h, uint64_t array, size_t max, size_t *size_ret)
{
        uint64_t size = v8_heap_read_word(h, array, BYTE_ARRAY_LENGTH);
        uint8_t *ret;

        if (!v8_is_object(array) || !v8_is_smi(size) || size >> 32 > max || !v8_heap_take(h, size >> 32))
                return NULL;
        size >>= 32;
        ret = malloc(size + 1);
        if (ret && !h->memory.read(h->memory.ctx, array - 1 + BYTE_ARRAY_DATA, ret, size)) {
                free(ret);
                return NULL;
        }
        *size_ret = size;
        return ret;
}
