/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_COMMAND_H
#define CAIRN_CLI_COMMANDS_COMMAND_H

/**
 * @file
 * The subcommands of `cairn`: a function command_NAME() and a row of the table in cli/main.c each.
 *
 * argv[0] is the subcommand's own name, so options_parse() works on argc and
 * argv as they come. The result is the exit code (enum exit_code).
 */
#include "common/config/options.h"
#include "common/error.h"

int command_resymbolize(int argc, char **argv);
int command_store(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_status(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_config(int argc, char **argv);
int command_debuginfo(int argc, char **argv);
int command_symbolize(int argc, char **argv);
int command_index(int argc, char **argv);
int command_query(int argc, char **argv);
int command_top(int argc, char **argv);
int command_flame(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_gate(int argc, char **argv);
int command_why(int argc, char **argv);
int command_import(int argc, char **argv);
int command_scrape(int argc, char **argv);
int command_record(int argc, char **argv);

/** `cairn worker NAME ...`: every job on untrusted input (cli/commands/worker_command.c). */
int command_worker(int argc, char **argv);

/** Print "cairn NAME: text" on stderr and return the exit code of the status. */
int command_fail(const char *name, enum status st, const struct error *err);

#endif
