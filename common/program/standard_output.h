/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PROGRAM_STANDARD_OUTPUT_H
#define CAIRN_COMMON_PROGRAM_STANDARD_OUTPUT_H

/**
 * At exit() and the end of main(), flush and close stdout. If any write to it failed, print "PROGRAM: cannot write
 * standard output: ..." on stderr and exit with EXIT_FAILED instead of the intended exit code.
 *
 * Closed descriptors among 0 to 2 are opened as /dev/null, read-only: otherwise printed output could end up in a file
 * that is opened later. Call this at the start of main(), not in workers. Program is borrowed for the life of the
 * process.
 */
void check_standard_output_at_exit(const char *program);

#endif
