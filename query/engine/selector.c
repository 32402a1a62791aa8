/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/selector.h"

#include <string.h>

#include "common/memory/buf.h"
#include "common/text/regex_match.h"
#include "common/text/utf8.h"
#include "common/text.h"

struct selector_parser {
        const char *start, *at;
        struct selector s;
        struct work_meter *meter;
        struct error *err;
};

static enum status report_expected(const struct selector_parser *p, const char *what)
{
        return error_at(p->err, ST_USAGE, (uint64_t)(p->at - p->start), "selector '%.60s': expected %s at byte %zu",
                        p->start, what, (size_t)(p->at - p->start));
}

static void skip_selector_blanks(struct selector_parser *p)
{
        p->at += strspn(p->at, " \t\r\n");
}

static bool is_key_char(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '-' || c == '/' || (unsigned char)c >= 0x80;
}

/* Digits of 2^bits values each. */
static bool parse_escape_digits(const char *at, int n, unsigned bits, uint32_t *ret)
{
        uint32_t v = 0;

        for (int i = 0; i < n; i++) {
                int digit = hex_digit_value(at[i]);

                if (digit < 0 || digit >> bits)
                        return false;
                v = v << bits | (uint32_t)digit;
        }
        *ret = v;
        return true;
}

/* Parse one escape after its backslash, as in Go strings: \xHH and \NNN are a byte, \uHHHH and \UHHHHHHHH a code point.
 */
static enum status parse_selector_escape(struct selector_parser *p, struct buf *b)
{
        static const char from[] = "abfnrtv\\\"'", to[] = "\a\b\f\n\r\t\v\\\"'";
        const char *simple = *p->at ? strchr(from, *p->at) : NULL, *digits = p->at + 1;
        const bool is_octal = *p->at >= '0' && *p->at <= '7', is_byte = is_octal || *p->at == 'x';
        uint32_t code;
        int n;

        if (simple) {
                buf_append_u8(b, (uint8_t)to[simple - from]);
                p->at++;
                return ST_OK;
        }
        digits -= is_octal;
        n = is_octal ? 3 : *p->at == 'x' ? 2 : *p->at == 'u' ? 4 : *p->at == 'U' ? 8 : 0;
        if (!n || !parse_escape_digits(digits, n, is_octal ? 3 : 4, &code) || code == 0 ||
            code > (is_byte ? 0xff : 0x10ffff))
                return report_expected(p, "an escape (\\\\, \\\", \\n, \\xHH, \\uHHHH)");
        if (is_byte)
                buf_append_u8(b, (uint8_t)code);
        else
                utf8_append_code_point(b, code);
        p->at = digits + n;
        return ST_OK;
}

/* Parse a quoted text; *ret is owned. */
static enum status parse_quoted(struct selector_parser *p, char **ret)
{
        _cleanup_buf_ struct buf b;
        char quote = *p->at;
        enum status st = ST_OK;

        buf_init(&b, LIMIT_SELECTOR_BYTES + 1);
        for (p->at++; *p->at != quote;) {
                if (*p->at == 0)
                        return report_expected(p, "a closing quote");
                if (*p->at == '\\' && quote != '`') {
                        p->at++;
                        st = parse_selector_escape(p, &b);
                        if (st)
                                return st;
                } else {
                        buf_append(&b, p->at++, 1);
                }
        }
        p->at++;
        if (!utf8_valid((const char *)b.data, b.size))
                return report_expected(p, "UTF-8 text");
        if (!buf_cstr(&b))
                return error_no_memory(p->err);
        *ret = (char *)b.data;
        b.data = NULL;
        return ST_OK;
}

static bool is_at_quote(const struct selector_parser *p)
{
        return *p->at == '"' || *p->at == '\'' || *p->at == '`';
}

static enum status parse_label_key(struct selector_parser *p, char **ret)
{
        size_t n = 0;

        if (is_at_quote(p))
                return parse_quoted(p, ret);
        while (is_key_char(p->at[n]))
                n++;
        if (n == 0)
                return report_expected(p, "a label name");
        *ret = strndup(p->at, n);
        p->at += n;
        return *ret ? ST_OK : error_no_memory(p->err);
}

static enum status parse_match_operator(struct selector_parser *p, enum label_match *ret)
{
        static const struct {
                const char *text;
                enum label_match op;
        } operators[] = {
                { "=~", LABEL_REGEX },
                { "!~", LABEL_NOT_REGEX },
                { "!=", LABEL_NOT_EQUAL },
                { "=", LABEL_EQUAL },
        };

        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
                if (strncmp(p->at, operators[i].text, strlen(operators[i].text)) == 0) {
                        p->at += strlen(operators[i].text);
                        *ret = operators[i].op;
                        return ST_OK;
                }
        }
        return report_expected(p, "one of = != =~ !~");
}

