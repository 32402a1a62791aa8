/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INDEX_TABLE_H
#define CAIRN_SERVER_INDEX_TABLE_H

/**
 * @file
 * The symbol table of what is stored of an object: of its ELF files, or of the
 * symbol file that was sent in place of them.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "symbolizer/extract.h"

/**
 * Have workers make a table of the ELF files and of the symbol file, and take the better one: the one of the better
 * quality, or as good and whole where the other is partial; else that of the ELF files.
 * @param elf debuginfo_fd and executable_fd may both be -1.  @param symbols_fd -1 none.
 * @param superseded_ret both could be read, and the table of the ELF files is whole and as good.
 * @return as symbol_table_extract_confined().
 */
enum status index_table_make(const struct extract_inputs *elf, int symbols_fd, const atomic_bool *cancel,
                             struct symbol_table *ret, bool *superseded_ret, struct error *err) MUST_CHECK;

#endif
