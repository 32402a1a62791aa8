/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CONFIGURATION_H
#define CAIRN_COMMON_CONFIGURATION_H

/**
 * @file
 * The options of a program from three places, all of one table (common/options.h): the command line, the environment
 * (CAIRN_ and the option's name in capitals, "-" as "_"), and a section of the configuration file. The first of these
 * that has an option decides; a list is taken whole from one place. An option whose value is a FILE and that none of
 * them has is the credential of systemd that is named "cairn." and as the option, where there is one: its path below
 * CREDENTIALS_DIRECTORY. One that is there and cannot be read is an error; files that are written are never
 * credentials.
 *
 *     _cleanup_configuration_ struct configuration c = { .section = "serve" };
 *     const struct option_spec specs[] = {
 *             OPTION_STRING("listen", 0, "HOST:PORT", &o.listen, "where to listen"),
 *             OPTIONS_OF_CONFIGURATION(&c),
 *             OPTION_END,
 *     };
 *     st = configuration_parse(&c, &usage, specs, &argc, &argv, &err);
 *
 * The environment has a flag as true or false, and several values of a list in a line each. Values point into argv, the
 * environment and the configuration, which must outlive them.
 */
#include "common/config_file.h"
#include "common/options.h"

#define CONFIGURATION_FILE "/etc/cairn/cairn.yaml" /* read where it exists and nothing else is named */

enum option_source {
        OPTION_DEFAULT,
        OPTION_FROM_CREDENTIAL,
        OPTION_FROM_FILE,
        OPTION_FROM_ENVIRONMENT,
        OPTION_FROM_COMMAND_LINE
};

struct configuration {
        const char *section; /* serve, agent or upload */
        const char *path;    /* --config, CAIRN_CONFIG, or NULL; an empty text: no file */
        bool print, check;   /* --print-config, --check-config: the caller calls configuration_report() */
        bool is_unreadable;  /* CONFIGURATION_FILE, which nothing names, is left out: this user may not read it. A
                                service says so */
        /* private */
        struct config_section file;
        char **environment; /* copies of values that are split, and paths of credentials; one of an option at most */
        size_t environment_count;
        enum option_source *sources; /* of each spec */
        size_t *lines;               /* of those from the file */
};

#define OPTIONS_OF_CONFIGURATION(c)                                                                                    \
        OPTION_STRING("config", 0, "FILE", &(c)->path, "configuration file (" CONFIGURATION_FILE " if there is one)"), \
                OPTION_FLAG("check-config", 0, &(c)->check, "check the configuration and exit"),                       \
                OPTION_FLAG("print-config", 0, &(c)->print,                                                            \
                            "print what each option is set to, and where, as YAML, and exit")

/** As options_parse(), with the other two places. ST_USAGE names the file and line, or the variable. */
enum status configuration_parse(struct configuration *c, const struct usage *usage, const struct option_spec *specs,
                                int *argc, char ***argv, struct error *err) MUST_CHECK;

/** Whether --check-config or --print-config was given: then their answer is on stdout, and the program should end. */
bool configuration_report(const struct configuration *c, const struct option_spec *specs);

/** An option that has another value than before. */
struct option_change {
        const char *name;   /* without the dashes; borrowed from the specs */
        bool needs_restart; /* it cannot be changed while the program runs */
};

/** Specs of one table, parsed at different times. */
struct parsed_again {
        const struct option_spec *running; /* at the start */
        const struct option_spec *current; /* at the last reload that succeeded, or the start */
        const struct option_spec *fresh;   /* now */
        const char *const *reloadable;     /* names of those that can change while the program runs; ends with NULL */
};

/**
 * List the options that changed: of those that can, since the last reload; of others, which wait for a restart, since
 * the start.
 * @param ret  with room for each option.
 * @return their number.
 */
size_t configuration_list_changes(const struct parsed_again *p, struct option_change *ret);

/** ST_OS when the configuration that is read again lost its file: without it a running program would forget its rules.
 */
enum status configuration_check_reread(const struct configuration *before, const struct configuration *fresh,
                                       struct error *err) MUST_CHECK;

/** Whether the option of this index in specs is set anywhere, after configuration_parse(). */
bool configuration_has(const struct configuration *c, size_t i);

void configuration_deinit(struct configuration *c);

#define _cleanup_configuration_ _cleanup_(configuration_deinit)

#endif
