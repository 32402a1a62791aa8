/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_CHECK_H
#define CAIRN_DEBUGINFO_STORE_CHECK_H

/**
 * @file
 * Whether objects still are what they were when they were stored: each is
 * unpacked and hashed.
 *
 * Threads: any; uploads go on meanwhile.
 */
#include "debuginfo-store/store.h"

/** ST_BAD_DATA when the object is damaged, ST_NOT_FOUND when it is stored no more. */
enum status debuginfo_store_check(struct debuginfo_store *store, const struct object_name *name, struct error *err) MUST_CHECK;

#endif
