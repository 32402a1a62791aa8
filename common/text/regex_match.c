/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three stages, in this order in the file: the pattern is parsed into a tree, the tree is compiled into a program, and
 * the program's NFA is simulated over a text.
 *
 * Parsing: recursive descent; parse_alternatives(), parse_sequence(), parse_repeated() and parse_atom() are its
 * levels. Nodes, sets and ranges are arrays of fixed size in the matcher and refer to each other by index. The tree
 * stays after compiling: matching uses its sets, regex_match_find_group() its names.
 * Compiling: counted repetitions are copied out, so a program can be much longer than its pattern; LIMIT_REGEX_PROGRAM
 * bounds it. The first target of a SPLIT is the preferred one.
 * Matching: `now` and `next` are the sets of states before and after a code point. add_regex_state() adds a state with
 * all states reachable without reading, each of them once, so a code point takes at most one visit of each
 * instruction. A search also adds the start state after each code point.
 * Captures: the same simulation, with slots for each state. The first path to a state is the preferred one; later ones
 * are dropped. Plain matching has its own loop, run_program(), because it copies no slots and charges the meter.
 */
#include "common/text/regex_match.h"

#include <assert.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/hash/hash_table.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/case_fold.h"
#include "common/text/utf8.h"
#include "common/text.h"

/* Parse tree: at most one node per byte of the pattern, plus one for each concatenation or alternation. */
enum node_kind { NODE_EMPTY, NODE_SET, NODE_CAT, NODE_ALT, NODE_REPEAT, NODE_GROUP, NODE_ASSERT };

#define REPEAT_FOREVER UINT32_MAX

/* What may hold at a position of a text; ASSERT needs one of them. */
#define AT_TEXT_BEGIN 1u
#define AT_TEXT_END 2u
#define AT_LINE_BEGIN 4u
#define AT_LINE_END 8u
#define AT_WORD_BOUNDARY 16u
#define AT_NO_WORD_BOUNDARY 32u

struct regex_node {
        enum node_kind kind;
        uint32_t left, right; /* CAT and ALT: operands; REPEAT and GROUP: left; SET: left is the number of its set */
        uint32_t min, max;    /* REPEAT; GROUP: min is its number; ASSERT: min is one of AT_ */
        bool is_lazy;         /* REPEAT that prefers fewer repetitions; matters only for captures */
        bool is_nullable;     /* matches the empty text; computed by add_regex_node() */
};

struct regex_range {
        uint32_t low, high; /* code points, inclusive */
};

struct regex_set {
        uint32_t first, count; /* ranges */
        bool negated, any_case;
};

/* A group with a name, which lies in the pattern. */
struct regex_name {
        uint32_t start, size, number;
};

struct regex_tree {
        struct regex_node nodes[4 * LIMIT_REGEX_BYTES];
        struct regex_set sets[LIMIT_REGEX_BYTES + 1];
        struct regex_range ranges[4 * LIMIT_REGEX_BYTES];
        uint32_t node_count, set_count, range_count, root;
        uint32_t group_count; /* capturing groups */
        struct regex_name names[REGEX_CAPTURES];
        uint32_t name_count;
        char pattern[LIMIT_REGEX_BYTES + 1];
        bool any_case; /* of any set */
};

/* ---- parse ---- */

#define MAX_GROUP_DEPTH 64
#define LAST_CODE_POINT 0x10ffff

/* The flags i, m, s and U of "(?flags)". */
struct regex_flags {
        bool any_case, multi_line, dot_newline, ungreedy;
};

struct regex_parser {
        const char *start, *at;
        struct regex_tree *t;
        struct error *err;
        struct regex_flags flags;
        bool quoted; /* after \Q */
        unsigned depth;
};

static enum status report_bad_regex(const struct regex_parser *p, const char *what)
{
        return error_set(p->err, ST_USAGE, "bad regular expression '%.60s': %s at byte %zu", p->start, what,
                         (size_t)(p->at - p->start));
}

/* LIMIT_REGEX_BYTES bounds the number of nodes; checked nevertheless, to exclude writes out of bounds. */
static enum status add_regex_node(struct regex_parser *p, struct regex_node node, uint32_t *ret)
{
        struct regex_node *nodes = p->t->nodes;

        if (p->t->node_count == sizeof p->t->nodes / sizeof *p->t->nodes)
                return report_bad_regex(p, "too many parts");
        switch (node.kind) {
        case NODE_EMPTY:
        case NODE_ASSERT:
                node.is_nullable = true;
                break;
        case NODE_SET:
                break;
        case NODE_CAT:
                node.is_nullable = nodes[node.left].is_nullable && nodes[node.right].is_nullable;
                break;
        case NODE_ALT:
                node.is_nullable = nodes[node.left].is_nullable || nodes[node.right].is_nullable;
                break;
        case NODE_REPEAT:
                node.is_nullable = node.min == 0 || nodes[node.left].is_nullable;
                break;
        case NODE_GROUP:
                node.is_nullable = nodes[node.left].is_nullable;
                break;
        }
        *ret = p->t->node_count;
        nodes[p->t->node_count++] = node;
        return ST_OK;
}

static enum status add_code_range(struct regex_parser *p, uint32_t low, uint32_t high)
{
        if (p->t->range_count == sizeof p->t->ranges / sizeof *p->t->ranges)
                return report_bad_regex(p, "too many ranges");
        p->t->ranges[p->t->range_count++] = (struct regex_range){ low, high };
        return ST_OK;
}

static enum status parse_code_point(struct regex_parser *p, uint32_t *ret)
{
        const unsigned char *u = (const unsigned char *)p->at;
        size_t n = utf8_sequence_length(p->at, strlen(p->at));

