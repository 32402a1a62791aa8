/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_DEBUG_FILE_SEARCH_H
#define CAIRN_SYMBOLIZER_EXTRACTION_DEBUG_FILE_SEARCH_H

/**
 * @file
 * Finding the files that belong to an ELF file on this machine, as gdb does:
 * its debug file by build-id under the debug directory, or by .gnu_debuglink
 * beside it, in .debug/ and under the debug directory, or, unlike gdb, as
 * FILE.debug beside it with the same build-id; the dwz
 * supplementary file that the DWARF refers to; and split DWARF. With a list of
 * paths, as elfutils does. For command-line
 * programs only: it opens paths given in the files.
 * Source: GDB manual, "Debugging Information in Separate Files"; elfutils,
 * libdwfl.h, dwfl_standard_find_debuginfo().
 */
#include "symbolizer/extraction/extract.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"

/** Where the files that belong to an ELF file are looked for. */
struct debug_file_search {
        const char *directory; /* the debug directory */
        /**
         * In place of the debug directory: entries with colons between, as elfutils has them. An absolute one is a
         * debug directory in which leading directories of the file's may be missing; a relative one is beside the file,
         * and an empty one the file's directory. A sign before an entry is ignored: checksums are always compared.
         * NULL: the directory, and the places that gdb knows.
         */
        const char *path_list;
        const char *package; /* the package of split DWARF; NULL: FILE.dwp */
        /**
         * Called for a debug file, or a dwz supplementary file, that is not on this machine, once it is known that the
         * file itself has no line tables. NULL: not called.
         * @return an owned descriptor, -1 none. The build-id of its content is checked.
         */
        int (*fetch)(void *context, const struct build_id *id, const char *name);
        void *context;
};

/** As extract_inputs_find(), with a search that may fetch files. */
enum status extract_inputs_search(const char *path, const struct debug_file_search *search, struct extract_inputs *ret,
                                  struct error *err) MUST_CHECK;

/** The same for an open file, which path names. @param fd taken. */
enum status extract_inputs_search_of(int fd, const char *path, const struct debug_file_search *search,
                                     struct extract_inputs *ret, struct error *err) MUST_CHECK;

/**
 * Open path and the files that belong to it.
 * @param directory the debug directory, DEBUG_DIRECTORY on a usual system.
 * @param ret owned, extract_inputs_close(); name borrows path.
 * @return ST_OK also when nothing else was found; ST_OS or ST_BAD_DATA about path itself.
 */
enum status extract_inputs_find(const char *path, const char *directory, struct extract_inputs *ret,
                                struct error *err) MUST_CHECK;
void extract_inputs_close(struct extract_inputs *in);

#endif
