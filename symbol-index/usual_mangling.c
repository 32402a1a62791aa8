/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function steps over one rule of the grammar. It returns the place behind it, or NULL. The NUL at the end of the
 * name fits no rule, so only the length of an identifier is compared with the end.
 *
 * skip_mangled_list() steps over most of a C++ name in one loop with a stack of bits. It does not test that what it
 * finds in a list fits together, as a template argument without a template: compilers do not write such names.
 */
#include "symbol-index/usual_mangling.h"

#include <stdint.h>

#define BYTES_MAX 2048 /* of a name; bounds the depth of the recursion */

static inline bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static inline bool is_upper(char c)
{
        return c >= 'A' && c <= 'Z';
}

static inline bool is_lower(char c)
{
        return c >= 'a' && c <= 'z';
}

static inline const char *skip_name_digits(const char *p)
{
        while (is_digit(*p))
                p++;
        return p;
}

static inline const char *skip_char(const char *p, char c)
{
        return *p == c ? p + 1 : NULL;
}

/* Its length and its text. */
static inline const char *skip_identifier(const char *p, const char *end)
{
        size_t n = 0;

        while (is_digit(*p) && n < BYTES_MAX)
                n = n * 10 + (size_t)(*p++ - '0');
        return n && n <= (size_t)(end - p) ? p + n : NULL;
}

/* ---- C++ ---- */

static const char *skip_type(const char *p, const char *end);
static const char *skip_encoding(const char *p, const char *end);
static const char *skip_name(const char *p, const char *end);

enum list {
        LIST_TYPES,      /* and template arguments, up to E */
        LIST_NAMES,      /* of a nested name, up to E */
        LIST_PARAMETERS, /* types up to the end of the name, or of the function's name in another one: not consumed */
};
static const char *skip_mangled_list(const char *p, const char *end, enum list list);

/* Of a substitution or a template parameter, behind its letter. */
static inline const char *skip_index(const char *p)
{
        while (is_digit(*p) || is_upper(*p))
                p++;
        return skip_char(p, '_');
}

/* Behind 'L'. */
static const char *skip_literal(const char *p, const char *end)
{
        if (p[0] == '_' && p[1] == 'Z')
                p = skip_encoding(p + 2, end);
        else if ((p = skip_type(p, end)))
                p = skip_name_digits(*p == 'n' ? p + 1 : p);
        return p ? skip_char(p, 'E') : NULL;
}

static inline const char *skip_optional_arguments(const char *p, const char *end)
{
        return p && *p == 'I' ? skip_mangled_list(p + 1, end, LIST_TYPES) : p;
}

/* Those of std::enable_if and of packs. */
static const char *skip_expression(const char *p, const char *end)
{
        if (p[0] == 'L')
                return skip_literal(p + 1, end);
        if (p[0] == 'T')
                return skip_index(p + 1);
        if ((p[0] == 'n' && p[1] == 't') || (p[0] == 's' && p[1] == 'p'))
                return skip_expression(p + 2, end);
        if ((p[0] == 'a' && p[1] == 'a') || (p[0] == 'o' && p[1] == 'o')) {
                p = skip_expression(p + 2, end);
                return p ? skip_expression(p, end) : NULL;
        }
        if (p[0] == 's' && p[1] == 'r') {
                p = skip_type(p + 2, end);
                if (!p)
                        return NULL;
        }
        return skip_optional_arguments(skip_identifier(p, end), end);
}

static const char *skip_operator(const char *p, const char *end)
{
        static const char seconds['z' - 'a' + 1][7] = {
                ['a' - 'a'] = "dnNSa",  ['c' - 'a'] = "olm", ['d' - 'a'] = "elavV",  ['e' - 'a'] = "oOq",
                ['g' - 'a'] = "te",     ['i' - 'a'] = "x",   ['l' - 'a'] = "sSte",   ['m' - 'a'] = "ilILm",
                ['n' - 'a'] = "wageat", ['o' - 'a'] = "rRo", ['p' - 'a'] = "slLpmt", ['r' - 'a'] = "mMsS",
                ['s' - 'a'] = "s",
        };
        const char *second;

        if (!is_lower(*p))
                return NULL;
        if (p[0] == 'c' && p[1] == 'v')
                return skip_type(p + 2, end);
        for (second = seconds[*p - 'a']; *second && *second != p[1];)
                second++;
        return *second ? p + 2 : NULL;
}

