/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_SNAPSHOT_H
#define CAIRN_PIPELINE_SNAPSHOT_H

/**
 * @file
 * Consistent copy of a data directory, also while the service writes to it: for each tenant the tables with their logs,
 * raw queue and batch ids; the shared and per-tenant index, object records and object files. Not copied: data that is
 * recreated or belongs to a process (scanned trees' cache, unfinished uploads, locks).
 *
 * Every batch acknowledged before the call is in the copy exactly once, with the index and objects of that time or
 * later. No lock is taken; consistency follows from the order:
 *  1. of each tenant and of what they share the index (as of one read transaction), then resymbolize-queue: an object
 * whose symbols changed is in the queue until its locations are rewritten in the tables, which are read later;
 *  2. states V of the three logs, samples first; then the raw queue, then batch ids; then the samples' log is read
 * again. Unless a flush or a removal was committed since V, a batch is either at or below the position that V covers,
 * or in the copied queue, and its id is in the copied ids or it is in the copied queue. Otherwise repeat.
 *  3. the files that V names, and the log up to V. Files that a later commit removes stay for the grace period;
 *  4. files of objects, their records, and the files again: a record is committed after its file, and removed before
 * it.
 *
 * The copy's folder has the permissions of the original. Files that never change are hard links where the file system
 * allows; those that change in place (queue, batch ids, databases) are copied.
 *
 * Durability: the copy is made as DIR.incomplete, the file system is synced, and then it is renamed to DIR. After a
 * power cut DIR is complete or absent.
 */
#include <stdint.h>

#include "common/error.h"

struct snapshot_result {
        uint64_t linked_files, copied_files, copied_bytes;
        uint64_t sample_rows, sample_files;
};

/**
 * Copy the data directory data to dir, which must not exist; trailing slashes are ignored.
 *
 * @return ST_OK; ST_NOT_FOUND without tables in data; ST_BUSY when dir exists, or flushes commit more often than the
 *         queue can be copied; ST_BAD_DATA; ST_OS; ST_NO_MEMORY. On failure dir does not exist.
 */
enum status take_snapshot(const char *data, const char *dir, struct snapshot_result *ret, struct error *err) MUST_CHECK;

#endif
