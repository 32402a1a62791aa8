/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_DROP_IN_H
#define CAIRN_CLI_DROP_IN_DROP_IN_H

/**
 * @file
 * Replacements of symbolizers that other programs start: GNU addr2line, eu-addr2line, llvm-symbolizer and
 * llvm-addr2line, with their options, output and dialogue over pipes. The name of the program selects one. They are in
 * the small program cairn-addr2line, and in cairn when it is called by such a name.
 *
 * Threads: one.
 */

/**
 * The replacement for the program that argv[0] names, such as "/usr/lib/cairn/bin/addr2line" or "cairn-symbolizer";
 * NULL for other names.
 */
int (*drop_in_find(const char *argv0))(int argc, char **argv);

/**
 * The entry of workers in the small program (worker_set_entry()): extraction is its own, other jobs, such as downloads
 * and decompression, are run by the program cairn in the same directory.
 */
int drop_in_run_worker(int argc, char **argv);

/* Each returns the exit code of the program. */
int run_gnu_addr2line(int argc, char **argv);
int run_eu_addr2line(int argc, char **argv);
int run_llvm_symbolizer(int argc, char **argv);
int run_llvm_addr2line(int argc, char **argv);

#endif
