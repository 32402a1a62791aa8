/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_DWARF_FILE_H
#define CAIRN_DWARF_DWARF_FILE_H

/**
 * @file
 * Debug sections with their units: of an object, of its supplementary file, of one .dwo file, or of one unit of a
 * package.
 *
 * Threads: immutable except for the cached outlines and the index of types, which a lock protects.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "dwarf/sections.h"
#include "dwarf/unit.h"

#define DWARF_OUTLINE_BUCKETS 256

struct dwarf_outline;
struct dwarf_types;

struct dwarf_file {
        struct dwarf_sections sections;
        struct dwarf_units units;
        pthread_mutex_t lock;                                  /* of outlines, and of making types */
        struct dwarf_outline *outlines[DWARF_OUTLINE_BUCKETS]; /* owned; of units that others refer to */
        _Atomic(struct dwarf_types *) types;                   /* owned; created on first use (dwarf/types.h) */
};

/**
 * @param sections taken, also on failure.
 * @param ret must not be copied; dwarf_file_deinit() also on failure.
 * @return ST_OK also with damage of sections and units; ST_NO_MEMORY.
 */
enum status dwarf_file_init(struct dwarf_file *ret, const struct dwarf_sections *sections,
                            struct error *err) MUST_CHECK;
/** f may be zeroed. */
void dwarf_file_deinit(struct dwarf_file *f);

/** The outline of one of the file's units, if it is kept. */
struct dwarf_outline *dwarf_file_outline(struct dwarf_file *f, const struct dwarf_unit *unit);
/** Takes the outline. Two threads may make the same one; both are kept until dwarf_file_deinit(). */
void dwarf_file_keep_outline(struct dwarf_file *f, struct dwarf_outline *outline);

#endif
