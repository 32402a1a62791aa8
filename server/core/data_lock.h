/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_DATA_LOCK_H
#define CAIRN_SERVER_CORE_DATA_LOCK_H

/**
 * @file
 * Lock of a data directory (DIR/lock): one process at a time may modify it.
 */
#include "common/error.h"

/** Close ret to unlock. ST_BUSY when another process holds it; ST_NOT_FOUND when the directory does not exist. */
enum status lock_data_dir(const char *dir, int *ret, struct error *err) MUST_CHECK;

#endif