        if (n == 0)
                return report_bad_regex(p, "invalid UTF-8");
        *ret = n == 1   ? u[0]
               : n == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
               : n == 3 ? (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu)
                        : (u[0] & 0x07u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
        p->at += n;
        return ST_OK;
}

#define MAX_CLASS_RANGES 4

/* A class of ASCII characters. */
struct named_class {
        const char *name;
        struct regex_range ranges[MAX_CLASS_RANGES];
        size_t count;
};

static const struct named_class perl_classes[] = {
        { "d", { { '0', '9' } }, 1 },
        { "s", { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } }, 3 },
        { "w", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } }, 4 },
};

static const struct named_class posix_classes[] = {
        { "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } }, 3 },
        { "alpha", { { 'A', 'Z' }, { 'a', 'z' } }, 2 },
        { "ascii", { { 0, 0x7f } }, 1 },
        { "blank", { { '\t', '\t' }, { ' ', ' ' } }, 2 },
        { "cntrl", { { 0, 0x1f }, { 0x7f, 0x7f } }, 2 },
        { "digit", { { '0', '9' } }, 1 },
        { "graph", { { '!', '~' } }, 1 },
        { "lower", { { 'a', 'z' } }, 1 },
        { "print", { { ' ', '~' } }, 1 },
        { "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } }, 4 },
        { "space", { { '\t', '\r' }, { ' ', ' ' } }, 2 },
        { "upper", { { 'A', 'Z' } }, 1 },
        { "word", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } }, 4 },
        { "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } }, 3 },
};

/* NULL if no class has the name. */
static const struct named_class *find_named_class(const struct named_class *classes, size_t count, const char *name,
                                                  size_t n)
{
        for (size_t i = 0; i < count; i++)
                if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0)
                        return &classes[i];
        return NULL;
}

static bool is_in_class(const struct named_class *c, uint32_t code)
{
        for (size_t i = 0; i < c->count; i++)
                if (code >= c->ranges[i].low && code <= c->ranges[i].high)
                        return true;
        return false;
}

/* Whether the class has a letter equal to the code point without regard to case. */
static bool is_folded_in_class(const struct named_class *c, uint32_t code)
{
        uint32_t equals[CASE_FOLD_MAX];
        size_t n = case_fold_equals(code, equals);

        for (size_t i = 0; i < n; i++)
                if (is_in_class(c, equals[i]))
                        return true;
        return false;
}

/*
 * All code points that are not in the class. With the flag i the class has the letters of both cases before it is
 * negated: it cannot be negated in the matcher, since it may be one of several members of a set.
 */
static enum status add_negated_class(struct regex_parser *p, const struct named_class *c)
{
        static const uint32_t beyond_ascii[] = { 0x17f, 0x212a }; /* equal to s and k */
        uint32_t from = 0;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < 0x80 + sizeof beyond_ascii / sizeof *beyond_ascii; i++) {
                uint32_t code = i < 0x80 ? i : beyond_ascii[i - 0x80];

                if (!(p->flags.any_case ? is_folded_in_class(c, code) : is_in_class(c, code)))
                        continue;
                if (code > from)
                        st = add_code_range(p, from, code - 1);
                from = code + 1;
        }
        return st ? st : add_code_range(p, from, LAST_CODE_POINT);
}

static enum status add_class_ranges(struct regex_parser *p, const struct named_class *c, bool negated)
{
        enum status st = ST_OK;

        if (negated)
                return add_negated_class(p, c);
        for (size_t i = 0; !st && i < c->count; i++)
                st = add_code_range(p, c->ranges[i].low, c->ranges[i].high);
        return st;
}

/* HH or {H...} after "\x". */
static enum status parse_hex_escape(struct regex_parser *p, uint32_t *ret)
{
        bool braced = *p->at == '{';
        uint32_t code = 0;
        size_t n = 0;

        p->at += braced;
        for (; hex_digit_value(*p->at) >= 0 && (braced || n < 2) && code <= LAST_CODE_POINT; p->at++, n++)
                code = code << 4 | (uint32_t)hex_digit_value(*p->at);
        if (braced ? !n || *p->at != '}' || code > LAST_CODE_POINT : n != 2)
                return report_bad_regex(p, "a code point that is not \\xHH or \\x{H...} up to \\x{10FFFF}");
        p->at += braced;
        *ret = code;
        return ST_OK;
}

static bool is_octal_digit(char c)
{
        return c >= '0' && c <= '7';
}

/* Up to three octal digits; a single one that is not 0 would be a back reference. */
static enum status parse_octal_escape(struct regex_parser *p, uint32_t *ret)
{
        uint32_t code = 0;

        if (*p->at != '0' && (!is_octal_digit(p->at[0]) || !is_octal_digit(p->at[1])))
                return report_bad_regex(p, "an escape that does not exist (there are no back references)");
        for (int i = 0; i < 3 && is_octal_digit(*p->at); i++)
                code = code << 3 | (uint32_t)(*p->at++ - '0');
        *ret = code;
        return ST_OK;
}

/* After a backslash: a class (*is_class), whose ranges are added, or one code point. */
static enum status parse_regex_escape(struct regex_parser *p, bool *is_class, uint32_t *ret)
{
        static const char letters[] = "afnrtv", codes[] = "\a\f\n\r\t\v";
        char c = *p->at, lower = (char)(c | 0x20);
        const char *letter = c ? strchr(letters, c) : NULL;

