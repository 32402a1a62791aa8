/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CONFIG_CONFIGURATION_H
#define CAIRN_COMMON_CONFIG_CONFIGURATION_H

/**
 * @file
 * Options of a program from three sources, all described by one table (common/config/options.h): the command line, the
 * environment (CAIRN_ and the option's name in capitals, "-" as "_"), and a section of the configuration file. The
 * first source that has an option wins; lists of several sources are not merged. An option with a FILE value that none
 * of them sets defaults to the path of the systemd credential "cairn.OPTION" below CREDENTIALS_DIRECTORY, if it exists.
 * An unreadable credential is an error. Options that name output files never use credentials.
 *
 *     _cleanup_configuration_ struct configuration c = { .section = "serve" };
 *     const struct option_spec specs[] = {
 *             OPTION_STRING("listen", 0, "HOST:PORT", &o.listen, "where to listen"),
 *             OPTIONS_OF_CONFIGURATION(&c),
 *             OPTION_END,
 *     };
 *     st = configuration_parse(&c, &usage, specs, &argc, &argv, &err);
 *
 * In the environment a flag is "true" or "false", and a list has one value per line. Values point into argv, the
 * environment and the configuration, which must outlive them.
 */
#include "common/config/config_file.h"
#include "common/config/options.h"

#define CONFIGURATION_FILE "/etc/cairn/cairn.yaml" /* read if it exists and no other file is named */

enum option_source {
        OPTION_DEFAULT,
        OPTION_FROM_CREDENTIAL,
        OPTION_FROM_FILE,
        OPTION_FROM_ENVIRONMENT,
        OPTION_FROM_COMMAND_LINE
};

struct configuration {
        const char *section; /* serve, agent or upload */
        const char *path;    /* --config, CAIRN_CONFIG, or NULL; "": no file */
        bool print, check;   /* --print-config, --check-config: the caller calls configuration_report() */
        bool is_unreadable;  /* CONFIGURATION_FILE, used by default, is skipped because this user may not read it.
                                Services log that */
        /* private */
        struct config_section file;
        char **environment; /* copies of split values, and paths of credentials; at most one per option */
        size_t environment_count;
        enum option_source *sources; /* one per spec */
        size_t *lines;               /* line numbers of options set in the file; one per spec */
};

#define OPTIONS_OF_CONFIGURATION(c)                                                                                    \
        OPTION_STRING("config", 0, "FILE", &(c)->path, "configuration file (" CONFIGURATION_FILE " if there is one)"), \
                OPTION_FLAG("check-config", 0, &(c)->check, "check the configuration and exit"),                       \
                OPTION_FLAG("print-config", 0, &(c)->print,                                                            \
                            "print what each option is set to, and where, as YAML, and exit")

/** Like options_parse(), with the other two sources. ST_USAGE names the file and line, or the variable. */
enum status configuration_parse(struct configuration *c, const struct usage *usage, const struct option_spec *specs,
                                int *argc, char ***argv, struct error *err) MUST_CHECK;

/** Whether --check-config or --print-config was given: then the report is on stdout, and the program should end. */
bool configuration_report(const struct configuration *c, const struct option_spec *specs);

/** An option whose value changed. */
struct option_change {
        const char *name;   /* without the dashes; borrowed from the specs */
        bool needs_restart; /* it cannot be changed at run time */
};

/** The same option table, parsed at different times. */
struct parsed_again {
        const struct option_spec *running; /* at program start */
        const struct option_spec *current; /* at the last successful reload, or at start */
        const struct option_spec *fresh;   /* newly parsed */
        const char *const *reloadable;     /* names of options that can change at run time; ends with NULL */
};

/**
 * List changed options: reloadable ones since the last reload; others, which need a restart, since program start.
 * @param ret  has room for all options.
 * @return their number.
 */
size_t configuration_list_changes(const struct parsed_again *p, struct option_change *ret);

/**
 * Whether a configuration that was read again may replace the one before: a running program must not drop its settings
 * because the file is replaced at this moment.
 * @return ST_OS, ST_NOT_FOUND, ST_USAGE if the file is unreadable, gone, or empty, and was not before.
 */
enum status configuration_check_reread(const struct configuration *before, const struct configuration *fresh,
                                       struct error *err) MUST_CHECK;

/** Whether any source sets the option with this index in specs; after configuration_parse(). */
bool configuration_has(const struct configuration *c, size_t i);

void configuration_deinit(struct configuration *c);

#endif