/* A lambda or a type without a name, behind 'U'. */
static const char *skip_closure(const char *p, const char *end)
{
        if (*p == 'l')
                p = skip_mangled_list(p + 1, end, LIST_TYPES);
        else
                p = skip_char(p, 't');
        return p ? skip_char(skip_name_digits(p), '_') : NULL;
}

static inline const char *skip_unqualified_name(const char *p, const char *end)
{
        if (*p == 'L')
                p++;
        if (is_digit(*p))
                p = skip_identifier(p, end);
        else if (p[0] == 'C' && p[1] == 'I' && is_digit(p[2]))
                p = skip_type(p + 3, end);
        else if (*p == 'C' || *p == 'D')
                p = p[1] >= '0' && p[1] <= '4' ? p + 2 : NULL;
        else if (*p == 'U')
                p = skip_closure(p + 1, end);
        else
                p = skip_operator(p, end);
        while (p && *p == 'B')
                p = skip_identifier(p + 1, end);
        return p;
}

/* Behind 'S'. */
static inline const char *skip_substitution(const char *p)
{
        switch (*p) {
        case 'a':
        case 'b':
        case 's':
        case 'i':
        case 'o':
        case 'd':
                return p + 1;
        default:
                return skip_index(p);
        }
}

static inline const char *skip_qualifiers(const char *p)
{
        while (*p == 'K' || *p == 'V' || *p == 'r')
                p++;
        return *p == 'R' || *p == 'O' ? p + 1 : p;
}

/* An element of a list that is in neither of the usual ones. */
static const char *skip_element(const char *p, const char *end, bool is_name)
{
        if (is_name)
                return skip_unqualified_name(p, end);
        if (*p == 'L')
                return skip_literal(p + 1, end);
        if (*p == 'X') {
                p = skip_expression(p + 1, end);
                return p ? skip_char(p, 'E') : NULL;
        }
        return skip_type(p, end);
}

#define LIST_DEPTH 63

/* By the first character of an element; a table, since a switch over characters becomes a chain of comparisons. */
enum element { OTHER, IDENTIFIER, TAG, SUBSTITUTION, PARAMETER, QUALIFIER, BUILT_IN, BEGIN, END, TERMINATOR };

static const uint8_t elements[256] = {
        ['\0'] = TERMINATOR,
        ['.'] = TERMINATOR,
        ['0' ... '9'] = IDENTIFIER,
        ['B'] = TAG,
        ['E'] = END,
        ['I' ... 'J'] = BEGIN,
        ['K'] = QUALIFIER,
        ['N'] = BEGIN,
        ['O' ... 'P'] = QUALIFIER,
        ['R'] = QUALIFIER,
        ['S'] = SUBSTITUTION,
        ['T'] = PARAMETER,
        ['V'] = QUALIFIER,
        ['a' ... 'j'] = BUILT_IN,
        ['l' ... 'o'] = BUILT_IN,
        ['r' ... 't'] = BUILT_IN,
        ['v' ... 'z'] = BUILT_IN,
};

static const char *skip_mangled_list(const char *p, const char *end, enum list list)
{
        uint64_t names = list == LIST_NAMES; /* bit 0: of the list that p is in; bit 1: of the one around it... */
        unsigned depth = 0;

        if (list == LIST_NAMES)
                p = skip_qualifiers(p);
        while (p) {
                switch ((enum element)elements[(unsigned char)*p]) {
                case IDENTIFIER:
                        p = skip_identifier(p, end);
                        break;
                case TAG:
                        p = skip_identifier(p + 1, end);
                        break;
                case SUBSTITUTION:
                        p = p[1] == 't' ? p + 2 : skip_substitution(p + 1);
                        break;
                case PARAMETER:
                        p = skip_index(p + 1);
                        break;
                case QUALIFIER:
                        p++;
                        break;
                case BUILT_IN:
                        p = names & 1 ? skip_unqualified_name(p, end) : p + 1;
                        break;
                case BEGIN:
                        if (depth++ == LIST_DEPTH || (*p == 'N' && names & 1))
                                return NULL;
                        names = names << 1 | (*p == 'N');
                        p = *p == 'N' ? skip_qualifiers(p + 1) : p + 1;
                        break;
                case END:
                        if (depth == 0)
                                return list == LIST_PARAMETERS ? p : p + 1;
                        depth--;
                        names >>= 1;
                        p++;
                        break;
                case TERMINATOR:
                        return depth == 0 && list == LIST_PARAMETERS ? p : NULL;
                case OTHER:
                        p = skip_element(p, end, names & 1);
                        break;
                }
        }
        return NULL;
}

