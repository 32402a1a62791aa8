/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass from left to right over what stands outside of all brackets. What was gathered is forgotten wherever it
 * turns out to have been a type (a blank, '*' or '&' ends those), so that the last qualified name before the
 * parameters is left. Operators come first everywhere: their brackets open nothing.
 */
#include "symbolizer/short_name.h"

#include <stdbool.h>
#include <string.h>

#include "common/limits.h"
#include "symbolizer/name_scan.h"

struct shortener {
        struct name_scan in;
        struct buf *out;
        size_t base;    /* of out: a prefix as in "vtable for " ends here */
        unsigned inner; /* parentheses around the name, as in "void (*f(int))(char)" */
};

enum step { STEP_ON, STEP_DONE, STEP_BROKEN };

static bool at_component_start(const struct shortener *s)
{
        const struct buf *b = s->out;

        return b->size == s->base || (b->size >= s->base + 2 && memcmp(b->data + b->size - 2, "::", 2) == 0);
}

static void copy_to(struct shortener *s, size_t end)
{
        buf_append(s->out, s->in.text + s->in.at, end - s->in.at);
        s->in.at = end;
}

static void forget(struct shortener *s)
{
        s->out->size = s->base;
}

/* "<T as Trait>", "<impl T for U>", "<lambda(int)>": the arguments of the types in it are left out. */
static enum step copy_angle(struct shortener *s)
{
        size_t end = name_scan_balanced(&s->in, s->in.at);

        if (!end)
                return STEP_BROKEN;
        while (s->in.at < end) {
                char c = s->in.text[s->in.at];

                if (c == '<' && s->in.at && name_char_takes_arguments(s->in.text[s->in.at - 1])) {
                        size_t after = name_scan_balanced(&s->in, s->in.at);

                        if (!after)
                                return STEP_BROKEN;
                        buf_append_str(s->out, "<...>");
                        s->in.at = after;
                        continue;
                }
                copy_to(s, s->in.at + 1);
        }
        return STEP_ON;
}

/* "<alloc::vec::Vec<T>>::push" is "alloc::vec::Vec<...>::push". */
static bool is_plain_type(const struct shortener *s, size_t end)
{
        for (size_t i = s->in.at + 1, depth = 0; i + 1 < end; i++) {
                char c = s->in.text[i];

                depth += c == '<';
                if (c == '>' && depth)
                        depth--;
                if (!depth && (c == ' ' || c == '(' || c == '[' || c == '&' || c == '*' || c == '{'))
                        return false;
        }
        return true;
}

static enum step take_angle(struct shortener *s)
{
        size_t end = name_scan_balanced(&s->in, s->in.at), mark = s->out->size;
        enum step step;

        if (!end)
                return STEP_BROKEN;
        if (!at_component_start(s)) {
                buf_append_str(s->out, "<...>");
                s->in.at = end;
                return STEP_ON;
        }
        if (!name_scan_starts(&s->in, s->in.at, "<lambda") && !name_scan_starts(&s->in, s->in.at, "<unnamed") &&
            end < s->in.size && is_plain_type(s, end)) {
                step = copy_angle(s);
                if (step == STEP_ON && !s->out->failed) { /* take the brackets off */
                        memmove(s->out->data + mark, s->out->data + mark + 1, s->out->size - mark - 2);
                        s->out->size -= 2;
                }
                return step;
        }
        return copy_angle(s);
}

/* "::<i32>" behind a Rust path is its arguments; "::<impl T>" and "::<lambda()>" are parts of the path. */
static void take_colon(struct shortener *s)
{
        const struct name_scan *in = &s->in;

        if (name_scan_starts(in, in->at, "::<") && s->out->size > s->base &&
            !name_scan_starts(in, in->at, "::<impl ") && !name_scan_starts(in, in->at, "::<lambda") &&
            !name_scan_starts(in, in->at, "::<unnamed"))
                s->in.at += 2;
        else if (name_scan_starts(in, in->at, "::"))
                copy_to(s, in->at + 2);
        else
                copy_to(s, in->at + 1);
}

static enum step take_parenthesis(struct shortener *s)
{
        const struct name_scan *in = &s->in;
        size_t end = name_scan_balanced(in, in->at);

        if (!end)
                return STEP_BROKEN;
        if (at_component_start(s)) {
                bool is_name = in->at == 0 || !strchr(" *&", in->text[in->at - 1]) ||
                               name_scan_starts(in, in->at, "(anonymous") || name_scan_starts(in, in->at, "(lambda") ||
                               name_scan_starts(in, in->at, "(unnamed");

                if (is_name) {
                        copy_to(s, end);
                        return STEP_ON;
                }
                s->inner++;
                s->in.at++;
                return STEP_ON;
        }
        end = name_scan_qualifiers(in, end);
        if (!name_scan_starts(in, end, "::"))
                return STEP_DONE;
        s->in.at = end; /* something local to a function */
        return STEP_ON;
}

/* "{lambda(int)#1}" loses its parameters; "{closure#0}", "{{closure}}" and "{unnamed type#1}" stay. */
static enum step take_brace(struct shortener *s)
{
        size_t end = name_scan_balanced(&s->in, s->in.at), number;

        if (!end)
                return STEP_BROKEN;
        if (name_scan_starts(&s->in, s->in.at, "{lambda")) {
                for (number = end; number > s->in.at && s->in.text[number] != '#'; number--)
                        ;
                if (number > s->in.at) {
                        buf_append_str(s->out, "{lambda");
                        s->in.at = number;
                }
        }
        copy_to(s, end);
        return STEP_ON;
}

