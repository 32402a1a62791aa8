/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/short_name.h"

#include <stdbool.h>
#include <string.h>

#include "common/text.h"

/* ---- scanning names ---- */

struct name_scan {
        const char *text; /* size bytes followed by a NUL or another readable byte */
        size_t size, at;
};

#define NAME_DEPTH_MAX 512

static bool is_digit_char(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_word_char(char c)
{
        static const bool word_chars[256] = {
                ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
                ['_'] = true,         ['$'] = true,         [0x80 ... 0xff] = true,
        };

        return word_chars[(uint8_t)c];
}

/* Whether template arguments may follow this byte. */
static bool name_char_takes_arguments(char c)
{
        return is_word_char(c) || c == '}' || c == ']' || c == '\'';
}

/* True if the input has `text`, which is not empty, at `at`. */
static bool name_scan_starts(const struct name_scan *s, size_t at, const char *text)
{
        size_t n = strlen(text);

        return at < s->size && s->text[at] == *text && n <= s->size - at && memcmp(s->text + at, text, n) == 0;
}

/* Like name_scan_starts() for a whole word: not adjacent to a letter or digit. */
static bool name_scan_word(const struct name_scan *s, size_t at, const char *word)
{
        size_t end = at + strlen(word);

        return name_scan_starts(s, at, word) && (at == 0 || !is_word_char(s->text[at - 1])) &&
               (end == s->size || !is_word_char(s->text[end]));
}

/* ---- brackets ---- */

static char get_closer(char c)
{
        return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : c == '<' ? '>' : 0;
}

/* True if '<' opens template arguments after a name, or a type in brackets ("<T as Trait>") in place of a name. */
static bool opens_angle(const struct name_scan *s, size_t at, size_t last_open)
{
        char before = at ? s->text[at - 1] : ' ';

        if (before == '<')
                return at && last_open == at - 1;
        if (before == ' ') /* demanglers do not print "a < b", but "operator< <int>" */
                return true;
        return name_char_takes_arguments(before) || strchr(",(&*:[-!", before);
}

static size_t name_scan_operator(const struct name_scan *s, size_t at);

/*
 * The position after the bracket that closes the one at `at`; 0 if none does, or if they nest deeper than
 * NAME_DEPTH_MAX. '<' and '>' of operators, arrows and comparisons in parentheses are not brackets.
 */
static size_t name_scan_balanced(const struct name_scan *s, size_t at)
{
        char closers[NAME_DEPTH_MAX];
        size_t depth = 0, last_open = SIZE_MAX;

        while (at < s->size) {
                char c = s->text[at];
                size_t operator_end = name_scan_word(s, at, "operator") ? name_scan_operator(s, at) : 0;

                if (operator_end) {
                        at = operator_end;
                        continue;
                }
                if (get_closer(c) && (depth == 0 || c != '<' || opens_angle(s, at, last_open))) {
                        if (depth == NAME_DEPTH_MAX)
                                return 0;
                        closers[depth++] = get_closer(c);
                        last_open = at;
                } else if (depth == 0) {
                        return 0; /* no bracket at `at` */
                } else if (c == '>' && (closers[depth - 1] != '>' || s->text[at - 1] == '-')) {
                        ; /* an arrow, or a comparison in parentheses */
                } else if (c == ')' || c == ']' || c == '}' || c == '>') {
                        while (depth > 1 && closers[depth - 1] == '>' && c != '>')
                                depth--; /* it was a comparison */
                        if (closers[--depth] != c)
                                return 0;
                        if (depth == 0)
                                return at + 1;
                }
                at++;
        }
        return 0;
}

/* The position after the symbol of the operator whose keyword is at `at`; 0 for a conversion operator. */
static size_t name_scan_operator(const struct name_scan *s, size_t at)
{
        /* longer operators before their prefixes */
        static const char *const symbols[] = {
                "()", "[]", "->*", "->", "<=>", "<<=", ">>=",    "<<",   ">>",        "<=",      ">=",
                "==", "!=", "&&",  "||", "++",  "--",  "+=",     "-=",   "*=",        "/=",      "%=",
                "^=", "&=", "|=",  "+",  "-",   "*",   "/",      "%",    "^",         "&",       "|",
                "~",  "!",  "=",   "<",  ">",   ",",   " new[]", " new", " delete[]", " delete", " co_await",
        };

        at += strlen("operator");
        if (name_scan_starts(s, at, "\"\"")) { /* operator"" _suffix */
                at += 2;
                at += at < s->size && s->text[at] == ' ';
                while (at < s->size && is_word_char(s->text[at]))
                        at++;
                return at;
        }
        for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
                size_t end = at + strlen(symbols[i]);

                if (name_scan_starts(s, at, symbols[i]) &&
                    (symbols[i][0] != ' ' || end == s->size || !is_word_char(s->text[end])))
                        return end;
        }
        return 0;
}

