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

#endif
