/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_STORED_DWO_H
#define CAIRN_PIPELINE_STORED_DWO_H

/**
 * @file
 * Opens stored .dwo files for a worker by the unit's id alone: paths of the compiling machine do not apply here.
 *
 * Threads: the thread that waits for the worker.
 */
#include "debuginfo-store/debuginfo_store.h"
#include "pipeline/id_set.h"

struct stored_dwo {
        struct debuginfo_store *objects;
        struct id_set *missing; /* receives requested files that are not stored, at most missing_max; may be NULL */
        size_t missing_max;
};

/** The open() callback of struct dwarf_dwo_source; context is a struct stored_dwo. */
enum status stored_dwo_open(void *context, uint64_t unit, const char *directory, const char *name, unsigned attempt,
                            int *fd_ret);

#endif
