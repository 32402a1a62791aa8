/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_DATA_LOCK_H
#define CAIRN_SERVER_DATA_LOCK_H

/**
 * @file
 * One process at a time changes a data directory: it holds a lock on DIR/lock.
 */
#include "common/error.h"

/** Close ret to unlock. ST_BUSY when another process has it; ST_NOT_FOUND when there is no directory. */
enum status data_lock(const char *dir, int *ret, struct error *err) MUST_CHECK;

#endif
