/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_HOSTILE_H
#define CAIRN_TESTS_SUPPORT_HOSTILE_H

/* Malicious files, passed to the worker as the service does. Each job must end within bounded time and memory. */
#include <check.h>

#include "tests/support/made_file.h"

/** Result of the last extraction. */
extern struct symbol_table hostile_table;
extern struct error hostile_error;

/** Extract in a worker from one file, which is closed; fails the test when that exceeded the limits. */
enum status hostile_extract(int fd);

/** The file yields symbols, except for what the text says. */
void hostile_partial(int fd, const char *text);
void hostile_whole(int fd);
void hostile_refused(int fd, const char *text);

/** The frames at an address of the last table, formatted as by made_frames(). */
void hostile_function(uint64_t address, const char *frames);

/** main() of a test in build/tests/unit/FOLDER/; its worker is build/cairn. */
int hostile_main(const char *name, const char *argv0, const TTest *const *tests, size_t count);

/** .symtab and .strtab as sections 2 and 3, with "from_symtab" of 0x100 bytes after the code of MADE_CODE. */
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
