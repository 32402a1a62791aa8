/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_JSON_JSON_OUT_H
#define CAIRN_COMMON_JSON_JSON_OUT_H

/**
 * @file
 * Writes JSON into a buf, with commas and escapes.
 *
 * Keys are passed with their value; inside an array pass NULL as key. Each byte of text that is not valid UTF-8 is
 * replaced by U+FFFD, so the output always parses. Failures are recorded in the buf (buf_status()).
 * Source: RFC 8259.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/memory/buf.h"

struct json_out {
        struct buf *buf;
        bool comma;
};

void json_out_init(struct json_out *j, struct buf *buf);
void json_out_object(struct json_out *j, const char *key);
void json_out_object_end(struct json_out *j);
void json_out_array(struct json_out *j, const char *key);
void json_out_array_end(struct json_out *j);
void json_out_str(struct json_out *j, const char *key, const char *value); /* NULL writes null */
void json_out_strn(struct json_out *j, const char *key, const char *value, size_t n);
/** As json_out_strn(), for a text that was found to be plain: utf8_count_plain(value, n) is n. */
void json_out_plain(struct json_out *j, const char *key, const char *value, size_t n);
void json_out_int(struct json_out *j, const char *key, int64_t value);
void json_out_uint(struct json_out *j, const char *key, uint64_t value);
void json_out_double(struct json_out *j, const char *key, double value);
void json_out_bool(struct json_out *j, const char *key, bool value);

/** Append pre-rendered array values, which are separated by commas; n may be 0. */
void json_out_values(struct json_out *j, const void *values, size_t n);

/** Append only the quoted, escaped string. */
void json_out_quote(struct buf *buf, const char *s, size_t n);

#endif