/* "operator<", "operator new", "operator std::vector<int>". */
static enum step take_operator(struct shortener *s)
{
        size_t symbol = name_scan_operator(&s->in, s->in.at), end;

        if (symbol) {
                copy_to(s, symbol);
                if (name_scan_starts(&s->in, s->in.at, " <")) /* "operator< <int>" */
                        copy_to(s, symbol + 1);
                if (s->in.at < s->in.size && s->in.text[s->in.at] == '<') {
                        end = name_scan_balanced(&s->in, s->in.at);
                        if (!end)
                                return STEP_BROKEN;
                        buf_append_str(s->out, "<...>");
                        s->in.at = end;
                }
                return STEP_ON;
        }
        copy_to(s, s->in.at + strlen("operator"));
        while (s->in.at < s->in.size && s->in.text[s->in.at] != '(') { /* the type that it makes */
                if (s->in.text[s->in.at] == '<') {
                        end = name_scan_balanced(&s->in, s->in.at);
                        if (!end)
                                return STEP_BROKEN;
                        buf_append_str(s->out, "<...>");
                        s->in.at = end;
                } else {
                        copy_to(s, s->in.at + 1);
                }
        }
        return STEP_ON;
}

static enum step take_bracket(struct shortener *s)
{
        size_t end = name_scan_balanced(&s->in, s->in.at);

        if (!end)
                return STEP_BROKEN;
        if (name_scan_starts(&s->in, s->in.at, "[abi:"))
                s->in.at = end;
        else
                copy_to(s, end);
        return STEP_ON;
}

static enum step take_next(struct shortener *s)
{
        const struct name_scan *in = &s->in;
        size_t end;

        if (name_scan_word(in, in->at, "operator"))
                return take_operator(s);
        if (name_scan_word(in, in->at, "decltype")) {
                s->in.at += strlen("decltype");
                s->in.at += in->at < in->size && in->text[in->at] == ' ';
                if (in->at == in->size || in->text[in->at] != '(')
                        return STEP_BROKEN;
                end = name_scan_balanced(in, in->at);
                s->in.at = end;
                return end ? STEP_ON : STEP_BROKEN;
        }
        switch (in->text[in->at]) {
        case '<':
                return take_angle(s);
        case '(':
                return take_parenthesis(s);
        case '{':
                return take_brace(s);
        case '[':
                return take_bracket(s);
        case ')':
                return s->inner ? STEP_DONE : STEP_BROKEN;
        case '>':
        case '}':
        case ']':
                return STEP_BROKEN;
        case ' ':
        case '*':
        case '&':
                forget(s);
                s->in.at++;
                return STEP_ON;
        case ':':
                take_colon(s);
                return STEP_ON;
        default:
                copy_to(s, in->at + 1);
                return STEP_ON;
        }
}

static void take_prefix(struct shortener *s)
{
        static const char *const prefixes[] = {
                "vtable for ", "VTT for ", "typeinfo for ", "typeinfo name for ", "guard variable for ",
                "non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to ", "TLS init function for ",
                "TLS wrapper function for ", "global constructors keyed to ",
        };

        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
                if (name_scan_starts(&s->in, 0, prefixes[i])) {
                        copy_to(s, strlen(prefixes[i]));
                        break;
                }
        s->base = s->out->size;
}

/* False when the name does not follow the rules of C++ and Rust. */
static bool shorten_scoped(const char *name, size_t n, struct buf *out)
{
        struct shortener s = { .in = { name, n, 0 }, .out = out };
        enum step step = STEP_ON;

        take_prefix(&s);
        while (step == STEP_ON && s.in.at < n)
                step = take_next(&s);
        name_drop_rust_hash(out);
        return step != STEP_BROKEN && out->size > s.base;
}

/*
 * "net/http.(*conn).serve": what stands behind the last slash that is outside of brackets, and "[...]" for what is in
 * them. Dots in the last element of a path are escaped in the binary ("yaml%2ev3").
 */
static bool shorten_go(const char *name, size_t n, struct buf *out)
{
        struct name_scan in = { name, n, 0 };
        size_t end;

        while (in.at < n) {
                char c = name[in.at];

                if (c == '[') {
                        end = name_scan_balanced(&in, in.at);
                        if (!end)
                                return false;
                        buf_append_str(out, "[...]");
                        in.at = end;
                        continue;
                }
                if (c == '/')
                        buf_clear(out);
                else if (name_scan_starts(&in, in.at, "%2e"))
                        buf_append_u8(out, '.');
                else
                        buf_append_u8(out, (uint8_t)c);
                in.at += name_scan_starts(&in, in.at, "%2e") ? 3 : 1;
        }
        return true;
}

static bool starts_with(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

const char *symbol_short_name(const char *name, const char *linkage_name, struct buf *scratch)
{
        size_t whole = strlen(name), n = name_without_clones(name, whole);
        const char *ret;
        bool done = false;

        buf_clear(scratch);
        if (starts_with(linkage_name, "_D"))
                return name;
        if (starts_with(linkage_name, "_Z") || starts_with(linkage_name, "_R") || name_looks_scoped(name, n))
                done = shorten_scoped(name, n, scratch);
        else if (name_looks_go(name, n))
                done = shorten_go(name, n, scratch);
        if (!done) {
                buf_clear(scratch);
                buf_append(scratch, name, n);
        }
        if (scratch->failed || scratch->size == 0 || scratch->size >= whole)
                return name;
        ret = buf_cstr(scratch);
        return ret ? ret : name;
}
