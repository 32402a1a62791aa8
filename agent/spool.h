/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SPOOL_H
#define CAIRN_AGENT_SPOOL_H

/**
 * @file
 * A directory of batches that no service has acknowledged yet, a file each
 * (docs/formats/spool.md).
 *
 * A batch that was written survives the end of the agent, however it comes: its
 * file gets its name only when it is whole. Once it is synced it survives the
 * machine's end too. One process at a time has the directory.
 *
 * Threads: any, for different batches; open and close by one.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/spool_file.h"
#include "common/buf.h"

struct spool;

struct spool_entry {
        uint64_t number;
        uint64_t disk_bytes; /* what the file takes, whole blocks */
};

struct spool_found {
        struct spool_entry *entries; /* owned, by number */
        size_t count;
        size_t damaged;              /* files that were set aside earlier */
};
void spool_found_deinit(struct spool_found *f);

/**
 * Make the directory when it is missing, lock it and list its batches.
 * @param foreign  called with the name of each file that is not the agent's; those are left alone.
 * @return ST_BUSY when another process has it; ST_USAGE when others may write to it; ST_OS.
 */
enum status spool_open(const char *dir, void (*foreign)(void *context, const char *name), void *context,
                       struct spool **ret, struct spool_found *found_ret, struct error *err) MUST_CHECK;
void spool_close(struct spool *s); /* takes NULL */

const char *spool_dir(const struct spool *s);

/** What a payload of n bytes takes on the disk. */
uint64_t spool_disk_bytes(size_t n);

/** Write a batch, not synced yet. A failure (disk full, say) leaves nothing behind. */
enum status spool_write(struct spool *s, const struct spool_batch *b, struct error *err) MUST_CHECK;

/** Make batches that were written survive a power cut. A batch that is gone meanwhile is no failure. */
enum status spool_sync(struct spool *s, const uint64_t *numbers, size_t count, struct error *err) MUST_CHECK;

/**
 * Read a batch back.
 * @param file  receives the file's bytes, which ret borrows.
 * @return ST_NOT_FOUND, ST_BAD_DATA, ST_UNSUPPORTED: it will not get better; ST_OS, ST_NO_MEMORY.
 */
enum status spool_read(struct spool *s, uint64_t number, struct buf *file, struct spool_batch *ret,
                       struct error *err) MUST_CHECK;

/** Absent is fine. */
enum status spool_remove(struct spool *s, uint64_t number, struct error *err) MUST_CHECK;

/** Rename a file that cannot be read to NAME.damaged, where nobody reads it again. */
enum status spool_set_aside(struct spool *s, uint64_t number, struct error *err) MUST_CHECK;

#endif
