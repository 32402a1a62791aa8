/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_BASE64_H
#define CAIRN_COMMON_TEXT_BASE64_H

#include "common/memory/buf.h"

/**
 * Decode n characters of base64, standard or URL-safe alphabet, padded or not, and append the bytes.
 * @return false, nothing appended: another character, or an impossible length. Failures to
 *         append stay in the buf (buf_status()).
 * Source: RFC 4648, 4 and 5.
 */
bool base64_decode_append(struct buf *to, const char *text, size_t n) MUST_CHECK;

/** Append n bytes encoded in the standard alphabet, padded. */
void base64_encode_append(struct buf *to, const uint8_t *data, size_t n);

#endif