/* The position after qualifiers that may follow parameters: const, volatile, &, &&, noexcept, [abi:...]. */
static size_t name_scan_qualifiers(const struct name_scan *s, size_t at)
{
        static const char *const words[] = { " const", " volatile", " noexcept", " __restrict", " restrict", " &&",
                                             " &",     "&&",        "&" };
        bool more = true;

        while (more) {
                more = false;
                for (size_t i = 0; !more && i < sizeof words / sizeof *words; i++)
                        if (name_scan_starts(s, at, words[i])) {
                                at += strlen(words[i]);
                                more = true;
                        }
                if (!more && name_scan_starts(s, at, "[abi:")) {
                        size_t end = name_scan_balanced(s, at);

                        more = end != 0;
                        at = end ? end : at;
                }
        }
        return at;
}

/* ---- suffixes ---- */

/* Start of the clone suffix that ends at n: ".cold", or ".isra.0" with any number; n if there is none. */
static size_t find_suffix_start(const char *name, size_t n)
{
        static const char *const words[] = { ".isra", ".part", ".constprop", ".lto_priv", ".llvm", ".cold", ".__uniq" };
        size_t end = n;

        while (end && is_digit_char(name[end - 1]))
                end--;
        if (end && end < n && name[end - 1] == '.')
                end--;
        else
                end = n;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
                size_t size = strlen(words[i]);
                bool numbered = end < n || strcmp(words[i], ".cold") == 0;

                if (numbered && end > size && memcmp(name + end - size, words[i], size) == 0)
                        return end - size;
        }
        return n;
}

/* " [clone .isra.0]" of libiberty, " (.isra.0)" of LLVM. */
static size_t find_bracketed_start(const char *name, size_t n, const char *open, char close)
{
        size_t size = strlen(open);

        for (size_t i = n; n && name[n - 1] == close && i-- > 1;)
                if (n - i > size && memcmp(name + i, open, size) == 0)
                        return i;
        return n;
}

size_t symbol_name_without_clones(const char *name, size_t n)
{
        for (;;) {
                size_t end = find_bracketed_start(name, n, " [clone .", ']');

                if (end == n)
                        end = find_bracketed_start(name, n, " (.", ')');
                if (end == n)
                        end = find_suffix_start(name, n);
                if (end == n || end == 0)
                        return n;
                n = end;
        }
}

size_t symbol_name_without_rust_hash(const char *name, size_t n)
{
        static const char mark[] = "::h";
        const size_t size = strlen(mark) + 16;
        const char *hash;

        if (n <= size)
                return n;
        hash = name + n - size;
        if (memcmp(hash, mark, strlen(mark)) != 0)
                return n;
        for (size_t i = strlen(mark); i < size; i++)
                if (!is_digit_char(hash[i]) && (hash[i] < 'a' || hash[i] > 'f'))
                        return n;
        return n - size;
}

/* ---- language ---- */

/* True for "::" outside of brackets, or parameters after a word. */
static bool name_looks_scoped(const char *name, size_t n)
{
        for (size_t i = 1; i < n; i++) {
                if (name[i] == ':' && name[i - 1] == ':' && i + 1 < n)
                        return true;
                if (name[i] == '(' && (name_char_takes_arguments(name[i - 1]) || name[i - 1] == '>'))
                        return true;
                if (name[i] == '[' || name[i] == '/')
                        return false;
        }
        return false;
}

/* True for "path/package.Function", or type arguments in "[]" after a word. */
static bool name_looks_go(const char *name, size_t n)
{
        size_t slash = 0;
        bool dot = false;

        for (size_t i = 0; i < n && name[i] != '('; i++) {
                if (name[i] == '[')
                        return i && dot && is_word_char(name[i - 1]);
                if (name[i] == ' ' || name[i] == ':')
                        return false;
                if (name[i] == '/') {
                        slash = i;
                        dot = false;
                }
                dot |= name[i] == '.';
        }
        return slash && name[0] != '/' && dot;
}

/* ---- shortening ---- */

/*
 * One pass from left to right over the text outside of all brackets. At a blank, '*' or '&' the output so far was a
 * type and is discarded, so that the last qualified name before the parameters remains. Operators are matched first:
 * their brackets do not nest.
 */