/* Behind 'Z'. */
static const char *skip_local_name(const char *p, const char *end)
{
        p = skip_encoding(p, end);
        if (!p || *p != 'E')
                return NULL;
        p = p[1] == 's' ? p + 2 : skip_name(p + 1, end);
        return p && *p == '_' && is_digit(p[1]) ? p + 2 : p;
}

static const char *skip_name(const char *p, const char *end)
{
        if (*p == 'N')
                return skip_mangled_list(p + 1, end, LIST_NAMES);
        if (*p == 'Z')
                return skip_local_name(p + 1, end);
        if (p[0] == 'S' && p[1] == 't')
                p = skip_unqualified_name(p + 2, end);
        else if (*p == 'S')
                p = skip_substitution(p + 1);
        else
                p = skip_unqualified_name(p, end);
        return skip_optional_arguments(p, end);
}

static const char *skip_type(const char *p, const char *end)
{
        for (;; p++) {
                switch (*p) {
                case 'P':
                case 'R':
                case 'O':
                case 'K':
                case 'V':
                case 'r':
                        continue;
                case 'v':
                case 'w':
                case 'a' ... 'j':
                case 'l' ... 'o':
                case 's':
                case 't':
                case 'x' ... 'z':
                        return p + 1;
                case 'T':
                        return skip_optional_arguments(skip_index(p + 1), end);
                case 'F':
                        return skip_mangled_list(p + 1, end, LIST_TYPES);
                case 'A':
                        p = skip_char(skip_name_digits(p + 1), '_');
                        return p ? skip_type(p, end) : NULL;
                case 'M':
                        p = skip_type(p + 1, end);
                        return p ? skip_type(p, end) : NULL;
                case 'D':
                        if (p[1] == 'p')
                                return skip_type(p + 2, end);
                        return p[1] == 'n' || p[1] == 'u' || p[1] == 'i' || p[1] == 's' ? p + 2 : NULL;
                case 'N':
                case 'Z':
                case 'S':
                case '1' ... '9':
                        return skip_name(p, end);
                default:
                        return NULL;
                }
        }
}

/* A name and, for functions, the types of its parameters. */
static const char *skip_encoding(const char *p, const char *end)
{
        p = skip_name(p, end);
        return p ? skip_mangled_list(p, end, LIST_PARAMETERS) : NULL;
}

/* ---- Rust v0 ---- */

static const char *skip_base62(const char *p)
{
        while (is_digit(*p) || is_upper(*p) || is_lower(*p))
                p++;
        return skip_char(p, '_');
}

/* The value of a constant, behind 'K'. */
static const char *skip_constant(const char *p)
{
        if (*p == 'p')
                return p + 1;
        if (*p == 'B')
                return skip_base62(p + 1);
        return is_lower(*p) ? skip_base62(p + 1) : NULL;
}

static const char *skip_rust_element(const char *p, const char *end)
{
        switch (*p) {
        case '0':
                return p + 1;
        case '1' ... '9':
                return skip_identifier(p, end);
        case 's':
        case 'B':
        case 'L':
        case 'G':
                return skip_base62(p + 1);
        case 'K':
                return skip_constant(p + 1);
        case 'N':
                return is_upper(p[1]) || is_lower(p[1]) ? p + 2 : NULL;
        case 'g':
        case 'k':
        case 'q':
        case 'r':
        case 'w':
        case 'H':
        case 'J':
        case 'V':
        case 'W':
        case 'Z':
                return NULL;
        default:
                return is_upper(*p) || is_lower(*p) || *p == '_' ? p + 1 : NULL;
        }
}

/* In any order. */
static bool has_usual_rust_elements(const char *p, const char *end)
{
        while (p && p != end)
                p = skip_rust_element(p, end);
        return p;
}

bool has_usual_mangling(const char *name, size_t n)
{
        const char *behind;

        if (n < 3 || n > BYTES_MAX || name[0] != '_')
                return false;
        if (name[1] == 'R')
                return has_usual_rust_elements(name + 2, name + n);
        behind = name[1] == 'Z' ? skip_encoding(name + 2, name + n) : NULL;
        return behind && (!*behind || *behind == '.');
}
