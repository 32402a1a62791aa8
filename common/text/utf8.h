/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_UTF8_H
#define CAIRN_COMMON_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"

/** Length of the valid UTF-8 sequence at the start of s (1 to 4); 0 if there is none. Source: RFC 3629. */
size_t utf8_sequence_length(const char *s, size_t n);

/** Whether all n bytes are valid UTF-8. */
bool utf8_valid(const char *s, size_t n);

/** text if it is valid UTF-8, else a copy in scratch with U+FFFD for each invalid byte; "" when out of memory. */
const char *utf8_replace_invalid(const char *text, struct buf *scratch);

/** Append a code point, at most 0x10ffff, as UTF-8. */
void utf8_append_code_point(struct buf *to, uint32_t c);

/** Whether s begins with a control character of the C1 set: two bytes in UTF-8, 0xc2 and 0x80 to 0x9f. */
bool utf8_is_c1(const char *s, size_t n);

/**
 * Append untrusted text for a terminal or a log: control characters (C0, DEL, C1) and bytes that are not UTF-8 are
 * escaped as \xNN, characters that reorder or break the line (bidirectional controls, U+2028, U+2029) as \u{NNNN}.
 * Everything else is unchanged, backslashes too: names without such characters are unchanged.
 */
void utf8_append_escaped(struct buf *ret, const char *text);
void utf8_append_escaped_n(struct buf *ret, const char *text, size_t n);

/** A line of source: tabs become blanks up to the next multiple of 8 columns, other controls are escaped. */
void utf8_append_source_line(struct buf *ret, const char *text, size_t n);

/**
 * Number of leading bytes that are plain: printable ASCII except '"' and '\\'. Neither utf8_append_escaped() nor JSON
 * escapes a plain text.
 */
size_t utf8_count_plain(const char *s, size_t n);

/** The same escapes in a buffer of the caller, truncated if it is full. Returns out. */
const char *utf8_printable(const char *text, char *out, size_t size);
/** An untrusted text as an argument of printf(): valid until the end of the block. */
#define PRINTABLE(text) utf8_printable((text), (char[1024]){ 0 }, 1024)

/** Put '?' in place of each byte that utf8_append_escaped() would escape. */
void utf8_mask_controls(char *text);

/** The code point at the start of s, with its size, if it reorders or breaks lines; otherwise 0. */
uint32_t utf8_reordering_code(const char *s, size_t n, size_t *size_ret);

#endif
