/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/name_scan.h"

#include <string.h>

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$' || (c & 0x80);
}

bool name_char_takes_arguments(char c)
{
        return is_word(c) || c == '}' || c == ']' || c == '\'';
}

bool name_scan_starts(const struct name_scan *s, size_t at, const char *text)
{
        size_t n = strlen(text);

        return at <= s->size && n <= s->size - at && memcmp(s->text + at, text, n) == 0;
}

bool name_scan_word(const struct name_scan *s, size_t at, const char *word)
{
        size_t end = at + strlen(word);

        return name_scan_starts(s, at, word) && (at == 0 || !is_word(s->text[at - 1])) &&
               (end == s->size || !is_word(s->text[end]));
}

/* ---- brackets ---------------------------------------------------------------------------- */

static char closer_of(char c)
{
        return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : c == '<' ? '>' : 0;
}

/* Template arguments follow a name; a type in brackets ("<T as Trait>") stands where a name may begin. */
static bool opens_angle(const struct name_scan *s, size_t at, size_t last_open)
{
        char before = at ? s->text[at - 1] : ' ';

        if (before == '<')
                return at && last_open == at - 1;
        if (before == ' ') /* "a < b" is no form of any demangler, "operator< <int>" is */
                return true;
        return name_char_takes_arguments(before) || strchr(",(&*:[-!", before);
}

size_t name_scan_balanced(const struct name_scan *s, size_t at)
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
                if (closer_of(c) && (depth == 0 || c != '<' || opens_angle(s, at, last_open))) {
                        if (depth == NAME_DEPTH_MAX)
                                return 0;
                        closers[depth++] = closer_of(c);
                        last_open = at;
                } else if (c == '>' && (closers[depth - 1] != '>' || s->text[at - 1] == '-')) {
                        ; /* an arrow, or a comparison in parentheses */
                } else if (c == ')' || c == ']' || c == '}' || c == '>') {
                        while (depth > 1 && closers[depth - 1] == '>' && c != '>')
                                depth--; /* that was a comparison */
                        if (closers[--depth] != c)
                                return 0;
                        if (depth == 0)
                                return at + 1;
                }
                at++;
        }
        return 0;
}

size_t name_scan_operator(const struct name_scan *s, size_t at)
{
        /* longer ones before those they begin with */
        static const char *const symbols[] = {
                "()", "[]", "->*", "->", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--",
                "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "+", "-", "*", "/", "%", "^", "&", "|", "~", "!", "=",
                "<", ">", ",", " new[]", " new", " delete[]", " delete", " co_await",
        };

        at += strlen("operator");
        if (name_scan_starts(s, at, "\"\"")) { /* operator"" _suffix */
                at += 2;
                at += at < s->size && s->text[at] == ' ';
                while (at < s->size && is_word(s->text[at]))
                        at++;
                return at;
        }
        for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
                size_t end = at + strlen(symbols[i]);

                if (name_scan_starts(s, at, symbols[i]) &&
                    (symbols[i][0] != ' ' || end == s->size || !is_word(s->text[end])))
                        return end;
        }
        return 0;
}

size_t name_scan_qualifiers(const struct name_scan *s, size_t at)
{
        static const char *const words[] = { " const", " volatile", " noexcept", " __restrict", " restrict",
                                             " &&", " &", "&&", "&" };
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

/* ---- ends -------------------------------------------------------------------------------- */

/* Where the suffix begins that ends at n: ".cold", or ".isra.0" with any number; n when there is none. */
static size_t suffix_start(const char *name, size_t n)
{
        static const char *const words[] = { ".isra", ".part", ".constprop", ".lto_priv", ".llvm", ".cold" };
        size_t end = n;

        while (end && is_digit(name[end - 1]))
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
static size_t bracketed_start(const char *name, size_t n, const char *open, char close)
{
        size_t size = strlen(open);

        for (size_t i = n; n && name[n - 1] == close && i-- > 1;)
                if (n - i > size && memcmp(name + i, open, size) == 0)
                        return i;
        return n;
}

size_t name_without_clones(const char *name, size_t n)
{
        for (;;) {
                size_t end = bracketed_start(name, n, " [clone .", ']');

                if (end == n)
                        end = bracketed_start(name, n, " (.", ')');
                if (end == n)
                        end = suffix_start(name, n);
                if (end == n || end == 0)
                        return n;
                n = end;
        }
}

void name_drop_rust_hash(struct buf *name)
{
        static const char mark[] = "::h";
        const size_t size = strlen(mark) + 16;
        const char *hash;

        if (name->size <= size)
                return;
        hash = (const char *)name->data + name->size - size;
        if (memcmp(hash, mark, strlen(mark)) != 0)
                return;
        for (size_t i = strlen(mark); i < size; i++)
                if (!is_digit(hash[i]) && (hash[i] < 'a' || hash[i] > 'f'))
                        return;
        name->size -= size;
}

/* ---- looks ------------------------------------------------------------------------------- */

bool name_looks_scoped(const char *name, size_t n)
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

bool name_looks_go(const char *name, size_t n)
{
        size_t slash = 0;
        bool dot = false;

        for (size_t i = 0; i < n && name[i] != '('; i++) {
                if (name[i] == '[')
                        return i && dot && is_word(name[i - 1]);
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