struct shortener {
        struct name_scan in;
        struct buf *out;
        size_t base;    /* in out: end of a prefix such as "vtable for " */
        unsigned inner; /* parentheses around the name, as in "void (*f(int))(char)" */
};

enum step { STEP_ON, STEP_DONE, STEP_BROKEN };

static bool is_component_start(const struct shortener *s)
{
        const struct buf *b = s->out;

        return b->size == s->base || (b->size >= s->base + 2 && memcmp(b->data + b->size - 2, "::", 2) == 0);
}

static void copy_input(struct shortener *s, size_t end)
{
        buf_append(s->out, s->in.text + s->in.at, end - s->in.at);
        s->in.at = end;
}

static void discard_output(struct shortener *s)
{
        s->out->size = s->base;
}

/* Copy "<T as Trait>", "<impl T for U>" or "<lambda(int)>" without the arguments of their types. */
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
                copy_input(s, s->in.at + 1);
        }
        return STEP_ON;
}

/* "<alloc::vec::Vec<T>>::push" becomes "alloc::vec::Vec<...>::push". */
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

static enum step shorten_angle(struct shortener *s)
{
        size_t end = name_scan_balanced(&s->in, s->in.at), mark = s->out->size;
        enum step step;

        if (!end)
                return STEP_BROKEN;
        if (!is_component_start(s)) {
                buf_append_str(s->out, "<...>");
                s->in.at = end;
                return STEP_ON;
        }
        if (!name_scan_starts(&s->in, s->in.at, "<lambda") && !name_scan_starts(&s->in, s->in.at, "<unnamed") &&
            end < s->in.size && is_plain_type(s, end)) {
                step = copy_angle(s);
                if (step == STEP_ON && !s->out->failed) { /* remove the brackets */
                        memmove(s->out->data + mark, s->out->data + mark + 1, s->out->size - mark - 2);
                        s->out->size -= 2;
                }
                return step;
        }
        return copy_angle(s);
}

/* "::<i32>" after a Rust path is its arguments; "::<impl T>" and "::<lambda()>" are parts of the path. */
static void shorten_colon(struct shortener *s)
{
        const struct name_scan *in = &s->in;

        if (name_scan_starts(in, in->at, "::<") && s->out->size > s->base &&
            !name_scan_starts(in, in->at, "::<impl ") && !name_scan_starts(in, in->at, "::<lambda") &&
            !name_scan_starts(in, in->at, "::<unnamed"))
                s->in.at += 2;
        else if (name_scan_starts(in, in->at, "::"))
                copy_input(s, in->at + 2);
        else
                copy_input(s, in->at + 1);
}

static enum step shorten_parenthesis(struct shortener *s)
{
        const struct name_scan *in = &s->in;
        size_t end = name_scan_balanced(in, in->at);

        if (!end)
                return STEP_BROKEN;
        if (is_component_start(s)) {
                bool is_name = in->at == 0 || !strchr(" *&", in->text[in->at - 1]) ||
                               name_scan_starts(in, in->at, "(anonymous") || name_scan_starts(in, in->at, "(lambda") ||
                               name_scan_starts(in, in->at, "(unnamed");

                if (is_name) {
                        copy_input(s, end);
                        return STEP_ON;
                }
                s->inner++;
                s->in.at++;
                return STEP_ON;
        }
        end = name_scan_qualifiers(in, end);
        if (!name_scan_starts(in, end, "::"))
                return STEP_DONE;
        s->in.at = end; /* an entity local to a function */
        return STEP_ON;
}

/* "{lambda(int)#1}" loses its parameters; "{closure#0}", "{{closure}}" and "{unnamed type#1}" are kept. */
static enum step shorten_brace(struct shortener *s)
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
        copy_input(s, end);
        return STEP_ON;
}

/* "operator<", "operator new", "operator std::vector<int>". */
static enum step shorten_operator(struct shortener *s)
{
        size_t symbol = name_scan_operator(&s->in, s->in.at), end;

