/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/markup_line.h"

#include <string.h>

#define ELEMENT_START "{{{"
#define ELEMENT_END "}}}"
#define BRACES 3

/* ---- parts of a line ---- */

bool markup_next_field(struct markup_span *fields, struct markup_span *ret)
{
        const char *end;

        if (!fields->size)
                return false;
        *ret = (struct markup_span){ fields->data + 1, fields->size - 1 };
        end = memchr(ret->data, ':', ret->size);
        if (end)
                ret->size = (size_t)(end - ret->data);
        fields->data += ret->size + 1;
        fields->size -= ret->size + 1;
        return true;
}

/* The size of a color sequence at the start of the text; 0: it is none. */
static size_t parse_markup_color(const char *text, unsigned *ret)
{
        if (text[0] != '\033' || text[1] != '[')
                return 0;
        if ((text[2] == '0' || text[2] == '1') && text[3] == 'm') {
                *ret = (unsigned)(text[2] - '0');
                return 4;
        }
        if (text[2] == '3' && text[3] >= '0' && text[3] <= '7' && text[4] == 'm') {
                *ret = 30 + (unsigned)(text[3] - '0');
                return 5;
        }
        return 0;
}

/* The size of the element at the start of the text; 0: it is none. */
static size_t measure_markup_element(struct markup_cursor *c, const char *text)
{
        const char *end = NULL;

        if (strncmp(text, ELEMENT_START, BRACES) != 0 || c->is_end_missing)
                return 0;
        end = strstr(text + BRACES, ELEMENT_END);
        c->is_end_missing = !end;
        return end ? (size_t)(end + BRACES - text) : 0;
}

static void split_markup_element(struct markup_node *n)
{
        struct markup_span rest = { n->text.data + BRACES, n->text.size - 2 * BRACES }, field;

        n->tag = rest;
        for (size_t i = 0; i < rest.size; i++) {
                if (rest.data[i] == ':') {
                        n->tag.size = i;
                        break;
                }
        }
        rest.data += n->tag.size;
        rest.size -= n->tag.size;
        for (; markup_next_field(&rest, &field); n->field_count++)
                if (n->field_count < MARKUP_FIELDS_KEPT)
                        n->fields[n->field_count] = field;
}

bool markup_line_next(struct markup_cursor *c, struct markup_node *ret)
{
        struct markup_node n = { .text.data = c->at };
        const char *at = c->at;
        size_t size = 0;

        if (!*at)
                return false;
        for (;; at++) {
                at += strcspn(at, "{\033");
                if (!*at)
                        break;
                n.kind = *at == '{' ? MARKUP_ELEMENT : MARKUP_COLOR;
                size = *at == '{' ? measure_markup_element(c, at) : parse_markup_color(at, &n.color);
                if (size)
                        break;
        }
        if (at != c->at || !size) {
                n.kind = MARKUP_TEXT; /* what follows it is next */
                size = (size_t)(at - c->at);
        }
        n.text.size = size;
        if (n.kind == MARKUP_ELEMENT)
                split_markup_element(&n);
        c->at += size;
        *ret = n;
        return true;
}

/* ---- values ---- */

bool markup_span_equals(const struct markup_span *s, const char *text)
{
        return s->size == strlen(text) && memcmp(s->data, text, s->size) == 0;
}

static unsigned read_markup_digit(char c)
{
        if (c >= '0' && c <= '9')
                return (unsigned)(c - '0');
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                return (unsigned)((c | 0x20) - 'a') + 10;
        return 16;
}

/* The base that a prefix gives, and the size of the prefix. */
static unsigned find_number_base(const struct markup_span *s, size_t *prefix_ret)
{
        char mark = s->size > 1 && s->data[0] == '0' ? s->data[1] | 0x20 : 0;

        *prefix_ret = mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 0;
        if (mark == 'x')
                return 16;
        if (mark == 'b')
                return 2;
        return mark ? 8 : 10;
}

bool markup_parse_number(const struct markup_span *s, unsigned base, uint64_t *ret)
{
        uint64_t value = 0;
        size_t i = 0;

        if (!base)
                base = find_number_base(s, &i);
        if (i >= s->size)
                return false;
        for (; i < s->size; i++) {
                unsigned digit = read_markup_digit(s->data[i]);

                if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
                    __builtin_add_overflow(value, digit, &value))
                        return false;
        }
        *ret = value;
        return true;
}

bool markup_parse_address(const struct markup_span *s, uint64_t *ret)
{
        const struct markup_span digits = { s->data + 2, s->size - 2 };

        if (s->size > 2 && s->data[0] == '0' && s->data[1] == 'x')
                return markup_parse_number(&digits, 16, ret);
        return markup_parse_number(s, 10, ret) && *ret == 0;
}
