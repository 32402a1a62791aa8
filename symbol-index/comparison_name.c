/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/comparison_name.h"

#include <stdbool.h>
#include <string.h>

#include "common/text.h"
#include "symbol-index/short_name.h"

struct normalizer {
        const char *text;
        size_t size, at;
        enum comparison_form form;
        bool is_unbalanced; /* parentheses were: no more are searched, so that the scan stays linear */
        struct buf *out;
};

static bool is_decimal_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_identifier_char(char c)
{
        return is_decimal_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool normalizer_starts(const struct normalizer *n, size_t at, const char *text)
{
        size_t size = strlen(text);

        return at <= n->size && size <= n->size - at && memcmp(n->text + at, text, size) == 0;
}

static size_t skip_decimal_digits(const struct normalizer *n, size_t at)
{
        while (at < n->size && is_decimal_digit(n->text[at]))
                at++;
        return at;
}

/* The position after the parenthesis that closes the one at `at`; `at` if there is none. */
static size_t skip_parentheses(struct normalizer *n, size_t at)
{
        size_t depth = 0;

        if (n->is_unbalanced || at >= n->size || n->text[at] != '(')
                return at;
        for (size_t i = at; i < n->size; i++) {
                depth += n->text[i] == '(';
                if (n->text[i] == ')' && --depth == 0)
                        return i + 1;
        }
        n->is_unbalanced = true;
        return at;
}

/* ---- lambdas, closures and types without a name ---- */

static void put_lambda(struct normalizer *n, char mark, uint64_t number)
{
        if (n->form == COMPARISON_NUMBERED)
                buf_printf(n->out, "{lambda%c%llu}", mark, (unsigned long long)number);
        else
                buf_append_str(n->out, "{lambda}");
}

/* The digits in [from, to); modulo 2^64. */
static uint64_t read_decimal(const struct normalizer *n, size_t from, size_t to)
{
        uint64_t value = 0;

        for (; from < to; from++)
                value = value * 10 + (uint64_t)(n->text[from] - '0');
        return value;
}

/* "{lambda(int)#1}" of libiberty. */
static bool normalize_lambda(struct normalizer *n)
{
        size_t number, end;

        if (!normalizer_starts(n, n->at, "{lambda("))
                return false;
        number = skip_parentheses(n, n->at + strlen("{lambda"));
        if (!normalizer_starts(n, number, "#"))
                return false;
        end = skip_decimal_digits(n, number + 1);
        if (!normalizer_starts(n, end, "}"))
                return false;
        put_lambda(n, '#', read_decimal(n, number + 1, end));
        n->at = end + 1;
        return true;
}

/* "'lambda'(int)", "'lambda0'(int)" of LLVM: the first and the second. */
static bool normalize_quoted_lambda(struct normalizer *n)
{
        size_t digits = n->at + strlen("'lambda"), end;

        if (!normalizer_starts(n, n->at, "'lambda"))
                return false;
        end = skip_decimal_digits(n, digits);
        if (!normalizer_starts(n, end, "'"))
                return false;
        put_lambda(n, '#', end == digits ? 1 : read_decimal(n, digits, end) + 2);
        n->at = skip_parentheses(n, end + 1);
        return true;
}

/* "$_3" of clang. */
static bool normalize_dollar_lambda(struct normalizer *n)
{
        size_t digits = n->at + strlen("$_"), end;

        if (!normalizer_starts(n, n->at, "$_") || (n->at && is_identifier_char(n->text[n->at - 1])))
                return false;
        end = skip_decimal_digits(n, digits);
        if (end == digits || (end < n->size && is_identifier_char(n->text[end])))
                return false;
        put_lambda(n, '$', read_decimal(n, digits, end));
        n->at = end;
        return true;
}

/* "(anonymous struct)::operator()" of debuginfo without linkage names. */
static bool normalize_anonymous_lambda(struct normalizer *n)
{
        static const char *const types[] = { "(anonymous struct)", "(anonymous class)" };

        for (size_t i = 0; n->form == COMPARISON_WITHOUT_NUMBERS && i < sizeof types / sizeof *types; i++) {
                size_t end = n->at + strlen(types[i]);

                if (!normalizer_starts(n, n->at, types[i]) || !normalizer_starts(n, end, "::operator()"))
                        continue;
                buf_append_str(n->out, "{lambda}");
                n->at = end;
                return true;
        }
        return false;
}

/* "{closure#0}", "{unnamed type#1}" and "{{closure}}" without their numbers and the second brace. */
static bool normalize_braces(struct normalizer *n)
{
        size_t end = n->at + 1, mark;

        if (n->form == COMPARISON_NUMBERED || n->text[n->at] != '{')
                return false;
        if (normalizer_starts(n, n->at, "{{closure}}")) {
                buf_append_str(n->out, "{closure}");
                n->at += strlen("{{closure}}");
                return true;
        }
        while (end < n->size && (is_identifier_char(n->text[end]) || strchr(" .#", n->text[end])))
                end++;
        for (mark = end; mark > n->at && is_decimal_digit(n->text[mark - 1]); mark--)
                ;
        if (!normalizer_starts(n, end, "}") || mark == end || n->text[mark - 1] != '#')
                return false;
        buf_append(n->out, n->text + n->at, mark - 1 - n->at);
        buf_append_u8(n->out, '}');
        n->at = end + 1;
        return true;
}

/* ---- brackets ---- */

#define CRATE_HASH_DIGITS_MIN 8
#define BRACKETS_MAX 64 /* bytes of an ABI tag or a hash */

/* "[abi:cxx11]", and "[9c2f0e1d]" after the name of a crate. */
static bool drop_brackets(struct normalizer *n)
{
        size_t left = n->size - n->at, size;
        const char *close;

        if (n->text[n->at] != '[')
                return false;
        close = memchr(n->text + n->at, ']', left < BRACKETS_MAX ? left : BRACKETS_MAX);
        if (!close)
                return false;
        size = (size_t)(close - n->text) - n->at - 1;
        if (!normalizer_starts(n, n->at, "[abi:") &&
            (size < CRATE_HASH_DIGITS_MIN || strspn(n->text + n->at + 1, "0123456789abcdef") != size || !n->at ||
             !is_identifier_char(n->text[n->at - 1])))
                return false;
        n->at += size + 2;
        return true;
}

/* "> >" is ">>". */
static bool drop_blank_of_closers(struct normalizer *n)
{
        if (!normalizer_starts(n, n->at, " >") || !n->at || n->text[n->at - 1] != '>')
                return false;
        n->at++;
        return true;
}

/* ---- Go ---- */

/* The numbers in ".func1", ".gowrap1", ".deferwrap1", ".func1-range2" and ".2". */
static bool drop_go_number(struct normalizer *n)
{
        static const char *const words[] = { ".func", ".gowrap", ".deferwrap", "-range", "." };

        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
                size_t digits = n->at + strlen(words[i]), end;

                if (!normalizer_starts(n, n->at, words[i]))
                        continue;
                end = skip_decimal_digits(n, digits);
                if (end == digits || (end < n->size && !strchr(".-", n->text[end])))
                        continue;
                buf_append_str(n->out, words[i]);
                n->at = end;
                return true;
        }
        return false;
}

/* ---- names ---- */

static bool normalize_part(struct normalizer *n, bool is_go)
{
        return normalize_lambda(n) || normalize_quoted_lambda(n) || normalize_dollar_lambda(n) ||
               normalize_anonymous_lambda(n) || normalize_braces(n) || drop_brackets(n) || drop_blank_of_closers(n) ||
               (is_go && n->form == COMPARISON_WITHOUT_NUMBERS && drop_go_number(n));
}

const char *symbol_comparison_name(const char *name, const char *file, enum comparison_form form, struct buf *scratch)
{
        size_t whole = strlen(name);
        struct normalizer n = {
                .text = name, .size = symbol_name_without_clones(name, whole), .form = form, .out = scratch
        };
        const bool is_go = ends_with(file, ".go");
        const char *ret;

        n.size = symbol_name_without_rust_hash(name, n.size);
        buf_clear(scratch);
        while (n.at < n.size) {
                if (normalize_part(&n, is_go))
                        continue;
                buf_append_u8(scratch, (uint8_t)name[n.at++]);
        }
        if (scratch->failed || scratch->size == 0)
                return name;
        ret = buf_cstr(scratch);
        return !ret || strcmp(ret, name) == 0 ? name : ret;
}