        *is_class = c && strchr("dwsDWS", c);
        if (*is_class) {
                p->at++;
                return add_class_ranges(p, find_named_class(perl_classes, 3, &lower, 1), c != lower);
        }
        if (letter) {
                p->at++;
                *ret = (uint32_t)codes[letter - letters];
                return ST_OK;
        }
        if (c == 'x') {
                p->at++;
                return parse_hex_escape(p, ret);
        }
        if (c >= '0' && c <= '9')
                return parse_octal_escape(p, ret);
        if (c == 'p' || c == 'P')
                return report_bad_regex(p, "a class of Unicode, which is not supported");
        if (c == 'C')
                return report_bad_regex(p, "\\C, a single byte, which is not supported");
        if (c == 0 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
                return report_bad_regex(p, "an escape that does not exist");
        return parse_code_point(p, ret);
}

/* One member of a class, or one end of a range. */
static enum status parse_class_member(struct regex_parser *p, bool *is_class, uint32_t *ret)
{
        *is_class = false;
        if (*p->at == 0)
                return report_bad_regex(p, "a class that is not closed");
        if (*p->at == '\\') {
                p->at++;
                return parse_regex_escape(p, is_class, ret);
        }
        return parse_code_point(p, ret);
}

/* Add the ranges of "[:name:]" or "[:^name:]". *found: false for another '[', which is a literal. */
static enum status parse_posix_class(struct regex_parser *p, bool *found)
{
        const char *end = strncmp(p->at, "[:", 2) == 0 ? strstr(p->at + 2, ":]") : NULL, *name;
        const struct named_class *c;

        *found = end != NULL;
        if (!end)
                return ST_OK;
        name = p->at + 2;
        name += *name == '^';
        c = find_named_class(posix_classes, sizeof posix_classes / sizeof *posix_classes, name,
                             end > name ? (size_t)(end - name) : 0);
        if (!c)
                return report_bad_regex(p, "a class [:name:] that does not exist");
        p->at = end + 2;
        return add_class_ranges(p, c, name[-1] == '^');
}

static enum status parse_class(struct regex_parser *p, struct regex_set *set)
{
        bool first = true;

        if (*p->at == '^') {
                set->negated = true;
                p->at++;
        }
        for (; first || *p->at != ']'; first = false) {
                uint32_t low = 0, high;
                bool is_class;
                enum status st = parse_posix_class(p, &is_class);

                if (!st && is_class)
                        continue;
                if (!st)
                        st = parse_class_member(p, &is_class, &low);
                if (!st && is_class)
                        continue;
                high = low;
                if (!st && p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
                        p->at++;
                        st = parse_class_member(p, &is_class, &high);
                        if (!st && (is_class || high < low))
                                st = report_bad_regex(p, "a range whose end is before its start");
                }
                if (!st)
                        st = add_code_range(p, low, high);
                if (st)
                        return st;
        }
        p->at++;
        return ST_OK;
}

static enum status parse_set(struct regex_parser *p, uint32_t *ret)
{
        struct regex_set set = { .first = p->t->range_count, .any_case = p->flags.any_case };
        uint32_t code;
        bool is_class;
        enum status st;

        switch (p->quoted ? 0 : *p->at) {
        case '[':
                p->at++;
                st = parse_class(p, &set);
                break;
        case '.':
                p->at++;
                st = p->flags.dot_newline ? ST_OK : add_code_range(p, 0, '\n' - 1);
                if (!st)
                        st = add_code_range(p, p->flags.dot_newline ? 0 : '\n' + 1, LAST_CODE_POINT);
                break;
        case '\\':
                p->at++;
                st = parse_regex_escape(p, &is_class, &code);
                if (!st && !is_class)
                        st = add_code_range(p, code, code);
                break;
        default:
                st = parse_code_point(p, &code);
                if (!st)
                        st = add_code_range(p, code, code);
        }
        if (st)
                return st;
        if (p->t->set_count == sizeof p->t->sets / sizeof *p->t->sets)
                return report_bad_regex(p, "too many parts");
        set.count = p->t->range_count - set.first;
        p->t->sets[p->t->set_count] = set;
        p->t->any_case |= set.any_case;
        return add_regex_node(p, (struct regex_node){ .kind = NODE_SET, .left = p->t->set_count++ }, ret);
}

static enum status parse_alternatives(struct regex_parser *p, uint32_t *ret);

/* A number without leading zeros, as the count of a repetition. */
static bool parse_repeat_count(const char **at, uint32_t *ret)
{
        const char *c = *at;
        uint32_t n = 0;

        if (*c < '0' || *c > '9' || (*c == '0' && c[1] >= '0' && c[1] <= '9'))
                return false;
        for (; *c >= '0' && *c <= '9'; c++)
                n = n > LIMIT_REGEX_REPEAT ? n : n * 10 + (uint32_t)(*c - '0');
        *at = c;
        *ret = n;
        return true;
}

/* Skip {n}, {n,} or {n,m}. False: another '{', which is a literal. */
static bool parse_repeat_range(const char **at, uint32_t *min, uint32_t *max)
{
        const char *c = *at;

        if (*c++ != '{' || !parse_repeat_count(&c, min))
                return false;
        *max = *min;
        if (*c == ',') {
                c++;
                *max = REPEAT_FOREVER;
                if (*c != '}' && !parse_repeat_count(&c, max))
                        return false;
        }
        if (*c != '}')
                return false;
        *at = c + 1;
        return true;
}

/* Skip an operator that repeats. */
static bool parse_repeat_operator(const char **at, uint32_t *min, uint32_t *max)
{
        switch (**at) {
        case '*':
        case '+':
        case '?':
                *min = **at == '+';
                *max = **at == '?' ? 1 : REPEAT_FOREVER;
                ++*at;
                return true;
        default:
                return parse_repeat_range(at, min, max);
        }
}

/* The flags after "(?", up to ':' or ')', as in "i" or "s-i". */
static enum status parse_flags(struct regex_parser *p)
{
        static const char names[] = "imsU";
        bool *const flags[] = { &p->flags.any_case, &p->flags.multi_line, &p->flags.dot_newline, &p->flags.ungreedy };
        bool on = true;

