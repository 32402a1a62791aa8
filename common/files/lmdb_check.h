/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_LMDB_CHECK_H
#define CAIRN_COMMON_FILES_LMDB_CHECK_H

/**
 * @file
 * Check of the page trees of an LMDB database.
 *
 * LMDB maps its file, has no checksums, and follows page numbers without a test: a damaged page kills the process with
 * SIGBUS or SIGSEGV, or keeps it in a loop. So a database of unknown state is checked before LMDB opens it, by reading
 * the file with pread(). Each page is visited once, so the work and the memory are bounded by the file's size, whatever
 * it contains. Values in overflow pages are not read: their formats have their own checks.
 *
 * Checked are the header and bounds of each page, the position and size of each node, the order of the keys in a page,
 * the counts of each tree, and that no page belongs to two trees or is free and used.
 *
 * Threads: any. Source: LMDB 0.9.24, the structures MDB_page, MDB_node, MDB_db and MDB_meta of mdb.c.
 */
#include "common/error.h"

/**
 * Check dir/data.mdb, for a process that does not have it open. Processes that write it at the same time are noticed
 * only by their lock: call this with a lock that excludes them, or with lmdb_check_snapshot().
 * @return ST_OK, also without a file; ST_BAD_DATA: damaged, the text names the file and the page; ST_OS; ST_NO_MEMORY.
 */
enum status lmdb_check_env(const char *dir, struct error *err) MUST_CHECK;

/** As lmdb_check_env(), as of a read transaction: other processes may write meanwhile. */
enum status lmdb_check_snapshot(const char *dir, struct error *err) MUST_CHECK;

#endif
