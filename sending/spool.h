/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SENDING_SPOOL_H
#define CAIRN_SENDING_SPOOL_H

/**
 * @file
 * Spool directory of batches that no service has acknowledged yet, one
 * file each (docs/formats/spool.md).
 *
 * A written batch survives the end of the agent: its file gets its final name
 * only when it is complete. A synced batch also survives a power cut. The
 * directory is locked by one process at a time.
 *
 * Threads: any, for different batches; open and close by one.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/memory/buf.h"
#include "sending/spool_file.h"

struct spool;

struct spool_entry {
        uint64_t number;
        uint64_t disk_bytes; /* allocated blocks */
};

struct spool_found {
        struct spool_entry *entries; /* owned, by number */
        size_t count;
        size_t damaged;       /* files set aside earlier */
        uint64_t last_number; /* greatest of all names of batches, also of what is no batch, such as a folder */
};
void spool_found_deinit(struct spool_found *f);

/**
 * Create the directory if it is missing, lock it and list its batches.
 * @param foreign  called with the name of each file that is not the agent's; such files are left
 *         alone.
 * @return ST_BUSY when another process holds the lock; ST_USAGE when others may write to the
 *         directory, or when its path leads through a symbolic link of another user; ST_UNSUPPORTED
 *         when another version of the program wrote its batches, which are left alone; ST_OS.
 */
enum status spool_open(const char *dir, void (*foreign)(void *context, const char *name), void *context,
                       struct spool **ret, struct spool_found *found_ret, struct error *err) MUST_CHECK;
void spool_close(struct spool *s); /* takes NULL */

const char *spool_dir(const struct spool *s);

/** Disk space that a payload of n bytes takes. */
uint64_t spool_disk_bytes(size_t n);

/** Write a batch, without sync. A failure, such as a full disk, leaves no file. */
enum status spool_write(struct spool *s, const struct spool_batch *b, struct error *err) MUST_CHECK;

/** Sync batches, so that they survive a power cut. Batches removed meanwhile are skipped. */
enum status spool_sync(struct spool *s, const uint64_t *numbers, size_t count, struct error *err) MUST_CHECK;

/**
 * Read a batch.
 * @param file  receives the file's bytes, which ret borrows.
 * @return ST_NOT_FOUND, ST_BAD_DATA, ST_UNSUPPORTED: permanent; ST_OS, ST_NO_MEMORY.
 */
enum status spool_read(struct spool *s, uint64_t number, struct buf *file, struct spool_batch *ret,
                       struct error *err) MUST_CHECK;

/** A missing file is not an error. */
enum status spool_remove(struct spool *s, uint64_t number, struct error *err) MUST_CHECK;

/** Rename a damaged file to NAME.damaged, so that it is not read again. */
enum status spool_set_aside(struct spool *s, uint64_t number, struct error *err) MUST_CHECK;

#endif
