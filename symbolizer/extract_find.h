/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_FIND_H
#define CAIRN_SYMBOLIZER_EXTRACT_FIND_H

/**
 * @file
 * Finding the files that belong to an ELF file on this machine, as gdb does:
 * its debug file by build-id under the debug directory, or by .gnu_debuglink
 * beside it, in .debug/ and under the debug directory; the supplementary file
 * that the one with the DWARF names; and split DWARF (extract_find_dwo.h).
 * For command-line programs: it opens paths that the files name.
 * Source: GDB manual, "Debugging Information in Separate Files".
 */
#include "symbolizer/extract.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"

/**
 * Open path and what belongs to it.
 * @param directory the debug directory, DEBUG_DIRECTORY on a usual system.
 * @param ret owned, extract_inputs_close(); name borrows path.
 * @return ST_OK also when nothing else was found; ST_OS or ST_BAD_DATA about path itself.
 */
enum status extract_inputs_find(const char *path, const char *directory, struct extract_inputs *ret,
                                struct error *err) MUST_CHECK;
void extract_inputs_close(struct extract_inputs *in);

#endif
