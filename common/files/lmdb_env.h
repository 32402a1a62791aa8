/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_LMDB_ENV_H
#define CAIRN_COMMON_FILES_LMDB_ENV_H

/**
 * @file
 * LMDB environments: crash-safe creation, size of the memory map, errors.
 *
 * The memory map bounds the database. The default sizes are far above actual use; an environment variable overrides
 * them on machines with little address space, and in tests of a full map.
 *
 * Threads: any; one process per directory.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define LMDB_MAP_INDEX "CAIRN_INDEX_MAP_MIB"
#define LMDB_MAP_DEBUGINFO "CAIRN_DEBUGINFO_MAP_MIB"
#define LMDB_MAP_SCAN "CAIRN_SCAN_MAP_MIB"

/** Map size in bytes: the environment variable, in MiB, if it is a positive number, else normal_bytes. */
size_t lmdb_map_bytes(const char *variable, size_t normal_bytes);

/** The memory map of an environment, for the error of a full one. */
struct lmdb_map {
        const char *variable; /* LMDB_MAP_... */
        size_t bytes;
};

/**
 * Set the error for a return code of LMDB.
 * @param what  the failed step.
 * @return ST_OK for 0; ST_NOT_FOUND; ST_BAD_DATA for a damaged environment; ST_BUSY for too many readers; ST_TOO_BIG
 *         for too large a transaction; ST_OS, also for an environment that must be opened again after a failed write,
 *         and with ENOSPC for a full map: the text names its size and the variable that raises it.
 */
enum status lmdb_set_error(struct error *err, int rc, const struct lmdb_map *map, const char *what);

/**
 * Create dir/data.mdb as an empty environment unless it exists. dir must exist. Durable on return.
 *
 * LMDB writes its first pages in place and syncs neither them nor the directory entry: after a crash they may be
 * damaged, and a power cut may remove the file together with all committed data. This function creates the file under a
 * temporary name, syncs it and renames it.
 */
enum status lmdb_create_env(const char *dir, struct error *err) MUST_CHECK;

/**
 * Copy from_dir/data.mdb, as of one read transaction, to the directory to_dir, which must not contain one: writers in
 * other processes continue. Not synced. Not for an environment that this process has open.
 * @return ST_OK; ST_NOT_FOUND; ST_OS; ST_BAD_DATA.
 */
enum status lmdb_copy_env(const char *from_dir, const char *to_dir, uint64_t *bytes_ret, struct error *err) MUST_CHECK;

struct lmdb_usage {
        uint64_t map_bytes;  /* as set by its last writer */
        uint64_t used_bytes; /* high-water mark: freed pages are not subtracted */
};

/**
 * Measure an environment. Reads only its header, without a lock: any process may have it open, including this one.
 * @return ST_OK; ST_NOT_FOUND; ST_OS; ST_BAD_DATA if it is not an environment.
 */
enum status lmdb_measure_env(const char *dir, struct lmdb_usage *ret, struct error *err) MUST_CHECK;

#endif