static enum status append_matcher(struct selector_parser *p, char **key, char **value, enum label_match op)
{
        struct label_matcher m = { .op = op };
        enum status st;

        if (strcmp(*key, "__profile_type__") == 0 && op == LABEL_EQUAL) {
                if (p->s.type && strcmp(p->s.type, *value) != 0)
                        return error_set(p->err, ST_USAGE, "the selector has two profile types, '%.60s' and '%.60s'",
                                         p->s.type, *value);
                free(p->s.type);
                p->s.type = steal_ptr(*value);
                return ST_OK;
        }
        if (p->s.count == LIMIT_SELECTOR_MATCHERS)
                return error_set(p->err, ST_USAGE, "a selector may have up to %d matchers", LIMIT_SELECTOR_MATCHERS);
        if (op == LABEL_REGEX || op == LABEL_NOT_REGEX) {
                struct regex_match *regex;

                st = regex_match_create(*value, p->meter, &regex, p->err);
                if (st)
                        return st;
                m.match = regex_match_text;
                m.context = regex;
        }
        m.key = steal_ptr(*key);
        m.value = steal_ptr(*value);
        p->s.matchers[p->s.count++] = m;
        return ST_OK;
}

/* A value without quotes ends before a blank, "=", a comma, a brace or a quote, and has no escapes. */
static enum status parse_bare_value(struct selector_parser *p, char **ret)
{
        size_t n = strcspn(p->at, " \t\r\n=,{}\"'`");

        if (!n)
                return report_expected(p, "a value");
        if (!utf8_valid(p->at, n))
                return report_expected(p, "UTF-8 text");
        *ret = strndup(p->at, n);
        p->at += n;
        return *ret ? ST_OK : error_no_memory(p->err);
}

static enum status parse_matcher(struct selector_parser *p)
{
        _cleanup_free_ char *key = NULL, *value = NULL;
        enum label_match op = LABEL_EQUAL;
        enum status st;

        st = parse_label_key(p, &key);
        skip_selector_blanks(p);
        if (!st)
                st = parse_match_operator(p, &op);
        if (st)
                return st;
        skip_selector_blanks(p);
        st = is_at_quote(p) ? parse_quoted(p, &value) : parse_bare_value(p, &value);
        return st ? st : append_matcher(p, &key, &value, op);
}

static enum status parse_matchers(struct selector_parser *p)
{
        const char *brace;
        enum status st;
        char end = 0;

        skip_selector_blanks(p);
        brace = strchr(p->at, '{');
        if (brace && strcspn(p->at, "=!\"'`") > (size_t)(brace - p->at)) {
                size_t n = (size_t)(brace - p->at);

                while (n && strchr(" \t", p->at[n - 1]))
                        n--;
                if (n && !(p->s.type = strndup(p->at, n)))
                        return error_no_memory(p->err);
                p->at = brace + 1;
                end = '}';
        }
        skip_selector_blanks(p);
        while (*p->at && *p->at != end) {
                st = parse_matcher(p);
                if (st)
                        return st;
                skip_selector_blanks(p);
                if (*p->at == ',') {
                        p->at++;
                        skip_selector_blanks(p);
                } else if (*p->at != end) {
                        return report_expected(p, end ? "',' or '}'" : "','");
                }
        }
        if (end && *p->at != end)
                return report_expected(p, "'}'");
        p->at += end != 0;
        skip_selector_blanks(p);
        return *p->at ? report_expected(p, "the end") : ST_OK;
}

enum status selector_parse(const char *text, struct work_meter *meter, struct selector *ret, struct error *err)
{
        struct selector_parser p = { .start = text ? text : "", .at = text ? text : "", .meter = meter, .err = err };
        enum status st;

        if (strlen(p.start) > LIMIT_SELECTOR_BYTES)
                return error_set(err, ST_USAGE, "a selector may have up to %d bytes", LIMIT_SELECTOR_BYTES);
        p.s.matchers = calloc(LIMIT_SELECTOR_MATCHERS, sizeof *p.s.matchers);
        if (!p.s.matchers)
                return error_no_memory(err);
        st = parse_matchers(&p);
        if (st) {
                selector_deinit(&p.s);
                return st;
        }
        *ret = p.s;
        return ST_OK;
}

void selector_deinit(struct selector *s)
{
        for (size_t i = 0; i < s->count; i++) {
                free((char *)s->matchers[i].key);
                free((char *)s->matchers[i].value);
                regex_match_destroy(s->matchers[i].context);
        }
        free(s->matchers);
        free(s->type);
        *s = (struct selector){ 0 };
}