        for (; *p->at && *p->at != ':' && *p->at != ')'; p->at++) {
                const char *name = strchr(names, *p->at);

                if (name)
                        *flags[name - names] = on;
                else if (*p->at == '-' && on && p->at[1] && strchr(names, p->at[1]))
                        on = false;
                else
                        return report_bad_regex(p, "a group that is not supported");
        }
        return ST_OK;
}

/* The name after "(?P<" or "(?<", with the closing '>'. */
static enum status parse_group_name(struct regex_parser *p, uint32_t number)
{
        size_t n = strspn(p->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

        if (!n || p->at[n] != '>')
                return report_bad_regex(p, "a group's name that is not of letters, digits and _, with '>' after it");
        for (size_t i = 0; i < p->t->name_count; i++)
                if (p->t->names[i].size == n && memcmp(p->start + p->t->names[i].start, p->at, n) == 0)
                        return report_bad_regex(p, "a second group with this name");
        if (number >= REGEX_CAPTURES)
                return report_bad_regex(p, "a name for a group after the ninth");
        p->t->names[p->t->name_count++] = (struct regex_name){ (uint32_t)(p->at - p->start), (uint32_t)n, number };
        p->at += n + 1;
        return ST_OK;
}

/* The rest of a group that has been opened. */
static enum status parse_group_body(struct regex_parser *p, uint32_t *ret)
{
        struct regex_flags outer = p->flags;
        const char *next;
        uint32_t number = 0, min, max;
        enum status st = ST_OK;

        if (*p->at != '?') {
                number = ++p->t->group_count;
        } else if (strncmp(p->at, "?P<", 3) == 0 || strncmp(p->at, "?<", 2) == 0) {
                p->at += p->at[1] == 'P' ? 3 : 2;
                if (*p->at == '=' || *p->at == '!')
                        return report_bad_regex(p, "a group that is not supported");
                number = ++p->t->group_count;
                st = parse_group_name(p, number);
        } else {
                p->at++;
                st = parse_flags(p);
                if (!st && *p->at == ')') { /* holds up to the end of the outer group */
                        next = ++p->at;
                        if (parse_repeat_operator(&next, &min, &max))
                                return report_bad_regex(p, "nothing to repeat");
                        return add_regex_node(p, (struct regex_node){ .kind = NODE_EMPTY }, ret);
                }
                p->at += *p->at == ':';
        }
        if (!st)
                st = parse_alternatives(p, ret);
        if (!st && *p->at != ')')
                st = report_bad_regex(p, "a group that is not closed");
        p->at += !st;
        p->flags = outer;
        if (!st && number && number < REGEX_CAPTURES)
                st = add_regex_node(p, (struct regex_node){ .kind = NODE_GROUP, .left = *ret, .min = number }, ret);
        return st;
}

static enum status parse_group(struct regex_parser *p, uint32_t *ret)
{
        enum status st;

        if (++p->depth > MAX_GROUP_DEPTH)
                return report_bad_regex(p, "groups nested too deeply");
        p->at++;
        st = parse_group_body(p, ret);
        p->depth--;
        return st;
}

/* Skip an assertion. *ret: what has to hold, one of AT_; 0: something else. */
static uint32_t parse_assertion(struct regex_parser *p)
{
        uint32_t kind = 0;

        switch (*p->at) {
        case '^':
                kind = p->flags.multi_line ? AT_LINE_BEGIN : AT_TEXT_BEGIN;
                break;
        case '$':
                kind = p->flags.multi_line ? AT_LINE_END : AT_TEXT_END;
                break;
        case '\\':
                kind = p->at[1] == 'A'   ? AT_TEXT_BEGIN
                       : p->at[1] == 'z' ? AT_TEXT_END
                       : p->at[1] == 'b' ? AT_WORD_BOUNDARY
                       : p->at[1] == 'B' ? AT_NO_WORD_BOUNDARY
                                         : 0;
                p->at += kind != 0;
                break;
        default:
                break;
        }
        p->at += kind != 0;
        return kind;
}

static enum status parse_atom(struct regex_parser *p, uint32_t *ret)
{
        const char *at = p->at;
        uint32_t min, max, assertion;

        if (p->quoted)
                return parse_set(p, ret);
        if (*p->at == '(')
                return parse_group(p, ret);
        if (parse_repeat_operator(&at, &min, &max))
                return report_bad_regex(p, "nothing to repeat");
        assertion = parse_assertion(p);
        if (assertion)
                return add_regex_node(p, (struct regex_node){ .kind = NODE_ASSERT, .min = assertion }, ret);
        return parse_set(p, ret);
}

/* Skip "\Q" and "\E", between which all characters are literals. */
static void skip_quote_marks(struct regex_parser *p)
{
        while (strncmp(p->at, p->quoted ? "\\E" : "\\Q", 2) == 0) {
                p->quoted = !p->quoted;
                p->at += 2;
        }
        if (!*p->at)
                p->quoted = false;
}

static enum status parse_repeated(struct regex_parser *p, uint32_t *ret)
{
        enum status st = parse_atom(p, ret);
        uint32_t min, max;

