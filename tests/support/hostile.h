/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_HOSTILE_H
#define CAIRN_TESTS_SUPPORT_HOSTILE_H

/*
 * Files made to hurt whoever reads them, given to the worker as the service
 * gives it files. Each has to end in time and without much memory.
 */
#include <check.h>

#include "tests/support/made_file.h"

/** What the last extraction gave. */
extern struct symbol_table hostile_table;
extern struct error hostile_error;

/** Extract in a worker from one file, which is closed; fails the test when that took too much. */
enum status hostile_extract(int fd);

/** The file is used, without what the text says. */
void hostile_partial(int fd, const char *text);
void hostile_whole(int fd);
void hostile_refused(int fd, const char *text);

/** The frames at an address of the last table, as made_frames(). */
void hostile_function(uint64_t address, const char *frames);

/** main() of a test: its worker is build/cairn for build/tests/unit/test_X. */
int hostile_main(const char *name, const char *argv0, const TTest *const *tests, size_t count);

/** .symtab and .strtab, sections 2 and 3, with "from_symtab" 0x100 behind MADE_CODE. */
extern const Elf64_Sym hostile_symbols[2];
extern const char hostile_names[19];
#define HOSTILE_GOOD_SYMBOLS                                                                                           \
        { .name = ".symtab",                                                                                           \
          .type = SHT_SYMTAB,                                                                                          \
          .content = hostile_symbols,                                                                                  \
          .size = sizeof hostile_symbols,                                                                              \
          .link = 3,                                                                                                   \
          .entry_size = sizeof *hostile_symbols },                                                                     \
        {                                                                                                              \
                .name = ".strtab", .type = SHT_STRTAB, .content = hostile_names, .size = sizeof hostile_names          \
        }

#endif
