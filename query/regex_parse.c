/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/utf8.h"
#include "query/regex_program.h"

#define MAX_DEPTH 64
#define LAST_CODE_POINT 0x10ffff

struct parser {
        const char *start, *at;
        struct regex_tree *t;
        struct error *err;
        unsigned depth;
};

static enum status bad(const struct parser *p, const char *what)
{
        return error_set(p->err, ST_USAGE, "bad regular expression '%.60s': %s at byte %zu", p->start, what,
                         (size_t)(p->at - p->start));
}

/* The arrays hold what LIMIT_REGEX_BYTES can ask for; a test all the same, since a slip here would write past them.
 */
static enum status add_node(struct parser *p, struct regex_node node, uint32_t *ret)
{
        if (p->t->node_count == sizeof p->t->nodes / sizeof *p->t->nodes)
                return bad(p, "too many parts");
        *ret = p->t->node_count;
        p->t->nodes[p->t->node_count++] = node;
        return ST_OK;
}

static enum status add_range(struct parser *p, uint32_t low, uint32_t high)
{
        if (p->t->range_count == sizeof p->t->ranges / sizeof *p->t->ranges)
                return bad(p, "too many ranges");
        p->t->ranges[p->t->range_count++] = (struct regex_range){ low, high };
        return ST_OK;
}

static enum status take_code_point(struct parser *p, uint32_t *ret)
{
        const unsigned char *u = (const unsigned char *)p->at;
        size_t n = utf8_sequence(p->at, strlen(p->at));

        if (n == 0)
                return bad(p, "no UTF-8 text");
        *ret = n == 1   ? u[0]
               : n == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
               : n == 3 ? (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu)
                        : (u[0] & 0x07u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
        p->at += n;
        return ST_OK;
}

/* The ranges of \d, \w, \s; of their opposites, the gaps between them. */
static enum status add_class(struct parser *p, char name)
{
        static const struct regex_range digit[] = { { '0', '9' } };
        static const struct regex_range word[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };
        static const struct regex_range space[] = { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } };
        const struct regex_range *ranges = (name | 0x20) == 'd' ? digit : (name | 0x20) == 'w' ? word : space;
        size_t count = ranges == digit ? 1 : ranges == word ? 4 : 3;
        uint32_t from = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count; i++) {
                if (name & 0x20) {
                        st = add_range(p, ranges[i].low, ranges[i].high);
                        continue;
                }
                st = add_range(p, from, ranges[i].low - 1);
                from = ranges[i].high + 1;
        }
        return st || (name & 0x20) ? st : add_range(p, from, LAST_CODE_POINT);
}

static int hex_digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* What follows a backslash: a class (*is_class) whose ranges are added, or one code point. */
static enum status take_escape(struct parser *p, bool *is_class, uint32_t *ret)
{
        char c = *p->at;

        *is_class = c && strchr("dwsDWS", c);
        if (*is_class) {
                p->at++;
                return add_class(p, c);
        }
        if (c == 'n' || c == 'r' || c == 't') {
                p->at++;
                *ret = c == 'n' ? '\n' : c == 'r' ? '\r' : '\t';
                return ST_OK;
        }
        if (c == 'x' && hex_digit(p->at[1]) >= 0 && hex_digit(p->at[2]) >= 0) {
                *ret = (uint32_t)(hex_digit(p->at[1]) << 4 | hex_digit(p->at[2]));
                p->at += 3;
                return ST_OK;
        }
        if (c == 0 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
                return bad(p, "an escape that does not exist (there are no back references)");
        return take_code_point(p, ret);
}

/* One member of a class up to the '-' of a range. */
static enum status take_member(struct parser *p, bool *is_class, uint32_t *ret)
{
        *is_class = false;
        if (*p->at == 0)
                return bad(p, "a class that is not closed");
        if (*p->at == '\\') {
                p->at++;
                return take_escape(p, is_class, ret);
        }
        return take_code_point(p, ret);
}

static enum status take_class(struct parser *p, struct regex_set *set)
{
        bool first = true;

        if (*p->at == '^') {
                set->negated = true;
                p->at++;
        }
        for (; first || *p->at != ']'; first = false) {
                uint32_t low = 0, high;
                bool is_class;
                enum status st = take_member(p, &is_class, &low);

                if (!st && is_class)
                        continue;
                high = low;
                if (!st && p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
                        p->at++;
                        st = take_member(p, &is_class, &high);
                        if (!st && (is_class || high < low))
                                st = bad(p, "a range whose end is before its start");
                }
                if (!st)
                        st = add_range(p, low, high);
                if (st)
                        return st;
        }
        p->at++;
        return ST_OK;
}

static enum status take_set(struct parser *p, uint32_t *ret)
{
        struct regex_set set = { .first = p->t->range_count };
        uint32_t code;
        bool is_class;
        enum status st;