        if (symbol) {
                copy_input(s, symbol);
                if (name_scan_starts(&s->in, s->in.at, " <")) /* "operator< <int>" */
                        copy_input(s, symbol + 1);
                if (s->in.at < s->in.size && s->in.text[s->in.at] == '<') {
                        end = name_scan_balanced(&s->in, s->in.at);
                        if (!end)
                                return STEP_BROKEN;
                        buf_append_str(s->out, "<...>");
                        s->in.at = end;
                }
                return STEP_ON;
        }
        copy_input(s, s->in.at + strlen("operator"));
        while (s->in.at < s->in.size && s->in.text[s->in.at] != '(') { /* the type of the conversion */
                if (s->in.text[s->in.at] == '<') {
                        end = name_scan_balanced(&s->in, s->in.at);
                        if (!end)
                                return STEP_BROKEN;
                        buf_append_str(s->out, "<...>");
                        s->in.at = end;
                } else {
                        copy_input(s, s->in.at + 1);
                }
        }
        return STEP_ON;
}

static enum step shorten_bracket(struct shortener *s)
{
        size_t end = name_scan_balanced(&s->in, s->in.at);

        if (!end)
                return STEP_BROKEN;
        if (name_scan_starts(&s->in, s->in.at, "[abi:"))
                s->in.at = end;
        else
                copy_input(s, end);
        return STEP_ON;
}

/* "decltype(x) f()" loses the type. */
static enum step shorten_decltype(struct shortener *s)
{
        const struct name_scan *in = &s->in;
        size_t end;

        s->in.at += strlen("decltype");
        s->in.at += in->at < in->size && in->text[in->at] == ' ';
        if (in->at == in->size || in->text[in->at] != '(')
                return STEP_BROKEN;
        end = name_scan_balanced(in, in->at);
        s->in.at = end;
        return end ? STEP_ON : STEP_BROKEN;
}

static enum step shorten_word(struct shortener *s)
{
        const struct name_scan *in = &s->in;
        size_t end = in->at;

        if (name_scan_word(in, in->at, "operator"))
                return shorten_operator(s);
        if (name_scan_word(in, in->at, "decltype"))
                return shorten_decltype(s);
        while (end < in->size && is_word_char(in->text[end]))
                end++;
        copy_input(s, end);
        return STEP_ON;
}

static enum step shorten_next(struct shortener *s)
{
        const struct name_scan *in = &s->in;

        if (is_word_char(in->text[in->at]))
                return shorten_word(s);
        switch (in->text[in->at]) {
        case '<':
                return shorten_angle(s);
        case '(':
                return shorten_parenthesis(s);
        case '{':
                return shorten_brace(s);
        case '[':
                return shorten_bracket(s);
        case ')':
                return s->inner ? STEP_DONE : STEP_BROKEN;
        case '>':
        case '}':
        case ']':
                return STEP_BROKEN;
        case ' ':
        case '*':
        case '&':
                discard_output(s);
                s->in.at++;
                return STEP_ON;
        case ':':
                shorten_colon(s);
                return STEP_ON;
        default:
                copy_input(s, in->at + 1);
                return STEP_ON;
        }
}

static void copy_prefix(struct shortener *s)
{
        static const char *const prefixes[] = {
                "vtable for ",
                "VTT for ",
                "typeinfo for ",
                "typeinfo name for ",
                "guard variable for ",
                "non-virtual thunk to ",
                "virtual thunk to ",
                "covariant return thunk to ",
                "TLS init function for ",
                "TLS wrapper function for ",
                "global constructors keyed to ",
        };

        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
                if (name_scan_starts(&s->in, 0, prefixes[i])) {
                        copy_input(s, strlen(prefixes[i]));
                        break;
                }
        s->base = s->out->size;
}

/* False if the name does not follow the syntax of C++ or Rust. */
static bool shorten_scoped(const char *name, size_t n, struct buf *out)
{
        struct shortener s = { .in = { name, n, 0 }, .out = out };
        enum step step = STEP_ON;

        copy_prefix(&s);
        while (step == STEP_ON && s.in.at < n)
                step = shorten_next(&s);
        out->size = symbol_name_without_rust_hash((const char *)out->data, out->size);
        return step != STEP_BROKEN && out->size > s.base;
}

/*
 * "net/http.(*conn).serve": the text after the last slash outside of brackets; brackets become "[...]". Dots in the
 * last element of a path are escaped in the binary ("yaml%2ev3").
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

/* A single word, usually the name of a C function, is not shortened. */
static bool name_is_word(const char *name)
{
        while (is_word_char(*name))
                name++;
        return !*name;
}

const char *symbol_short_name(const char *name, const char *linkage_name, struct buf *scratch)
{
        size_t whole, n;
        const char *ret;
        bool done = false;

        if (name_is_word(name) || starts_with(linkage_name, "_D"))
                return name;
        buf_clear(scratch);
        whole = strlen(name);
        n = symbol_name_without_clones(name, whole);
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
