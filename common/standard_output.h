/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_STANDARD_OUTPUT_H
#define CAIRN_COMMON_STANDARD_OUTPUT_H

/**
 * At exit() and the end of main(), flush and close stdout. When any write to it failed, print "PROGRAM: cannot write
 * standard output: ..." on stderr and end with EXIT_FAILED, whatever the exit code was to be.
 *
 * Descriptors 0 to 2 that are closed become /dev/null, for reading: a file that is opened later must not receive what
 * is printed. Call this at the start of main(), not in workers. Program is borrowed for the life of the process.
 */
void check_standard_output_at_exit(const char *program);

#endif