        switch (*p->at) {
        case '[':
                p->at++;
                st = take_class(p, &set);
                break;
        case '.':
                p->at++;
                st = add_range(p, 0, LAST_CODE_POINT);
                break;
        case '\\':
                p->at++;
                st = take_escape(p, &is_class, &code);
                if (!st && !is_class)
                        st = add_range(p, code, code);
                break;
        default:
                st = take_code_point(p, &code);
                if (!st)
                        st = add_range(p, code, code);
        }
        if (st)
                return st;
        if (p->t->set_count == sizeof p->t->sets / sizeof *p->t->sets)
                return bad(p, "too many parts");
        set.count = p->t->range_count - set.first;
        p->t->sets[p->t->set_count] = set;
        return add_node(p, (struct regex_node){ .kind = NODE_SET, .left = p->t->set_count++ }, ret);
}

static enum status parse_alternatives(struct parser *p, uint32_t *ret);

static enum status parse_atom(struct parser *p, uint32_t *ret)
{
        enum status st;

        switch (*p->at) {
        case '(':
                if (++p->depth > MAX_DEPTH)
                        return bad(p, "groups nested too deeply");
                p->at++;
                if (strncmp(p->at, "?:", 2) == 0)
                        p->at += 2;
                else if (*p->at == '?')
                        return bad(p, "a group that is not supported");
                st = parse_alternatives(p, ret);
                if (!st && *p->at != ')')
                        st = bad(p, "a group that is not closed");
                p->at += !st;
                p->depth--;
                return st;
        case '^':
                p->at++;
                return add_node(p, (struct regex_node){ .kind = NODE_BEGIN }, ret);
        case '$':
                p->at++;
                return add_node(p, (struct regex_node){ .kind = NODE_END }, ret);
        case '*':
        case '+':
        case '?':
        case '{':
                return bad(p, "nothing to repeat");
        default:
                return take_set(p, ret);
        }
}

static bool take_number(struct parser *p, uint32_t *ret)
{
        uint32_t n = 0;

        if (*p->at < '0' || *p->at > '9')
                return false;
        for (; *p->at >= '0' && *p->at <= '9'; p->at++)
                n = n > LIMIT_REGEX_REPEAT ? n : n * 10 + (uint32_t)(*p->at - '0');
        *ret = n;
        return true;
}

/* {n}, {n,}, {n,m} after its brace. */
static enum status take_counts(struct parser *p, uint32_t *min, uint32_t *max)
{
        bool ok = take_number(p, min);

        *max = *min;
        if (ok && *p->at == ',') {
                p->at++;
                *max = REPEAT_FOREVER;
                if (*p->at != '}')
                        ok = take_number(p, max);
        }
        if (!ok || *p->at != '}')
                return bad(p, "a repetition that is not {n}, {n,} or {n,m}");
        if (*min > LIMIT_REGEX_REPEAT || *max < *min || (*max > LIMIT_REGEX_REPEAT && *max != REPEAT_FOREVER))
                return bad(p, "a repetition out of range");
        p->at++;
        return ST_OK;
}

static enum status parse_repeated(struct parser *p, uint32_t *ret)
{
        enum status st = parse_atom(p, ret);

        while (!st && *p->at && strchr("*+?{", *p->at)) {
                char c = *p->at++;
                uint32_t min = c == '+', max = c == '?' ? 1 : REPEAT_FOREVER;

                if (c == '{')
                        st = take_counts(p, &min, &max);
                if (!st && *p->at == '?') /* lazy: of no meaning for whole matches */
                        p->at++;
                if (!st)
                        st = add_node(
                                p, (struct regex_node){ .kind = NODE_REPEAT, .left = *ret, .min = min, .max = max },
                                ret);
        }
        return st;
}

static enum status parse_sequence(struct parser *p, uint32_t *ret)
{
        enum status st = add_node(p, (struct regex_node){ .kind = NODE_EMPTY }, ret);
        bool empty = true;

        while (!st && *p->at && *p->at != '|' && *p->at != ')') {
                uint32_t next;

                st = parse_repeated(p, &next);
                if (st)
                        break;
                if (empty)
                        *ret = next;
                else
                        st = add_node(p, (struct regex_node){ .kind = NODE_CAT, .left = *ret, .right = next }, ret);
                empty = false;
        }
        return st;
}

static enum status parse_alternatives(struct parser *p, uint32_t *ret)
{
        enum status st = parse_sequence(p, ret);

        while (!st && *p->at == '|') {
                uint32_t next;

                p->at++;
                st = parse_sequence(p, &next);
                if (!st)
                        st = add_node(p, (struct regex_node){ .kind = NODE_ALT, .left = *ret, .right = next }, ret);
        }
        return st;
}

enum status regex_parse(const char *pattern, struct regex_tree *ret, struct error *err)
{
        struct parser p = { .start = pattern, .at = pattern, .t = ret, .err = err };
        enum status st;

        *ret = (struct regex_tree){ 0 };
        if (strncmp(p.at, "(?i)", 4) == 0) {
                ret->any_case = true;
                p.at += 4;
        }
        st = parse_alternatives(&p, &ret->root);
        if (!st && *p.at)
                st = bad(&p, "')' without '('");
        return st;
}