        skip_quote_marks(p);
        while (!st && !p->quoted && parse_repeat_operator(&p->at, &min, &max)) {
                if (min > LIMIT_REGEX_REPEAT || max < min || (max > LIMIT_REGEX_REPEAT && max != REPEAT_FOREVER))
                        return report_bad_regex(p, "a repetition out of range");
                st = add_regex_node(p,
                                    (struct regex_node){ .kind = NODE_REPEAT,
                                                         .left = *ret,
                                                         .min = min,
                                                         .max = max,
                                                         .is_lazy = (*p->at == '?') != p->flags.ungreedy },
                                    ret);
                p->at += *p->at == '?';
                skip_quote_marks(p);
        }
        return st;
}

static enum status parse_sequence(struct regex_parser *p, uint32_t *ret)
{
        enum status st = add_regex_node(p, (struct regex_node){ .kind = NODE_EMPTY }, ret);
        bool empty = true;

        skip_quote_marks(p);
        while (!st && (p->quoted || (*p->at && *p->at != '|' && *p->at != ')'))) {
                uint32_t next;

                st = parse_repeated(p, &next);
                if (st)
                        break;
                if (empty)
                        *ret = next;
                else
                        st = add_regex_node(p, (struct regex_node){ .kind = NODE_CAT, .left = *ret, .right = next },
                                            ret);
                empty = false;
        }
        return st;
}

static enum status parse_alternatives(struct regex_parser *p, uint32_t *ret)
{
        enum status st = parse_sequence(p, ret);

        while (!st && *p->at == '|') {
                uint32_t next;

                p->at++;
                st = parse_sequence(p, &next);
                if (!st)
                        st = add_regex_node(p, (struct regex_node){ .kind = NODE_ALT, .left = *ret, .right = next },
                                            ret);
        }
        return st;
}

/* Parse a pattern of at most LIMIT_REGEX_BYTES. */
static enum status parse_regex(const char *pattern, struct regex_tree *ret, struct error *err)
{
        struct regex_parser p = {
                .start = pattern, .at = pattern, .t = ret, .err = err, .flags = { .dot_newline = true }
        };
        enum status st;

        *ret = (struct regex_tree){ 0 };
        memcpy(ret->pattern, pattern, strlen(pattern));
        st = parse_alternatives(&p, &ret->root);
        if (!st && *p.at)
                st = report_bad_regex(&p, "')' without '('");
        return st;
}

/* ---- program ---- */

enum operation { OP_SET, OP_SPLIT, OP_JUMP, OP_SAVE, OP_ASSERT, OP_MATCH };

struct instruction {
        enum operation op;
        uint32_t x, y; /* targets of SPLIT, preferred one first, and of JUMP; set of SET; slot of SAVE;
                        one of AT_ of ASSERT */
};

/* Sparse set of the possible states at one position: the members, and the position of each among them. */
struct states {
        uint32_t members[LIMIT_REGEX_PROGRAM + 1];
        uint32_t places[LIMIT_REGEX_PROGRAM + 1];
        uint32_t count;
};

/* Start and end of the groups on one path through the program, as offsets in the text. */
#define CAPTURE_SLOTS (2 * REGEX_CAPTURES)
#define NOT_CAPTURED SIZE_MAX

struct capture_slots {
        size_t at[CAPTURE_SLOTS];
};

struct known_text {
        const char *text;
        size_t size;
        bool matches;
};

struct regex_match {
        struct regex_tree tree;                       /* its sets are used for matching */
        bool is_search;                               /* any part of a text may match */
        bool has_captures;                            /* created for captures */
        struct capture_slots *now_slots, *next_slots; /* owned: one per member of now and next; NULL without captures */
        struct work_meter *meter;
        struct hash_table known;    /* cache of matched texts; entries index `results` */
        struct known_text *results; /* owned */
        size_t result_capacity;
        struct arena texts;   /* texts of results */
        uint64_t steps_taken; /* by the current text, not yet reported to the meter */
        struct instruction program[LIMIT_REGEX_PROGRAM + 1];
        uint32_t size;
        uint32_t steps; /* of compiling; bounded separately, since repeating an empty node adds no instruction */
        struct states now, next;
        uint32_t stack[2 * LIMIT_REGEX_PROGRAM + 2];
};

/* ---- compiling ------------------------------------------------------------------------------ */

static bool emit_instruction(struct regex_match *m, enum operation op, uint32_t x, uint32_t y)
{
        if (m->size == LIMIT_REGEX_PROGRAM)
                return false;
        m->program[m->size++] = (struct instruction){ op, x, y };
        return true;
}

static bool compile_node(struct regex_match *m, uint32_t node);

/* Emit a SPLIT that enters the code after it or leaves to a target set later. *ret: its index. */
static bool emit_optional(struct regex_match *m, uint32_t *ret)
{
        *ret = m->size;
        return emit_instruction(m, OP_SPLIT, 0, 0);
}

/* Set the SPLIT at `at` to prefer `enter`, or `leave` if it is lazy. */
static void set_regex_split(struct regex_match *m, uint32_t at, uint32_t enter, uint32_t leave, bool is_lazy)
{
        m->program[at].x = is_lazy ? leave : enter;
        m->program[at].y = is_lazy ? enter : leave;
}

/* x+ */
static bool compile_plus(struct regex_match *m, const struct regex_node *n)
{
        uint32_t start = m->size, at;

        if (!compile_node(m, n->left) || !emit_optional(m, &at))
                return false;
        set_regex_split(m, at, start, m->size, n->is_lazy);
        return true;
}

/* x*: as (x+)? if x matches the empty text, so that alternatives of equal preference have the order of Go's regexp. */
static bool compile_star(struct regex_match *m, const struct regex_node *n)
{
        uint32_t at;

        if (!emit_optional(m, &at))
                return false;
        if (m->tree.nodes[n->left].is_nullable) {
                if (!compile_plus(m, n))
                        return false;
        } else if (!compile_node(m, n->left) || !emit_instruction(m, OP_JUMP, at, 0)) {
                return false;
        }
        set_regex_split(m, at, at + 1, m->size, n->is_lazy);
        return true;
}

/* (x(x(x)?)?)?: leaving one copy leaves all. The SPLITs are chained by y until the end address is known. */
static bool compile_optional_copies(struct regex_match *m, const struct regex_node *n)
{
        uint32_t last = 0, at;

        for (uint32_t i = n->min; i < n->max; i++) {
                if (!emit_optional(m, &at) || !compile_node(m, n->left))
                        return false;
                m->program[at].y = last;
                last = at;
        }
        for (uint32_t i = n->min; i < n->max; i++) {
                at = last;
                last = m->program[at].y;
                set_regex_split(m, at, at + 1, m->size, n->is_lazy);
        }
        return true;
}

static bool compile_repeat_node(struct regex_match *m, const struct regex_node *n)
{
        bool forever = n->max == REPEAT_FOREVER;

        for (uint32_t i = forever; i < n->min; i++)
                if (!compile_node(m, n->left))
                        return false;
        if (!forever)
                return compile_optional_copies(m, n);
        return n->min ? compile_plus(m, n) : compile_star(m, n);
}

/* False if the program gets too long. Depth is bounded by the length of the pattern. */
static bool compile_node(struct regex_match *m, uint32_t node)
{
        const struct regex_node *n = &m->tree.nodes[node];
        uint32_t split, jump;

        if (++m->steps > 16 * LIMIT_REGEX_PROGRAM)
                return false;
        switch (n->kind) {
        case NODE_EMPTY:
                return true;
        case NODE_SET:
                return emit_instruction(m, OP_SET, n->left, 0);
        case NODE_ASSERT:
                return emit_instruction(m, OP_ASSERT, n->min, 0);
        case NODE_CAT:
                return compile_node(m, n->left) && compile_node(m, n->right);
        case NODE_ALT:
                split = m->size;
                if (!emit_instruction(m, OP_SPLIT, split + 1, 0) || !compile_node(m, n->left))
                        return false;
                jump = m->size;
                if (!emit_instruction(m, OP_JUMP, 0, 0))
                        return false;
                m->program[split].y = m->size;
                if (!compile_node(m, n->right))
                        return false;
                m->program[jump].x = m->size;
                return true;
        case NODE_REPEAT:
                return compile_repeat_node(m, n);
        case NODE_GROUP:
                if (!m->has_captures)
                        return compile_node(m, n->left);
                return emit_instruction(m, OP_SAVE, 2 * n->min, 0) && compile_node(m, n->left) &&
                       emit_instruction(m, OP_SAVE, 2 * n->min + 1, 0);
        }
        return false;
}

/* Parse and compile into m, whose options are set. */
static enum status build_regex(struct regex_match *m, const char *pattern, struct error *err)
{
        enum status st;

