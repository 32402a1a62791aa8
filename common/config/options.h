/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CONFIG_OPTIONS_H
#define CAIRN_COMMON_CONFIG_OPTIONS_H

/**
 * @file
 * Command line parsing from a table: long options, a few short ones, and --help, generated from the same table.
 *
 *     struct command_options o = {...};
 *     const struct option_spec specs[] = {
 *             OPTION_STRING("server", 0, "URL", &o.server, "where Cairn listens"),
 *             OPTION_FLAG("json", 0, &o.json, "print JSON"),
 *             OPTION_END,
 *     };
 *     st = options_parse(&usage, specs, &argc, &argv, &err);
 *
 * Both "--name VALUE" and "--name=VALUE" work; "--" ends options; other arguments keep their order. Values are parsed
 * by common/text/number_text.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/exit_code.h"

enum option_kind {
        OPTION_KIND_END,
        OPTION_KIND_FLAG,
        OPTION_KIND_STRING,
        OPTION_KIND_UINT,
        OPTION_KIND_SIZE,
        OPTION_KIND_AGE,
        OPTION_KIND_CHOICE,
        OPTION_KIND_LIST,
};

struct option_list {        /* values of a repeated option, in order; items borrowed from argv */
        const char **items; /* owned, options_list_deinit() */
        size_t count;
};

struct option_spec {
        enum option_kind kind;
        const char *name;
        char short_name; /* 0: none */
        const char *value_name;
        void *target;
        const char *help;
        uint64_t least, most;       /* of a number, size or age; most 0: no limit */
        const char *const *choices; /* of OPTION_KIND_CHOICE; the last one is NULL */
};

#define OPTION_FLAG(n, s, t, h)                                                                                        \
        {                                                                                                              \
                .kind = OPTION_KIND_FLAG, .name = n, .short_name = s, .target = (bool *){ t }, .help = h               \
        }
#define OPTION_STRING(n, s, v, t, h)                                                                                   \
        {                                                                                                              \
                .kind = OPTION_KIND_STRING, .name = n, .short_name = s, .value_name = v,                               \
                .target = (const char **){ t }, .help = h                                                              \
        }
#define OPTION_NUMBER(k, n, s, v, t, low, high, h)                                                                     \
        {                                                                                                              \
                .kind = k, .name = n, .short_name = s, .value_name = v, .target = (uint64_t *){ t }, .help = h,        \
                .least = low, .most = high                                                                             \
        }
#define OPTION_UINT(n, s, v, t, h) OPTION_NUMBER(OPTION_KIND_UINT, n, s, v, t, 0, 0, h)
/** A number from low to high. */
#define OPTION_RANGE(n, s, v, t, low, high, h) OPTION_NUMBER(OPTION_KIND_UINT, n, s, v, t, low, high, h)
/** A number of bytes, as 256M: parse_bytes(). */
#define OPTION_SIZE(n, s, v, t, low, high, h) OPTION_NUMBER(OPTION_KIND_SIZE, n, s, v, t, low, high, h)
/** A number of seconds, as 30d: parse_age(). With a least age of 0 the target is 0 for "any". */
#define OPTION_AGE(n, s, v, t, low, high, h) OPTION_NUMBER(OPTION_KIND_AGE, n, s, v, t, low, high, h)
/** One of several words. @param t  unsigned: the index of the word */
#define OPTION_CHOICE(n, s, v, t, words, h)                                                                            \
        {                                                                                                              \
                .kind = OPTION_KIND_CHOICE, .name = n, .short_name = s, .value_name = v, .target = (unsigned *){ t },  \
                .help = h, .choices = words                                                                            \
        }
#define OPTION_LIST(n, s, v, t, h)                                                                                     \
        {                                                                                                              \
                .kind = OPTION_KIND_LIST, .name = n, .short_name = s, .value_name = v,                                 \
                .target = (struct option_list *){ t }, .help = h                                                       \
        }
#define OPTION_END                                                                                                     \
        {                                                                                                              \
                .kind = OPTION_KIND_END                                                                                \
        }

struct usage {
        const char *synopsis; /* "cairn symbolize -e FILE [ADDRESS...]" */
        const char *about;    /* a paragraph */
        const char *examples; /* lines, or NULL */
        bool command;         /* the first argument is a command: the options after it belong to that command */
};

/**
 * Parse the options and remove them from argv; the arguments remain (argv[0] excluded). --help prints the page on
 * stdout and exits the process with 0: the only function of common/ that exits.
 * @return ST_OK, or ST_USAGE with one line that names the option.
 */
enum status options_parse(const struct usage *usage, const struct option_spec *specs, int *argc, char ***argv,
                          struct error *err) MUST_CHECK;

/** Like options_parse(); sets given[i] (one per spec; may be NULL) for each option that was given. */
enum status options_parse_given(const struct usage *usage, const struct option_spec *specs, int *argc, char ***argv,
                                bool *given, struct error *err) MUST_CHECK;

#define OPTION_SPECS_MAX 64 /* of a command whose given options are recorded */

/**
 * Refuse given options that the subject does not use.
 * @param used  names of the options that it uses, separated by spaces.
 * @param subject  quoted in the message, such as a verb or the option that chooses what is done.
 * @return ST_OK; ST_USAGE: "option '--NAME' does not apply to 'SUBJECT' (try --help)".
 */
enum status options_check_given(const struct option_spec *specs, const bool *given, const char *used,
                                const char *subject, struct error *err) MUST_CHECK;

/** One verb of a command, such as `verify` of `cairn store`. */
struct option_verb {
        const char *name;          /* one or two words; "": the command without any of the other verbs */
        const char *options;       /* names of the options that it uses, separated by spaces */
        const char *help;          /* one line in the page of the command; NULL: not listed there */
        const struct usage *usage; /* its page; verbs that share one follow each other */
};

struct option_verbs {
        const char *command;       /* "cairn store" */
        const struct usage *usage; /* the page of the command; its synopsis is that of the listed verbs */
        const struct option_verb *items;
        size_t count;
};

/**
 * Like options_parse() for a command with verbs. The verb is the first argument and is removed too; an option that it
 * does not use is refused. --help after a verb prints the page of the verb, with its options alone.
 * @param ret  an item of verbs.
 */
enum status options_parse_verb(const struct option_verbs *verbs, const struct option_spec *specs, int *argc,
                               char ***argv, const struct option_verb **ret, struct error *err) MUST_CHECK;

/** Set an option's target to a value, which is borrowed; a flag is set to true. ST_USAGE names the option. */
enum status options_set_value(const struct option_spec *s, const char *value, struct error *err) MUST_CHECK;

/** Whether two specs of the same option have the same value; an unset text equals only an unset text. */
bool option_values_are_equal(const struct option_spec *a, const struct option_spec *b);

void options_list_deinit(struct option_list *list);

/** The exit code for a status. */
int exit_code_from_status(enum status st);

#endif
