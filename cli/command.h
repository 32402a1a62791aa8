/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMAND_H
#define CAIRN_CLI_COMMAND_H

/**
 * @file
 * The subcommands of `cairn`: one file cli/NAME.c each, exporting
 * command_NAME(), and one row of the table in cli/main.c.
 *
 * argv[0] is the subcommand's own name, so options_parse() works on argc and
 * argv as they come. The result is the exit code (enum exit_code).
 */
#include "common/error.h"
#include "common/options.h"

int command_resymbolize(int argc, char **argv);
int command_store(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_debuginfo(int argc, char **argv);
int command_symbolize(int argc, char **argv);
int command_index(int argc, char **argv);
int command_query(int argc, char **argv);
int command_top(int argc, char **argv);
int command_flame(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_why(int argc, char **argv);
int command_import(int argc, char **argv);
int command_record(int argc, char **argv);

/*
 * Jobs on hostile input, started by worker_run() as `cairn worker NAME ...`:
 * one file cli/worker_NAME.c each. They log nothing; worker_fail() leaves the
 * reason on stderr, where the parent reads it.
 */
int command_worker(int argc, char **argv); /* all of them, in cli/main.c */
int worker_symbols(int argc, char **argv);
int worker_verify(int argc, char **argv);
int worker_scan(int argc, char **argv);
int worker_member(int argc, char **argv);
int worker_source_names(int argc, char **argv);
int worker_fetch(int argc, char **argv);
int worker_explain(int argc, char **argv);
int worker_elf(int argc, char **argv);
int worker_objects(int argc, char **argv);
int worker_unwind_tables(int argc, char **argv);

/** Print "cairn NAME: text" on stderr and return the exit code of the status. */
int command_fail(const char *name, enum status st, const struct error *err);

/** Print the reason as the last line of a worker's stderr and return its exit code. */
int worker_fail(enum status st, const struct error *err);

#endif
