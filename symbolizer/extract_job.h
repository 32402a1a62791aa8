/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_JOB_H
#define CAIRN_SYMBOLIZER_EXTRACT_JOB_H

/**
 * @file
 * The worker's side of symbolizer/extract_worker.h, for each program that
 * extracts: `worker symbols NAME FORM` makes a symbol table file, or with FORM
 * "book" a symbol book, of ELF files or of a symbol file.
 *
 * Descriptors: 3 debuginfo or the symbol file, 4 executable, 5 dwz supplementary
 * file, 6 where the result goes, 7 package of split DWARF, 8 a socket on which to
 * ask for its single files, 9 the wanted addresses (closed: all), as
 * symbolizer/extract_worker.c writes them. Each but 6 may be closed. NAME is for
 * messages.
 */
#include "common/error.h"

/** Confine the process, then extract. @param argv begins with "symbols". */
enum status extract_job(int argc, char **argv, struct error *err) MUST_CHECK;

#endif
