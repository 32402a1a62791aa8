/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_FIND_DWO_H
#define CAIRN_SYMBOLIZER_EXTRACT_FIND_DWO_H

/**
 * @file
 * Finding split DWARF on this machine: the package beside a file (FILE.dwp), or
 * single .dwo files where they were compiled (the directory and name that the
 * skeleton has) and beside the executable and its debug file.
 *
 * Names come from the file with the skeletons, so they lead anywhere. Only
 * regular files that are ELF with .debug_info.dwo are opened; whoever reads one
 * compares its id with the skeleton's.
 */
#include "dwarf/companion.h"

struct dwo_places;

/** @param path the executable. @param debuginfo_fd its debug file, or itself. @param ret owned. */
enum status dwo_places_create(const char *path, int debuginfo_fd, struct dwo_places **ret, struct error *err) MUST_CHECK;
/** NULL is fine. */
void dwo_places_destroy(struct dwo_places *p);

/** As open() of struct dwarf_dwo_source; the context is the places. */
enum status dwo_places_open(void *places, uint64_t id, const char *directory, const char *name, unsigned attempt, int *fd_ret);

/** Open the package beside the executable or its debug file; -1 without one. */
int dwo_places_open_package(const struct dwo_places *p);

#endif
