/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_LMDB_NEW_H
#define CAIRN_COMMON_LMDB_NEW_H

/**
 * @file
 * The first file of an LMDB environment. LMDB writes its first pages in place
 * and syncs neither them nor the name: what a crash leaves of them is refused
 * ever after, and a power cut may take the name together with all that was
 * committed. So the file is made whole under another name, synced and renamed.
 *
 * Threads: any; one process for a directory.
 */
#include "common/error.h"

/** Make dir/data.mdb, an empty environment, if it is not there. dir exists. Durable when it returns. */
enum status lmdb_make_new(const char *dir, struct error *err) MUST_CHECK;

#endif
