/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_STRAYS_H
#define CAIRN_DEBUGINFO_STORE_STRAYS_H

/**
 * @file
 * Files of DIR/objects that no record names, as a crash between two steps
 * leaves them. What is not named like an object is somebody else's and stays.
 *
 * Threads: any; a file is looked at while nothing is published.
 */
#include "debuginfo-store/store.h"

/** Count them, and unless dry_run remove them, with the folders that are empty then. */
enum status strays_sweep(struct debuginfo_store *store, bool dry_run, uint64_t *count_ret, uint64_t *bytes_ret,
                         struct error *err) MUST_CHECK;

#endif
