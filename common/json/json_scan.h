/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_JSON_JSON_SCAN_H
#define CAIRN_COMMON_JSON_JSON_SCAN_H

/**
 * @file
 * Pull scanner for JSON text: the caller requests the type it expects next; nothing is allocated or copied. For request
 * bodies with millions of values, of which a tree would need ten times the memory.
 *
 *     json_scan_init(&s, data, n);
 *     json_scan_object(&s);
 *     while (json_scan_key(&s, &key))
 *             if (json_span_is(&key, "stacks")) ...
 *             else json_scan_skip(&s);
 *     return json_scan_end(&s, err);
 *
 * The first failure is sticky: every later call returns false, so loops end and one test at the end is enough. Nesting
 * is bounded (LIMIT_JSON_DEPTH); nothing recurses.
 * Source: RFC 8259.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/error.h"

struct json_scan {
        const uint8_t *begin, *at, *end;
        unsigned depth;
        bool first;         /* right after '{' or '[' */
        const char *failed; /* the expected token; NULL: no failure yet */
        const uint8_t *fail_at;
};

/** Text of a string as in the input, escapes not resolved. Borrowed from the input. */
struct json_span {
        const char *text;
        size_t size;
        bool escaped; /* contains a backslash */
};

void json_scan_init(struct json_scan *s, const void *data, size_t n);

/** Enter an object or an array; false if the next value has another type. */
bool json_scan_object(struct json_scan *s);
bool json_scan_array(struct json_scan *s);

/** The next member's key, followed by its value; false at the end of the object, which is then left. */
bool json_scan_key(struct json_scan *s, struct json_span *ret) MUST_CHECK;
/** Whether an item follows; false at the end of the array, which is then left. */
bool json_scan_item(struct json_scan *s) MUST_CHECK;

bool json_scan_str(struct json_scan *s, struct json_span *ret);
bool json_scan_bool(struct json_scan *s, bool *ret);
/** A non-negative integer; a sign or a fraction is a failure. */
bool json_scan_uint(struct json_scan *s, uint64_t *ret);
/** The same with a sign allowed. */
bool json_scan_int(struct json_scan *s, int64_t *ret);
/** Skip a value of any type. */
bool json_scan_skip(struct json_scan *s);

/** The first byte of the next value; 0 at the end of the input. */
uint8_t json_scan_peek(struct json_scan *s);

bool json_span_is(const struct json_span *span, const char *text);

/**
 * Append the decoded text of a string as UTF-8: escapes are resolved, an unpaired surrogate becomes U+FFFD, all other
 * bytes are copied unchanged. The result is never longer than the span. Failures are recorded in the buf
 * (buf_status()).
 * Source: RFC 8259, 7.
 */
void json_span_unescape(const struct json_span *span, struct buf *to);

/** Record a semantic failure at a value: "expected WHAT". Always returns false. */
bool json_scan_fail(struct json_scan *s, const uint8_t *at, const char *what);

/** ST_OK when the input consists of exactly one value; else ST_BAD_DATA with the byte offset. */
enum status json_scan_end(struct json_scan *s, struct error *err) MUST_CHECK;

#if defined(__clang_analyzer__) && !defined(ERROR_BODIES) /* common/error.h */
#define json_scan_fail(s, at, what) (json_scan_fail(s, at, what), false)
#endif

#endif
