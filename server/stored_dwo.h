/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_STORED_DWO_H
#define CAIRN_SERVER_STORED_DWO_H

/**
 * @file
 * .dwo files for a worker, out of the store: by the unit's id alone, since names
 * of the machine that compiled mean nothing here.
 *
 * Threads: the one that waits for the worker.
 */
#include "debuginfo-store/store.h"
#include "server/id_set.h"

struct stored_dwo {
        struct debuginfo_store *objects;
        struct id_set *missing; /* takes what was asked for and is not stored, so many at most; NULL: nobody asks */
        size_t missing_max;
};

/** As open() of struct dwarf_dwo_source; the context is a struct stored_dwo. */
enum status stored_dwo_open(void *context, uint64_t unit, const char *directory, const char *name, unsigned attempt, int *fd_ret);

#endif