        if (strlen(pattern) > LIMIT_REGEX_BYTES)
                return error_set(err, ST_USAGE, "a regular expression may have up to %d bytes", LIMIT_REGEX_BYTES);
        st = parse_regex(pattern, &m->tree, err);
        if (st)
                return st;
        if (!compile_node(m, m->tree.root))
                return error_set(err, ST_USAGE,
                                 "regular expression '%.60s' repeats too much: counted out it has more than %d parts; "
                                 "use * or + in place of large counts",
                                 pattern, LIMIT_REGEX_PROGRAM);
        assert(m->size <= LIMIT_REGEX_PROGRAM);
        m->program[m->size++] = (struct instruction){ .op = OP_MATCH }; /* one instruction is reserved */
        return ST_OK;
}

enum status regex_match_create(const char *pattern, struct work_meter *meter, struct regex_match **ret,
                               struct error *err)
{
        struct regex_match *m = calloc(1, sizeof *m);
        enum status st;

        if (!m)
                return error_no_memory(err);
        m->meter = meter;
        arena_init(&m->texts, LIMIT_REGEX_REMEMBERED_BYTES);
        st = build_regex(m, pattern, err);
        if (st)
                regex_match_destroy(m);
        else
                *ret = m;
        return st;
}

enum status regex_match_create_captures(const char *pattern, struct regex_match **ret, struct error *err)
{
        struct regex_match *m = calloc(1, sizeof *m);
        enum status st;

        if (!m)
                return error_no_memory(err);
        arena_init(&m->texts, LIMIT_REGEX_REMEMBERED_BYTES);
        m->has_captures = true;
        st = build_regex(m, pattern, err);
        if (!st) {
                m->now_slots = calloc(m->size, sizeof *m->now_slots);
                m->next_slots = calloc(m->size, sizeof *m->next_slots);
                if (!m->now_slots || !m->next_slots)
                        st = error_no_memory(err);
        }
        if (st)
                regex_match_destroy(m);
        else
                *ret = m;
        return st;
}

enum status regex_match_create_search(const char *pattern, struct work_meter *meter, struct regex_match **ret,
                                      struct error *err)
{
        enum status st = regex_match_create(pattern, meter, ret, err);

