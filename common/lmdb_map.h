/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_LMDB_MAP_H
#define CAIRN_COMMON_LMDB_MAP_H

/**
 * @file
 * The memory map of an LMDB environment: its size, and what to say once it is full.
 *
 * The map bounds the database. The normal sizes are far above what is ever
 * used; an environment variable makes one smaller (or larger again) for a
 * machine with little address space, and for tests of a full map.
 * Threads: any.
 */
#include <stddef.h>

#include "common/error.h"

#define LMDB_MAP_INDEX "CAIRN_INDEX_MAP_MIB"
#define LMDB_MAP_DEBUGINFO "CAIRN_DEBUGINFO_MAP_MIB"
#define LMDB_MAP_SCAN "CAIRN_SCAN_MAP_MIB"

/** The bytes of a map: those of the environment variable, in MiB, if it is set to a number, or else normal_bytes. */
size_t lmdb_map_bytes(const char *variable, size_t normal_bytes);

/** The error of MDB_MAP_FULL, ST_OS with ENOSPC: what failed, the map's size and the variable that raises it. */
enum status lmdb_map_full(struct error *err, size_t map_bytes, const char *variable, const char *what);

#endif
