/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_scan.h"

#include <string.h>

#include "common/limits.h"

void json_scan_init(struct json_scan *s, const void *data, size_t n)
{
        static const uint8_t nothing;
        const uint8_t *begin = n ? data : &nothing;

        *s = (struct json_scan){ .begin = begin, .at = begin, .end = begin + n };
}

bool json_scan_fail(struct json_scan *s, const uint8_t *at, const char *what)
{
        if (!s->failed) {
                s->failed = what;
                s->fail_at = at;
        }
        return false;
}

static bool expected(struct json_scan *s, const char *what)
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

static bool take(struct json_scan *s, uint8_t c)
{
        if (s->failed || json_scan_peek(s) != c || s->at == s->end)
                return false;
        s->at++;
        return true;
}

static bool enter(struct json_scan *s, uint8_t c, const char *what)
{
        if (!take(s, c))
                return expected(s, what);
        if (s->depth == LIMIT_JSON_DEPTH)
                return expected(s, "fewer values inside of each other");
        s->depth++;
        s->first = true;
        return true;
}

bool json_scan_object(struct json_scan *s)
{
        return enter(s, '{', "an object");
}

bool json_scan_array(struct json_scan *s)
{
        return enter(s, '[', "an array");
}

/* Behind a '{', '[' or value: true when another one must follow. */
static bool another(struct json_scan *s, uint8_t close, const char *what)
{
        bool first = s->first;

        if (s->failed)
                return false;
        s->first = false;
        if (take(s, close)) {
                s->depth--;
                return false;
        }
        return first || take(s, ',') || expected(s, what);
}

bool json_scan_item(struct json_scan *s)
{
        return another(s, ']', "',' or ']'");
}

bool json_scan_key(struct json_scan *s, struct json_span *ret)
{
        return another(s, '}', "',' or '}'") && json_scan_str(s, ret) && (take(s, ':') || expected(s, "':'"));
}

static bool is_hex(uint8_t c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* At a backslash; past the escape. */
static bool skip_escape(struct json_scan *s)
{
        size_t left = (size_t)(s->end - s->at);

        if (left >= 2 && s->at[1] && strchr("\"\\/bfnrt", s->at[1])) {
                s->at += 2;
                return true;
        }
        if (left < 6 || s->at[1] != 'u')
                return expected(s, "an escape");
        for (unsigned i = 2; i < 6; i++)
                if (!is_hex(s->at[i]))
                        return expected(s, "an escape");
        s->at += 6;
        return true;
}

bool json_scan_str(struct json_scan *s, struct json_span *ret)
{
        const uint8_t *begin;
        bool escaped = false;

        if (!take(s, '"'))
                return expected(s, "text in quotes");
        begin = s->at;
        for (;; s->at++) {
                if (s->at == s->end || *s->at < ' ')
                        return expected(s, "'\"'");
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
        return expected(s, "a value");
}

static bool skip_digits(struct json_scan *s)
{
        const uint8_t *begin = s->at;

        while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
                s->at++;
        return s->at > begin || expected(s, "a digit");
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
                /* cppcheck-suppress uninitvar ; [outer, depth) was filled on the way in */
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
                expected(s, "the end");
        if (!s->failed)
                return ST_OK;
        st = error_set(err, ST_BAD_DATA, "the JSON is malformed at byte %zu: expected %s",
                       (size_t)(s->fail_at - s->begin), s->failed);
        if (err)
                err->offset = (uint64_t)(s->fail_at - s->begin);
        return st;
}
