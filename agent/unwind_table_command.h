/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UNWIND_TABLE_COMMAND_H
#define CAIRN_AGENT_UNWIND_TABLE_COMMAND_H

/**
 * @file
 * `cairn-agent unwind-table FILE`: the unwind table of an ELF file, for people
 * and, with --json, for programs.
 */

/** argv[0] is "unwind-table". Returns the program's exit code. */
int unwind_table_command(int argc, char **argv);

#endif
