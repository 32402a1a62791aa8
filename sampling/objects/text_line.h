/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_TEXT_LINE_H
#define CAIRN_SAMPLING_OBJECTS_TEXT_LINE_H

/**
 * @file
 * Cursor over text written by the kernel or other processes: lines, and
 * the fields of a line. Nothing is copied, and no NUL is needed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text_line {
        const char *at, *end;
};

/** Take the next line; the last one needs no newline. False at the end. */
static inline bool text_next_line(struct text_line *text, struct text_line *ret)
{
        const char *newline;

        if (text->at == text->end)
                return false;
        newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
        *ret = (struct text_line){ text->at, newline ? newline : text->end };
        text->at = newline ? newline + 1 : text->end;
        return true;
}

static inline void text_skip_blanks(struct text_line *l)
{
        while (l->at < l->end && (*l->at == ' ' || *l->at == '\t'))
                l->at++;
}

/** Parse an unsigned 64-bit number in base 10 or 16; false, unmoved, without a digit or on overflow. */
static inline bool text_number(struct text_line *l, unsigned base, uint64_t *ret)
{
        const char *p = l->at;
        uint64_t v = 0;

        for (; p < l->end; p++) {
                unsigned c = (unsigned char)*p, digit;

                if (c >= '0' && c <= '9')
                        digit = c - '0';
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        digit = (c | 0x20) - 'a' + 10;
                else
                        break;
                if (digit >= base)
                        break;
                if (__builtin_mul_overflow(v, (uint64_t)base, &v) || __builtin_add_overflow(v, (uint64_t)digit, &v))
                        return false;
        }
        if (p == l->at)
                return false;
        l->at = p;
        *ret = v;
        return true;
}

static inline bool text_char(struct text_line *l, char c)
{
        if (l->at == l->end || *l->at != c)
                return false;
        l->at++;
        return true;
}

/** The next field, up to a blank; false when there is none. */
static inline bool text_field(struct text_line *l, struct text_line *ret)
{
        text_skip_blanks(l);
        ret->at = l->at;
        while (l->at < l->end && *l->at != ' ' && *l->at != '\t')
                l->at++;
        ret->end = l->at;
        return ret->at != ret->end;
}

static inline size_t text_size(const struct text_line *l)
{
        return (size_t)(l->end - l->at);
}

#endif
