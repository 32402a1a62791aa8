/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state is a position, the depth, and whether an element is the first of its container. The kinds of the open
 * containers are not stored: the caller has entered them, and leaves an object by json_scan_key() and an array by
 * json_scan_item(). Only json_scan_skip(), which has no caller that knows the structure, keeps one flag per depth, on
 * its stack.
 *
 * Failures: json_scan_fail() keeps the first one as its position and the token that was expected; after it, every
 * function that reads a value returns false.
 *
 * The escapes of a string are checked when it is scanned, so json_span_unescape() relies on their form.
 *
 * Order: elements of containers, strings, bools and numbers, skipping, the end, decoding of a string.
 */
#define ERROR_BODIES
#include "common/json/json_scan.h"

#include <assert.h>
#include <string.h>

#include "common/limits.h"
#include "common/text/utf8.h"

void json_scan_init(struct json_scan *s, const void *data, size_t n)
{
        static const uint8_t nothing;
        const uint8_t *begin = n ? data : &nothing;

        assert(data || !n);
        *s = (struct json_scan){ .begin = begin, .at = begin, .end = begin + n };
        if (n >= 3 && memcmp(begin, "\xef\xbb\xbf", 3) == 0) /* a byte order mark: RFC 8259, 8.1 */
                s->at += 3;
}

bool json_scan_fail(struct json_scan *s, const uint8_t *at, const char *what)
{
        if (!s->failed) {
                s->failed = what;
                s->fail_at = at;
        }
        return false;
}

static bool fail_expected(struct json_scan *s, const char *what)
{
        return json_scan_fail(s, s->at, what);
}

static void skip_space(struct json_scan *s)
{
        while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
                s->at++;
}

uint8_t json_scan_peek(struct json_scan *s)
{
        skip_space(s);
        return s->at < s->end ? *s->at : 0;
}

static bool take_byte(struct json_scan *s, uint8_t c)
{
        if (s->failed || json_scan_peek(s) != c || s->at == s->end)
                return false;
        s->at++;
        return true;
}

static bool enter_scope(struct json_scan *s, uint8_t c, const char *what)
{
        if (!take_byte(s, c))
                return fail_expected(s, what);
        if (s->depth == LIMIT_JSON_DEPTH)
                return fail_expected(s, "fewer nested values");
        s->depth++;
        s->first = true;
        return true;
}

bool json_scan_object(struct json_scan *s)
{
        return enter_scope(s, '{', "an object");
}

bool json_scan_array(struct json_scan *s)
{
        return enter_scope(s, '[', "an array");
}

/* After '{', '[' or a value: true if another element follows. */
static bool next_scan_element(struct json_scan *s, uint8_t close, const char *what)
{
        bool first = s->first;

        if (s->failed)
                return false;
        s->first = false;
        if (take_byte(s, close)) {
                s->depth--;
                return false;
        }
        return first || take_byte(s, ',') || fail_expected(s, what);
}

bool json_scan_item(struct json_scan *s)
{
        return next_scan_element(s, ']', "',' or ']'");
}

bool json_scan_key(struct json_scan *s, struct json_span *ret)
{
        return next_scan_element(s, '}', "',' or '}'") && json_scan_str(s, ret) &&
               (take_byte(s, ':') || fail_expected(s, "':'"));
}

