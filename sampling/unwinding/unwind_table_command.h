/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWIND_TABLE_COMMAND_H
#define CAIRN_SAMPLING_UNWINDING_UNWIND_TABLE_COMMAND_H

/**
 * @file
 * `cairn-agent unwind-table FILE`: prints the unwind table of an ELF
 * file as text or, with --json, as JSON.
 */

/** argv[0] is "unwind-table". Returns the program's exit code. */
int run_unwind_table_command(int argc, char **argv);

#endif
