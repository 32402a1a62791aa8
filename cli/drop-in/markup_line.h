/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_MARKUP_LINE_H
#define CAIRN_CLI_DROP_IN_MARKUP_LINE_H

/**
 * @file
 * One line of a log in LLVM's symbolizer markup: text, elements such as {{{pc:0x1234:ra}}}, and sequences of a
 * terminal that change colors. An element ends in its line; the first lines of one that does not are text.
 *
 * Threads: any number, each with its own cursor.
 * Source: LLVM manual, "Symbolizer Markup Format".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKUP_FIELDS_KEPT 6 /* no element has more */

struct markup_span { /* borrowed from the line */
        const char *data;
        size_t size;
};

enum markup_kind { MARKUP_TEXT, MARKUP_COLOR, MARKUP_ELEMENT };

struct markup_node {
        enum markup_kind kind;
        struct markup_span text; /* all of it */
        unsigned color;          /* the number in the sequence: 0 reset, 1 bold, 30 to 37 */
        struct markup_span tag;  /* "" in {{{}}} and {{{:field}}} */
        struct markup_span fields[MARKUP_FIELDS_KEPT];
        size_t field_count; /* also of those that are not kept */
};

struct markup_cursor {
        const char *at; /* the rest of the line, NUL-terminated; set by the caller */
        bool is_end_missing;
};

/** The next part of the line; false at its end. */
bool markup_line_next(struct markup_cursor *c, struct markup_node *ret);

/**
 * Cut the first field off.
 * @param fields  the rest, starting with ':'; changed.
 * @return false if there is none.
 */
bool markup_next_field(struct markup_span *fields, struct markup_span *ret);

bool markup_span_equals(const struct markup_span *s, const char *text);

/** All of an unsigned number. @param base  10, 16, or 0: the prefixes 0x, 0b, 0o and 0 are known */
bool markup_parse_number(const struct markup_span *s, unsigned base, uint64_t *ret);

/** "0x" and hexadecimal digits, or zeros. */
bool markup_parse_address(const struct markup_span *s, uint64_t *ret);

#endif
