/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_options() is the only loop over the arguments: options are set through their spec and removed, other arguments
 * are moved to the front of argv in their order. A command with verbs has one table of options for all verbs. Options
 * may come before the verb, so the verb is looked up after parsing, and given options that it does not use are refused
 * then (options_check_given()).
 *
 * --help ends the process within the loop, with the page of the verb that the arguments so far begin with, or that of
 * the command.
 *
 * Order: help pages, values by kind, finding options and verbs, the loop, the functions of the header, comparison of
 * values, exit codes.
 */
#include "common/config/options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/text/number_text.h"

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

/* Whether a verb with this page uses the option. */
static bool is_option_of_page(const struct option_verbs *verbs, const struct usage *page, const char *option)
{
        for (size_t i = 0; i < verbs->count; i++)
                if (verbs->items[i].usage == page && has_word(verbs->items[i].options, option))
                        return true;
        return false;
}

/* @param verbs  only the options of verbs with this page; NULL: all. */
static void print_usage_options(const struct usage *usage, const struct option_verbs *verbs,
                                const struct option_spec *specs)
{
        printf("\nOptions:\n");
        for (const struct option_spec *s = specs; s->kind != OPTION_KIND_END; s++)
                if (!verbs || is_option_of_page(verbs, usage, s->name))
                        print_option(s);
        printf("  %-28s  %s\n", "-h, --help", "print this page");
        if (usage->examples)
                printf("\nExamples:\n%s\n", usage->examples);
}

/* Verbs that share a page follow each other. */
static void print_verbs_page(const struct option_verbs *verbs, const struct option_spec *specs)
{
        const struct usage *last = NULL;

        for (size_t i = 0; i < verbs->count; i++)
                if (verbs->items[i].help && verbs->items[i].usage != last) {
                        printf("%s%s\n", last ? "       " : "Usage: ", verbs->items[i].usage->synopsis);
                        last = verbs->items[i].usage;
                }
        printf("\n%s\n\nCommands:\n", verbs->usage->about);
        for (size_t i = 0; i < verbs->count; i++)
                if (verbs->items[i].help && *verbs->items[i].name)
                        printf("  %-12s  %s\n", verbs->items[i].name, verbs->items[i].help);
        printf("'%s COMMAND --help' describes one command.\n", verbs->command);
        print_usage_options(verbs->usage, NULL, specs);
}

/* "option '--NAME' takes a size as 256M, from 1 to 4G, not 'VALUE'" */
static enum status refuse_number(const struct option_spec *s, const char *value, struct error *err)
{
        const char *what = s->kind == OPTION_KIND_SIZE              ? "a size as 256M"
                           : s->kind == OPTION_KIND_AGE && s->least ? "an age as 30d"
                           : s->kind == OPTION_KIND_AGE             ? "an age as 30d, or 'any'"
                                                                    : "a number";
        const char *(*format)(uint64_t, char[static NUMBER_TEXT_SIZE]) =
                s->kind == OPTION_KIND_AGE ? format_age : format_bytes;
        char low[NUMBER_TEXT_SIZE], high[NUMBER_TEXT_SIZE];

        if (s->kind == OPTION_KIND_UINT) {
                snprintf(low, sizeof low, "%" PRIu64, s->least);
                snprintf(high, sizeof high, "%" PRIu64, s->most);
        } else {
                format(s->least, low);
                format(s->most, high);
        }
        if (s->most)
                return error_set(err, ST_USAGE, "option '--%s' takes %s, from %s to %s, not '%.100s'", s->name, what,
                                 low, high, value);
        if (s->least > 1)
                return error_set(err, ST_USAGE, "option '--%s' takes %s, at least %s, not '%.100s'", s->name, what, low,
                                 value);
        return error_set(err, ST_USAGE, "option '--%s' takes %s, not '%.100s'", s->name, what, value);
}

static enum status set_number(const struct option_spec *s, const char *value, struct error *err)
{
        bool is_none = !s->least && strcmp(value, s->kind == OPTION_KIND_AGE ? "any" : "0") == 0;
        uint64_t n = 0;
        bool ok = is_none || (s->kind == OPTION_KIND_SIZE  ? parse_bytes(value, &n)
                              : s->kind == OPTION_KIND_AGE ? parse_age(value, &n)
                                                           : parse_uint(value, &n));

        if (!ok || n < s->least || (s->most && n > s->most))
                return refuse_number(s, value, err);
        *(uint64_t *)s->target = n;
        return ST_OK;
}

static enum status set_choice(const struct option_spec *s, const char *value, struct error *err)
{
        char list[160] = "";
        size_t n = 0;

        for (unsigned i = 0; s->choices[i]; i++) {
                if (strcmp(value, s->choices[i]) == 0) {
                        *(unsigned *)s->target = i;
                        return ST_OK;
                }
                if (n < sizeof list)
                        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
                                              !i                  ? ""
                                              : s->choices[i + 1] ? ", "
                                                                  : " or ",
                                              s->choices[i]);
        }
        return error_set(err, ST_USAGE, "option '--%s' takes %s, not '%.100s'", s->name, list, value);
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
        case OPTION_KIND_SIZE:
        case OPTION_KIND_AGE:
                return set_number(s, value, err);
        case OPTION_KIND_CHOICE:
                return set_choice(s, value, err);
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

