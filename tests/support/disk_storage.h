/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_DISK_STORAGE_H
#define CAIRN_TESTS_SUPPORT_DISK_STORAGE_H

#include "storage/storage.h"

/* All local files: the key of a file is its absolute path without the first slash. Never closed. */
struct storage *disk_storage(void);

#endif
