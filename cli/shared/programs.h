/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SHARED_PROGRAMS_H
#define CAIRN_CLI_SHARED_PROGRAMS_H

/**
 * @file
 * The other programs of Cairn that are installed beside this one.
 *
 * Threads: any.
 */
#include <limits.h>
#include <stdbool.h>

#include "common/error.h"
#include "common/memory/buf.h"

/** The path of a program in the folder of the running one. ST_NOT_FOUND when it is not installed there. */
enum status find_sibling_program(const char *name, char ret[static PATH_MAX], struct error *err) MUST_CHECK;

/** The programs that read the configuration file, each with the name of its section. */
struct config_reader {
        const char *section, *program;
        const char *command; /* a subcommand of the program, or NULL */
};
#define CONFIG_READER_COUNT 3
extern const struct config_reader config_readers[CONFIG_READER_COUNT];

/** The start of a program's stdout and stderr, up to each buffer's max. */
struct program_output {
        struct buf out, errors; /* initialised by the caller */
};

/**
 * Run a program and wait for it.
 * @param args      for execv(): the program's path first, NULL at the end.
 * @param output    receives its output; NULL: it inherits both streams.
 * @param code_ret  its exit code; 128 + N when signal N ended it; 127 when it did not start.
 */
enum status run_sibling_program(const char *const *args, struct program_output *output, int *code_ret,
                                struct error *err) MUST_CHECK;

#endif