/* The number of arguments that are the name of the verb; -1: they are not. */
static int match_verb(const struct option_verb *verb, char **arguments, int count)
{
        size_t first = strcspn(verb->name, " ");

        if (!first)
                return 0;
        if (!count || strlen(arguments[0]) != first || memcmp(arguments[0], verb->name, first) != 0)
                return -1;
        if (!verb->name[first])
                return 1;
        return count > 1 && strcmp(arguments[1], verb->name + first + 1) == 0 ? 2 : -1;
}

/* The verb with the longest name that matches; NULL: none. *words_ret: length of its name. */
static const struct option_verb *find_verb(const struct option_verbs *verbs, char **arguments, int count,
                                           int *words_ret)
{
        const struct option_verb *found = NULL;
        int words = -1;

        for (size_t i = 0; i < verbs->count; i++) {
                int n = match_verb(&verbs->items[i], arguments, count);

                if (n > words) {
                        words = n;
                        found = &verbs->items[i];
                }
        }
        *words_ret = words;
        return found;
}

/* Print the page of the command, or of the verb that the arguments begin with, and exit. */
static void print_help(const struct usage *usage, const struct option_verbs *verbs, const struct option_spec *specs,
                       char **arguments, int count)
{
        int words;
        const struct option_verb *verb = verbs ? find_verb(verbs, arguments, count, &words) : NULL;

        if (verbs && (!verb || !*verb->name)) {
                print_verbs_page(verbs, specs);
        } else {
                const struct usage *page = verb ? verb->usage : usage;

                printf("Usage: %s\n\n%s\n", page->synopsis, page->about);
                print_usage_options(page, verb ? verbs : NULL, specs);
        }
        exit(EXIT_DONE);
}

/* @param verbs  NULL: a command without verbs. */
static enum status parse_options(const struct usage *usage, const struct option_verbs *verbs,
                                 const struct option_spec *specs, int *argc, char ***argv, bool *given,
                                 struct error *err)
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
                        print_help(usage, verbs, specs, in, kept);
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

enum status options_parse(const struct usage *usage, const struct option_spec *specs, int *argc, char ***argv,
                          struct error *err)
{
        return parse_options(usage, NULL, specs, argc, argv, NULL, err);
}

enum status options_parse_given(const struct usage *usage, const struct option_spec *specs, int *argc, char ***argv,
                                bool *given, struct error *err)
{
        return parse_options(usage, NULL, specs, argc, argv, given, err);
}

enum status options_check_given(const struct option_spec *specs, const bool *given, const char *used,
                                const char *subject, struct error *err)
{
        for (size_t i = 0; specs[i].kind != OPTION_KIND_END; i++)
                if (given[i] && !has_word(used, specs[i].name))
                        return error_set(err, ST_USAGE, "option '--%s' does not apply to '%s' (try --help)",
                                         specs[i].name, subject);
        return ST_OK;
}

/* @param name  NULL: none was given. */
static enum status refuse_verb(const struct option_verbs *verbs, const char *name, struct error *err)
{
        char list[160] = "";
        size_t n = 0, left = 0;

        for (size_t i = 0; i < verbs->count; i++)
                left += verbs->items[i].help && *verbs->items[i].name;
        for (size_t i = 0; i < verbs->count && n < sizeof list; i++)
                if (verbs->items[i].help && *verbs->items[i].name)
                        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
                                              n == 0       ? ""
                                              : --left > 1 ? ", "
                                                           : " or ",
                                              verbs->items[i].name);
        if (name)
                return error_set(err, ST_USAGE, "unknown command '%.40s': expected %s", name, list);
        return error_set(err, ST_USAGE, "expected %s (try --help)", list);
}

enum status options_parse_verb(const struct option_verbs *verbs, const struct option_spec *specs, int *argc,
                               char ***argv, const struct option_verb **ret, struct error *err)
{
        bool given[OPTION_SPECS_MAX] = { false };
        const struct option_verb *verb;
        size_t count = 0;
        int words;
        enum status st;

        while (specs[count].kind != OPTION_KIND_END)
                count++;
        assert(count <= OPTION_SPECS_MAX);
        st = parse_options(verbs->usage, verbs, specs, argc, argv, given, err);
        if (st)
                return st;
        verb = find_verb(verbs, *argv, *argc, &words);
        if (!verb)
                return refuse_verb(verbs, *argc ? (*argv)[0] : NULL, err);
        if (*verb->name) {
                char subject[64];

                snprintf(subject, sizeof subject, "%s %s", verbs->command, verb->name);
                st = options_check_given(specs, given, verb->options, subject, err);
        } else {
                st = options_check_given(specs, given, verb->options, verbs->command, err);
        }
        if (st)
                return st;
        *argv += words;
        *argc -= words;
        *ret = verb;
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
        case OPTION_KIND_SIZE:
        case OPTION_KIND_AGE:
                return *(const uint64_t *)a->target == *(const uint64_t *)b->target;
        case OPTION_KIND_CHOICE:
                return *(const unsigned *)a->target == *(const unsigned *)b->target;
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
