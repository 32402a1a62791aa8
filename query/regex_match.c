/* SPDX-License-Identifier: Apache-2.0 */
#include "query/regex_match.h"

#include <limits.h>
#include <regex.h>
#include <string.h>

#include "common/buf.h"
#include "query/selector.h"

#define MAX_REPEAT 100

struct regex_match {
        regex_t regex;
};

/* glibc expands counted repetitions when it compiles, and nested ones multiply: one, and a small one. */
static enum status check_repeat(const char *at, unsigned *count, struct error *err)
{
        unsigned n = 0;

        if (++*count > 1)
                return error_set(err, ST_USAGE, "a regular expression may have one counted repetition {n}, not more");
        for (at++; *at && *at != '}'; at++) {
                if (*at == ',') {
                        n = 0;
                        continue;
                }
                if (*at < '0' || *at > '9')
                        return error_set(err, ST_USAGE, "a brace in a regular expression must be escaped or {n,m}");
                n = n * 10 + (unsigned)(*at - '0');
                if (n > MAX_REPEAT)
                        return error_set(err, ST_USAGE, "a regular expression may repeat up to %d times", MAX_REPEAT);
        }
        return *at ? ST_OK : error_set(err, ST_USAGE, "a brace in a regular expression is not closed");
}

/* What is not POSIX but usual is rewritten: \d and (?:. */
static enum status translate(const char *pattern, struct buf *out, struct error *err)
{
        unsigned repeats = 0;
        bool in_class = false;
        enum status st;

        buf_append_str(out, "^(");
        for (const char *p = pattern; *p; p++) {
                if (*p == '\\' && p[1]) {
                        p++;
                        if (*p >= '0' && *p <= '9')
                                return error_set(err, ST_USAGE, "a regular expression may have no back references");
                        if (*p == 'd')
                                buf_append_str(out, in_class ? "0-9" : "[0-9]");
                        else if (in_class)
                                buf_append(out, p, 1); /* in a POSIX class the backslash is no escape */
                        else
                                buf_append(out, p - 1, 2);
                        continue;
                }
                if (in_class) {
                        in_class = *p != ']';
                } else if (*p == '[') {
                        in_class = true;
                        buf_append(out, p, 1);
                        if (p[1] == '^')
                                buf_append(out, ++p, 1);
                        if (p[1] == ']') /* a bracket that stands first is a member */
                                buf_append(out, ++p, 1);
                        continue;
                } else if (*p == '{') {
                        st = check_repeat(p, &repeats, err);
                        if (st)
                                return st;
                } else if (strncmp(p, "(?:", 3) == 0) {
                        buf_append_u8(out, '(');
                        p += 2;
                        continue;
                }
                buf_append(out, p, 1);
        }
        buf_append_str(out, ")$");
        return buf_status(out, err, "regular expression");
}

enum status regex_match_create(const char *pattern, struct regex_match **ret, struct error *err)
{
        _cleanup_buf_ struct buf posix;
        _cleanup_free_ struct regex_match *m = NULL;
        enum status st;
        int rc;

        if (strlen(pattern) > LIMIT_REGEX_BYTES)
                return error_set(err, ST_USAGE, "a regular expression may have up to %d bytes", LIMIT_REGEX_BYTES);
        buf_init(&posix, 8 * LIMIT_REGEX_BYTES);
        st = translate(pattern, &posix, err);
        if (st)
                return st;
        m = calloc(1, sizeof *m);
        if (!m || !buf_cstr(&posix))
                return error_no_memory(err);
        rc = regcomp(&m->regex, (const char *)posix.data, REG_EXTENDED | REG_NOSUB);
        if (rc) {
                char text[128];

                regerror(rc, &m->regex, text, sizeof text);
                return error_set(err, ST_USAGE, "bad regular expression '%.80s': %s", pattern, text);
        }
        *ret = steal_ptr(m);
        return ST_OK;
}

void regex_match_destroy(struct regex_match *m)
{
        if (!m)
                return;
        regfree(&m->regex);
        free(m);
}

bool regex_match_text(void *context, const char *text, size_t n)
{
        struct regex_match *m = context;
        regmatch_t range = { .rm_so = 0, .rm_eo = (regoff_t)n };

        return n <= INT_MAX && regexec(&m->regex, text, 1, &range, REG_STARTEND) == 0;
}