        if (!st)
                (*ret)->is_search = true;
        return st;
}

void regex_match_destroy(struct regex_match *m)
{
        if (!m)
                return;
        hash_table_deinit(&m->known);
        free(m->results);
        free(m->now_slots);
        free(m->next_slots);
        arena_deinit(&m->texts);
        free(m);
}

/* ---- matching --------------------------------------------------------------------------------- */

static bool is_in_ranges(struct regex_match *m, const struct regex_set *set, uint32_t code)
{
        m->steps_taken += set->count / 4; /* comparing a range costs a fraction of following a state */
        for (uint32_t i = set->first; i < set->first + set->count; i++)
                if (code >= m->tree.ranges[i].low && code <= m->tree.ranges[i].high)
                        return true;
        return false;
}

/* A code point of a text, and those that are equal to it without regard to case. */
struct text_code {
        uint32_t code;
        uint32_t equals[CASE_FOLD_MAX];
        size_t equal_count;
};

static bool is_in_set(struct regex_match *m, uint32_t number, const struct text_code *c)
{
        const struct regex_set *set = &m->tree.sets[number];
        bool in = false;

        if (!set->any_case)
                return is_in_ranges(m, set, c->code) != set->negated;
        for (size_t i = 0; !in && i < c->equal_count; i++)
                in = is_in_ranges(m, set, c->equals[i]);
        return in != set->negated;
}

/*
 * Add a state and all states reachable without reading; `position` is what holds there (AT_). Each state enters once,
 * so empty loops terminate.
 */
static void add_regex_state(struct regex_match *m, struct states *s, uint32_t state, uint32_t position)
{
        uint32_t depth = 0;

        m->stack[depth++] = state;
        while (depth) {
                uint32_t pc = m->stack[--depth], place = s->places[pc];
                const struct instruction *in = &m->program[pc];

                m->steps_taken++;
                if (place < s->count && s->members[place] == pc)
                        continue;
                assert(s->count <= LIMIT_REGEX_PROGRAM);
                s->places[pc] = s->count;
                s->members[s->count++] = pc;
                if (in->op == OP_JUMP) {
                        m->stack[depth++] = in->x;
                } else if (in->op == OP_SPLIT) {
                        m->stack[depth++] = in->y;
                        m->stack[depth++] = in->x;
                } else if (in->op == OP_ASSERT && (in->x & position)) {
                        m->stack[depth++] = pc + 1;
                }
        }
}

#define NO_CODE UINT32_MAX

/* The code point at the start of a text; U+FFFD for an invalid byte; NO_CODE at the end. */
static uint32_t decode_code_point(const char *text, size_t n, size_t *size_ret)
{
        const unsigned char *u = (const unsigned char *)text;
        size_t size = n ? utf8_sequence_length(text, n) : 0;

        *size_ret = size ? size : 1;
        return n == 0      ? NO_CODE
               : size == 0 ? 0xfffd
               : size == 1 ? u[0]
               : size == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
               : size == 3 ? (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu)
                           : (u[0] & 0x07u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
}

static bool is_word_code(uint32_t code)
{
        return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || code == '_' ||
               (code >= 'a' && code <= 'z');
}

/* What holds between two code points (AT_); each may be NO_CODE. */
static uint32_t describe_position(uint32_t before, uint32_t after)
{
        return (before == NO_CODE ? AT_TEXT_BEGIN | AT_LINE_BEGIN : 0) | (before == '\n' ? AT_LINE_BEGIN : 0) |
               (after == NO_CODE ? AT_TEXT_END | AT_LINE_END : 0) | (after == '\n' ? AT_LINE_END : 0) |
               (is_word_code(before) != is_word_code(after) ? AT_WORD_BOUNDARY : AT_NO_WORD_BOUNDARY);
}

/* A text while it is read: its current code point, and the position behind it. */
struct text_reader {
        const char *text;
        size_t n, at;  /* start of `next` */
        size_t size;   /* of `next` */
        uint32_t next; /* NO_CODE at the end */
        uint32_t position;
        struct text_code now;
};

static void start_reading_text(struct text_reader *r, const char *text, size_t n)
{
        *r = (struct text_reader){ .text = text, .n = n };
        r->next = decode_code_point(text, n, &r->size);
        r->position = describe_position(NO_CODE, r->next);
}

#define STEPS_OF_FOLDING 100 /* two walks over the letters that are not ASCII */

/* Read the next code point into r->now; false at the end. */
static bool read_text_code(struct regex_match *m, struct text_reader *r)
{
        if (r->next == NO_CODE)
                return false;
        r->now.code = r->next;
        if (m->tree.any_case) {
                r->now.equal_count = case_fold_equals(r->next, r->now.equals);
                m->steps_taken += r->next < 0x80 ? 0 : STEPS_OF_FOLDING;
        }
        r->at += r->size;
        r->next = decode_code_point(r->text + r->at, r->n - r->at, &r->size);
        r->position = describe_position(r->now.code, r->next);
        return true;
}

static bool has_match_state(const struct regex_match *m, const struct states *s)
{
        for (uint32_t i = 0; i < s->count; i++)
                if (m->program[s->members[i]].op == OP_MATCH)
                        return true;
        return false;
}

static bool run_program(struct regex_match *m, const char *text, size_t n)
{
        struct states *now = &m->now, *next = &m->next;
        struct text_reader r;

        start_reading_text(&r, text, n);
        now->count = 0;
        add_regex_state(m, now, 0, r.position);
        while (now->count && read_text_code(m, &r)) {
                struct states *swap;

                if (m->is_search && has_match_state(m, now))
                        return true;
                next->count = 0;
                for (uint32_t j = 0; j < now->count; j++) {
                        const struct instruction *in = &m->program[now->members[j]];

                        if (in->op == OP_SET && is_in_set(m, in->x, &r.now))
                                add_regex_state(m, next, now->members[j] + 1, r.position);
                }
                if (m->is_search) /* a match may start after any code point */
                        add_regex_state(m, next, 0, r.position);
                if (!work_meter_add_regex(m->meter, m->steps_taken + now->count))
                        return false;
                m->steps_taken = 0;
                swap = now;
                now = next;
                next = swap;
        }
        return has_match_state(m, now);
}

static bool is_remembered_text(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct known_text *k = (const struct known_text *)context + entry;

        return k->size == size && memcmp(k->text, key, size) == 0;
}

/* If out of memory the result is not cached. */
static void remember_text(struct regex_match *m, uint32_t hash, const char *text, size_t n, bool matches)
{
        const char *copy;

        if (!array_reserve(&m->results, &m->result_capacity, m->known.count) ||
            hash_table_reserve(&m->known, NULL) != ST_OK)
                return;
        copy = arena_strndup(&m->texts, text, n);
        if (!copy)
                return;
        m->results[m->known.count] = (struct known_text){ copy, n, matches };
        hash_table_insert(&m->known, hash, m->known.count);
}

bool regex_match_text(void *context, const char *text, size_t n)
{
        struct regex_match *m = context;
        uint32_t hash = hash_table_hash(text, n), entry;
        bool matches;

        if (hash_table_find(&m->known, hash, is_remembered_text, m->results, text, n, &entry))
                return m->results[entry].matches;
        matches = run_program(m, text, n);
        remember_text(m, hash, text, n, matches);
        return matches;
}

bool regex_match_once(struct regex_match *m, const char *text, size_t n)
{
        return run_program(m, text, n);
}

/* ---- captures ------------------------------------------------------------------------------------ */

/* A walk over the program without reading: place in the text, and destination of the members' slots. */
struct capture_walk {
        struct regex_match *m;
        struct states *states;
        struct capture_slots *slots; /* one per member of states */
        size_t offset;               /* in the text */
        uint32_t position;           /* what holds there (AT_) */
};

/*
 * Like add_regex_state(), with the captures of each path. Preferred paths are walked first, so members are in order of
 * preference. Depth is bounded by the program's size.
 */
static void add_capture_state(const struct capture_walk *w, uint32_t pc, struct capture_slots *way)
{
        struct states *s = w->states;
        const struct instruction *in = &w->m->program[pc];
        uint32_t place = s->places[pc];
        size_t before;

        if (place < s->count && s->members[place] == pc)
                return;
        assert(s->count < w->m->size);
        s->places[pc] = s->count;
        w->slots[s->count] = *way;
        s->members[s->count++] = pc;
        switch (in->op) {
        case OP_JUMP:
                add_capture_state(w, in->x, way);
                break;
        case OP_SPLIT:
                add_capture_state(w, in->x, way);
                add_capture_state(w, in->y, way);
                break;
        case OP_SAVE:
                before = way->at[in->x];
                way->at[in->x] = w->offset;
                add_capture_state(w, pc + 1, way);
                way->at[in->x] = before;
                break;
        case OP_ASSERT:
                if (in->x & w->position)
                        add_capture_state(w, pc + 1, way);
                break;
        case OP_SET:
        case OP_MATCH:
                break;
        }
}

static bool run_capture_program(struct regex_match *m, const char *text, size_t n, struct capture_slots *ret)
{
        struct states *now = &m->now, *next = &m->next;
        struct capture_slots *slots = m->now_slots, *next_slots = m->next_slots, way;
        struct capture_walk w = { .m = m, .states = now, .slots = slots };
        struct text_reader r;

        start_reading_text(&r, text, n);
        w.position = r.position;
        for (size_t i = 0; i < CAPTURE_SLOTS; i++)
                way.at[i] = NOT_CAPTURED;
        now->count = 0;
        add_capture_state(&w, 0, &way);
        while (now->count && read_text_code(m, &r)) {
                struct states *states = now;
                struct capture_slots *swap = slots;

                next->count = 0;
                w = (struct capture_walk){
                        .m = m, .states = next, .slots = next_slots, .offset = r.at, .position = r.position
                };
                for (uint32_t j = 0; j < now->count; j++) {
                        const struct instruction *in = &m->program[now->members[j]];

                        way = slots[j];
                        if (in->op == OP_SET && is_in_set(m, in->x, &r.now))
                                add_capture_state(&w, now->members[j] + 1, &way);
                }
                now = next;
                next = states;
                slots = next_slots;
                next_slots = swap;
        }
        for (uint32_t i = 0; i < now->count; i++)
                if (m->program[now->members[i]].op == OP_MATCH) {
                        *ret = slots[i];
                        return true;
                }
        return false;
}

bool regex_match_capture(struct regex_match *m, const char *text, size_t n,
                         struct regex_capture ret[static REGEX_CAPTURES])
{
        struct capture_slots found;

        assert(m->has_captures);
        if (!run_capture_program(m, text, n, &found))
                return false;
        ret[0] = (struct regex_capture){ text, n };
        for (size_t i = 1; i < REGEX_CAPTURES; i++) {
                size_t from = found.at[2 * i], to = found.at[2 * i + 1];

                ret[i] = (struct regex_capture){ text, 0 };
                if (from != NOT_CAPTURED && to != NOT_CAPTURED)
                        ret[i] = (struct regex_capture){ text + from, to - from };
        }
        return true;
}

int regex_match_find_group(const struct regex_match *m, const char *name, size_t n)
{
        for (size_t i = 0; i < m->tree.name_count; i++)
                if (m->tree.names[i].size == n && memcmp(m->tree.pattern + m->tree.names[i].start, name, n) == 0)
                        return (int)m->tree.names[i].number;
        return -1;
}
