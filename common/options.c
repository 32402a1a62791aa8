/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

static bool parse_base(const char *text, int base, uint64_t *ret)
{
        char *end;
        unsigned long long v;

        if (!isxdigit((unsigned char)text[0]))
                return false;
        errno = 0;
        v = strtoull(text, &end, base);
        if (errno || *end)
                return false;
        *ret = v;
        return true;
}

bool parse_uint(const char *text, uint64_t *ret)
{
        if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
                return parse_base(text, 16, ret);
        return parse_base(text, 10, ret);
}

bool parse_amount(const char *text, const struct unit *units, bool unit_needed, uint64_t *ret)
{
        size_t n = strlen(text);
        char number[24];
        uint64_t value, factor = 1;

        if (n == 0 || n >= sizeof number)
                return false;
        memcpy(number, text, n + 1);
        for (; units->letter; units++) {
                if (number[n - 1] == units->letter) {
                        factor = units->factor;
                        number[n - 1] = 0;
                        break;
                }
        }
        if (unit_needed && !units->letter)
                return false;
        return parse_uint(number, &value) && value && !__builtin_mul_overflow(value, factor, ret);
}

bool parse_bytes(const char *text, uint64_t *ret)
{
        static const struct unit sizes[] = {
                { 'K', KiB(1) }, { 'M', MiB(1) }, { 'G', GiB(1) }, { 'T', GiB(1024) }, { 0 }
        };

        return parse_amount(text, sizes, false, ret);
}

bool parse_hex(const char *text, uint64_t *ret)
{
        return parse_base(text, 16, ret);
}

static void print_option(const struct option_spec *s)
{
        char left[64];
        int n = 0;

        n = s->short_name ? snprintf(left, sizeof left, "-%c, ", s->short_name) : snprintf(left, sizeof left, "    ");
        snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s%s", s->name, s->value_name ? " " : "",
                 s->value_name ? s->value_name : "", s->kind == OPTION_KIND_LIST ? " ..." : "");
        if (strlen(left) <= 28)
                printf("  %-28s  %s\n", left, s->help);
        else
                printf("  %s\n  %-28s  %s\n", left, "", s->help);
}

static void print_usage_page(const struct usage *usage, const struct option_spec *specs)
{
        printf("Usage: %s\n\n%s\n\nOptions:\n", usage->synopsis, usage->about);
        for (const struct option_spec *s = specs; s->kind != OPTION_KIND_END; s++)
                print_option(s);
        printf("  %-28s  %s\n", "-h, --help", "print this page");
        if (usage->examples)
                printf("\nExamples:\n%s\n", usage->examples);
        exit(EXIT_DONE);
}

enum status options_set_value(const struct option_spec *s, const char *value, struct error *err)
{
        struct option_list *list = s->target;
        const char **items;

        switch (s->kind) {
        case OPTION_KIND_FLAG:
                *(bool *)s->target = true;
                return ST_OK;
        case OPTION_KIND_STRING:
                *(const char **)s->target = value;
                return ST_OK;
        case OPTION_KIND_UINT:
                if (!parse_uint(value, s->target))
                        return error_set(err, ST_USAGE, "option '--%s' takes a number, not '%s'", s->name, value);
                return ST_OK;
        case OPTION_KIND_LIST:
                items = reallocarray(list->items, list->count + 1, sizeof *items);
                if (!items)
                        return error_no_memory(err);
                items[list->count++] = value;
                list->items = items;
                return ST_OK;
        case OPTION_KIND_END:
                break;
        }
        return ST_OK;
}

static const struct option_spec *find_long(const struct option_spec *specs, const char *name, size_t n)
{
        for (const struct option_spec *s = specs; s->kind != OPTION_KIND_END; s++)
                if (strlen(s->name) == n && memcmp(s->name, name, n) == 0)
                        return s;
        return NULL;
}

static const struct option_spec *find_short(const struct option_spec *specs, char c)
{
        for (const struct option_spec *s = specs; s->kind != OPTION_KIND_END; s++)
                if (s->short_name && s->short_name == c)
                        return s;
        return NULL;
}

enum status options_parse(const struct usage *usage, const struct option_spec *specs, int *argc, char ***argv,
                          struct error *err)
{
        return options_parse_given(usage, specs, argc, argv, NULL, err);
}

enum status options_parse_given(const struct usage *usage, const struct option_spec *specs, int *argc, char ***argv,
                                bool *given, struct error *err)
{
        char **in = *argv;
        int kept = 0;

        for (int i = 1; i < *argc; i++) {
                char *arg = in[i];
                const struct option_spec *s;
                const char *value = NULL;
                enum status st;

                if (strcmp(arg, "--") == 0) {
                        while (++i < *argc)
                                in[kept++] = in[i];
                        break;
                }
                if (arg[0] != '-' || arg[1] == 0) {
                        in[kept++] = arg;
                        while (usage->command && ++i < *argc)
                                in[kept++] = in[i];
                        continue;
                }
                if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
                        print_usage_page(usage, specs);
                if (arg[1] == '-') {
                        const char *equals = strchr(arg, '=');

                        s = find_long(specs, arg + 2, equals ? (size_t)(equals - arg - 2) : strlen(arg + 2));
                        value = equals ? equals + 1 : NULL;
                } else {
                        s = find_short(specs, arg[1]);
                        value = arg[2] ? arg + 2 : NULL;
                }
                if (!s)
                        return error_set(err, ST_USAGE, "unknown option '%s' (try --help)", arg);
                if (s->kind == OPTION_KIND_FLAG && value)
                        return error_set(err, ST_USAGE, "option '--%s' takes no value", s->name);
                if (s->kind != OPTION_KIND_FLAG && !value) {
                        if (++i >= *argc)
                                return error_set(err, ST_USAGE, "option '--%s' needs a value: %s", s->name,
                                                 s->value_name);
                        value = in[i];
                }
                st = options_set_value(s, value, err);
                if (given)
                        given[s - specs] = true;
                if (st)
                        return st;
        }
        in[kept] = NULL;
        *argc = kept;
        return ST_OK;
}

static bool are_texts_equal(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

bool option_values_are_equal(const struct option_spec *a, const struct option_spec *b)
{
        const struct option_list *x = a->target, *y = b->target;
        size_t same = 0;

        switch (a->kind) {
        case OPTION_KIND_FLAG:
                return *(const bool *)a->target == *(const bool *)b->target;
        case OPTION_KIND_STRING:
                return are_texts_equal(*(const char *const *)a->target, *(const char *const *)b->target);
        case OPTION_KIND_UINT:
                return *(const uint64_t *)a->target == *(const uint64_t *)b->target;
        case OPTION_KIND_LIST:
                while (same < x->count && same < y->count && are_texts_equal(x->items[same], y->items[same]))
                        same++;
                return same == x->count && same == y->count;
        case OPTION_KIND_END:
                break;
        }
        return true;
}

void options_list_deinit(struct option_list *list)
{
        free(list->items);
        *list = (struct option_list){ 0 };
}

int exit_code_from_status(enum status st)
{
        switch (st) {
        case ST_OK:
                return EXIT_DONE;
        case ST_BAD_DATA:
        case ST_TOO_BIG:
        case ST_UNSUPPORTED:
                return EXIT_BAD_DATA;
        case ST_USAGE:
                return EXIT_USAGE;
        default:
                return EXIT_FAILED;
        }
}
