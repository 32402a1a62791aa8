/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_COPY_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_COPY_H

/**
 * @file
 * Copy of the objects of a debuginfo store into another one, with names, tags, pins, times, aliases and companions; of
 * one object store into another also the symbol tables. What the target has of the same content is not copied again, so
 * a copy that was interrupted is continued.
 *
 * Threads: one; the target has no other user.
 */
#include "debuginfo-store/debuginfo_store.h"
#include "storage/storage_copy.h"

/** @param count  added to. */
enum status debuginfo_store_copy(struct debuginfo_store *from, struct debuginfo_store *to, struct storage_copies *count,
                                 struct error *err) MUST_CHECK;

#endif