static bool is_hex_digit_byte(uint8_t c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Skip an escape, starting at its backslash. */
static bool skip_escape(struct json_scan *s)
{
        size_t left = (size_t)(s->end - s->at);

        if (left >= 2 && s->at[1] && strchr("\"\\/bfnrt", s->at[1])) {
                s->at += 2;
                return true;
        }
        if (left < 6 || s->at[1] != 'u')
                return fail_expected(s, "an escape");
        for (unsigned i = 2; i < 6; i++)
                if (!is_hex_digit_byte(s->at[i]))
                        return fail_expected(s, "an escape");
        s->at += 6;
        return true;
}

bool json_scan_str(struct json_scan *s, struct json_span *ret)
{
        const uint8_t *begin;
        bool escaped = false;

        if (!take_byte(s, '"'))
                return fail_expected(s, "text in quotes");
        begin = s->at;
        for (;; s->at++) {
                if (s->at == s->end || *s->at < ' ')
                        return fail_expected(s, "'\"'");
                if (*s->at == '"')
                        break;
                if (*s->at != '\\')
                        continue;
                escaped = true;
                if (!skip_escape(s))
                        return false;
                s->at--;
        }
        *ret = (struct json_span){ (const char *)begin, (size_t)(s->at - begin), escaped };
        s->at++;
        return true;
}

bool json_scan_bool(struct json_scan *s, bool *ret)
{
        bool value = json_scan_peek(s) == 't';
        const char *word = value ? "true" : "false";
        size_t n = strlen(word);

        if (s->failed || (size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
                return json_scan_fail(s, s->at, "true or false");
        s->at += n;
        *ret = value;
        return true;
}

bool json_scan_uint(struct json_scan *s, uint64_t *ret)
{
        const uint8_t *begin;
        uint64_t v = 0;

        json_scan_peek(s);
        begin = s->at;
        for (; !s->failed && s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->at - '0', &v))
                        return json_scan_fail(s, begin, "a number below 2^64");
        if (s->at == begin || (s->at < s->end && strchr(".eE", *s->at)) || (*begin == '0' && s->at - begin > 1))
                return json_scan_fail(s, begin, "a whole number");
        *ret = v;
        return true;
}

bool json_scan_int(struct json_scan *s, int64_t *ret)
{
        const uint8_t *begin;
        bool minus = json_scan_peek(s) == '-';
        uint64_t v;

        begin = s->at;
        s->at += minus;
        if (!json_scan_uint(s, &v))
                return false;
        if (v > (uint64_t)INT64_MAX + minus)
                return json_scan_fail(s, begin, "a number below 2^63");
        *ret = (int64_t)(minus ? 0 - v : v);
        return true;
}

static bool skip_word(struct json_scan *s)
{
        static const char *const words[] = { "true", "false", "null" };

        for (unsigned i = 0; i < 3; i++) {
                size_t n = strlen(words[i]);

                if ((size_t)(s->end - s->at) >= n && memcmp(s->at, words[i], n) == 0) {
                        s->at += n;
                        return true;
                }
        }
        return fail_expected(s, "a value");
}

static bool skip_digits(struct json_scan *s)
{
        const uint8_t *begin = s->at;

        while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
                s->at++;
        return s->at > begin || fail_expected(s, "a digit");
}

static bool skip_number(struct json_scan *s)
{
        const uint8_t *begin;

        if (s->at < s->end && *s->at == '-')
                s->at++;
        begin = s->at;
        if (!skip_digits(s))
                return false;
        if (*begin == '0' && s->at - begin > 1)
                return json_scan_fail(s, begin, "a number without leading zeros");
        if (s->at < s->end && *s->at == '.') {
                s->at++;
                if (!skip_digits(s))
                        return false;
        }
        if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
                s->at++;
                if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
                        s->at++;
                return skip_digits(s);
        }
        return true;
}

static bool skip_scalar(struct json_scan *s)
{
        struct json_span span;
        uint8_t c = json_scan_peek(s);

        if (c == '"')
                return json_scan_str(s, &span);
        return c == '-' || (c >= '0' && c <= '9') ? skip_number(s) : skip_word(s);
}

bool json_scan_skip(struct json_scan *s)
{
        bool is_object[LIMIT_JSON_DEPTH];
        unsigned outer = s->depth;
        struct json_span key;

        do {
                uint8_t c = json_scan_peek(s);

                if (c == '{' || c == '[') {
                        if (!(c == '{' ? json_scan_object(s) : json_scan_array(s)))
                                return false;
                        is_object[s->depth - 1] = c == '{';
                } else if (s->failed || !skip_scalar(s)) {
                        return false;
                }
                /* cppcheck-suppress uninitvar ; [outer, depth) was set when descending */
                while (s->depth > outer && !(is_object[s->depth - 1] ? json_scan_key(s, &key) : json_scan_item(s)))
                        if (s->failed)
                                return false;
        } while (s->depth > outer);
        return true;
}

bool json_span_is(const struct json_span *span, const char *text)
{
        return span->size == strlen(text) && memcmp(span->text, text, span->size) == 0;
}

enum status json_scan_end(struct json_scan *s, struct error *err)
{
        enum status st;

        if (!s->failed && (s->depth || json_scan_peek(s) || s->at < s->end))
                fail_expected(s, "the end");
        if (!s->failed)
                return ST_OK;
        st = error_set(err, ST_BAD_DATA, "the JSON is malformed at byte %zu: expected %s",
                       (size_t)(s->fail_at - s->begin), s->failed);
        if (err)
                err->offset = (uint64_t)(s->fail_at - s->begin);
        return st;
}

/* ---- the text of a string ---- */

#define REPLACEMENT 0xfffd

/* Four hexadecimal digits, already validated by the scanner. */
static uint32_t decode_unicode_escape(const char *digits)
{
        uint32_t v = 0;

        for (unsigned i = 0; i < 4; i++) {
                unsigned c = (unsigned char)digits[i];

                v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        return v;
}

/* Decode an escape starting at its 'u'. Returns its end. */
static const char *append_unicode(const char *p, const char *end, struct buf *to)
{
        uint32_t c = decode_unicode_escape(p + 1);

        p += 5;
        if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                uint32_t low = decode_unicode_escape(p + 2);

                if (low >= 0xdc00 && low < 0xe000) {
                        utf8_append_code_point(to, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
                        return p + 6;
                }
        }
        utf8_append_code_point(to, c >= 0xd800 && c < 0xe000 ? REPLACEMENT : c);
        return p;
}

static char decode_short_escape(char c)
{
        static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
        const char *at = strchr(names, c);

        return at ? values[at - names] : c;
}

void json_span_unescape(const struct json_span *span, struct buf *to)
{
        const char *p = span->text, *end = p + span->size;

        while (p < end) {
                const char *stop = span->escaped ? memchr(p, '\\', (size_t)(end - p)) : NULL;

                if (!stop)
                        stop = end;
                buf_append(to, p, (size_t)(stop - p));
                if (stop == end)
                        return;
                p = stop + 1;
                if (*p == 'u')
                        p = append_unicode(p, end, to);
                else
                        buf_append_u8(to, (uint8_t)decode_short_escape(*p++));
        }
}
