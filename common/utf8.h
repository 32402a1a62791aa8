/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_UTF8_H
#define CAIRN_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

/** Length of the valid UTF-8 sequence that s begins with (1 to 4), 0 when it begins with none. Source: RFC 3629. */
size_t utf8_sequence(const char *s, size_t n);

/** Whether all n bytes are valid UTF-8. */
bool utf8_valid(const char *s, size_t n);

/** text, or where it is not valid UTF-8 a copy in scratch with U+FFFD for each bad byte; "" for want of room. */
const char *utf8_clean(const char *text, struct buf *scratch);

/** Whether s begins with a control character of the C1 set: two bytes in UTF-8, 0xc2 and 0x80 to 0x9f. */
bool utf8_is_c1(const char *s, size_t n);

/** Append text for a terminal: control characters and bad bytes as \xNN. */
void utf8_put_escaped(struct buf *ret, const char *text);

#endif
