/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_JSON_TEXT_H
#define CAIRN_COMMON_JSON_TEXT_H

/**
 * @file
 * The text that a JSON string stands for.
 * Source: RFC 8259, 7.
 */
#include "common/buf.h"
#include "common/json_scan.h"

/**
 * Append the text of a span as UTF-8, escapes resolved; never more bytes than
 * the span has. Half a surrogate pair becomes U+FFFD; other bytes stay as they
 * are. Failures stay in the buf (buf_status()).
 */
void json_span_append(const struct json_span *span, struct buf *to);

#endif
