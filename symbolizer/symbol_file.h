/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SYMBOL_FILE_H
#define CAIRN_SYMBOLIZER_SYMBOL_FILE_H

/**
 * @file
 * The symbol file (docs/formats/symbol-file.md): the symbol table of one
 * object for another machine, packed into differences of neighbours, so that
 * zstd makes little of it. `cairn-upload --symbols-only` sends it in place of
 * debuginfo. A symbol table file (symbolizer/symbol_table.h) is for this
 * machine and version, this one stays.
 *
 * Threads: any, on different files.
 */
#include "symbolizer/symbol_table.h"

/** Does a file begin like one? */
bool symbol_file_magic(const void *head, size_t n);

/**
 * Write the table into fd, an empty regular file. Its build-id is what the object is known by.
 * @param go_id the object's Go build-id, where build_id is another one; size 0 none.
 * @return ST_TOO_BIG past LIMIT_SYMBOL_FILE_BYTES; ST_NO_MEMORY; ST_OS.
 */
enum status symbol_file_write(const struct symbol_table *t, const struct build_id *go_id, int fd, struct error *err) MUST_CHECK;

/**
 * Read one from a regular file that may hold anything. What is read is a table as symbol_table_check() wants it.
 * @param name for messages.  @param ret owned, symbol_table_deinit().  @param go_id_ret may be NULL.
 * @return ST_BAD_DATA; ST_UNSUPPORTED for another version; ST_TOO_BIG; ST_NO_MEMORY; ST_OS.
 */
enum status symbol_file_read(int fd, const char *name, struct symbol_table *ret, struct build_id *go_id_ret,
                             struct error *err) MUST_CHECK;

#endif
