/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_FILE_H
#define CAIRN_COMMON_FILES_FILE_H

/**
 * @file
 * Whole-file reads with a limit, and writes that survive power loss.
 *
 * A durable file is written under a temporary name in its directory, fdatasync()ed, renamed, and the directory is
 * fsync()ed. Once the call has returned ST_OK the new content survives a power cut; until then the old content does.
 * Temporary names begin with ".tmp-" and may be removed at start-up.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/memory/buf.h"

/** Read a whole file into buf (its max is the limit): ST_NOT_FOUND when absent, ST_TOO_BIG, ST_OS. */
enum status file_read(const char *path, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * ST_BAD_DATA unless the last line of a text has its line end, since half a line of settings may be another setting;
 * and for UTF-16, of which a byte order mark or zero bytes tell.
 */
enum status file_check_text(const char *path, const struct buf *text, struct error *err) MUST_CHECK;

/** file_read() for settings in lines, with file_check_text() and without UTF-8's byte order mark. */
enum status file_read_lines(const char *path, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * The first non-blank line of a file of at most max bytes, without surrounding blanks; owned.
 * @return like file_read(); ST_USAGE if there is no such line; ST_BAD_DATA for UTF-16.
 */
enum status file_read_first_line(const char *path, size_t max, char **ret, struct error *err) MUST_CHECK;

/** Write all n bytes, handling short writes and EINTR. */
enum status file_write_all(int fd, const void *data, size_t n, const char *path, struct error *err) MUST_CHECK;

/**
 * Call each() for consecutive chunks of the file of at most a megabyte, from its start regardless of its offset. @param
 * name for messages.
 */
enum status file_read_chunks(int fd, const char *name,
                             enum status (*each)(void *context, const void *data, size_t n, struct error *err),
                             void *context, uint64_t *size_ret, struct error *err) MUST_CHECK;

/** Replace path durably. */
enum status file_write_durable(const char *path, const void *data, size_t n, struct error *err) MUST_CHECK;

/**
 * Open a temporary file in the directory of path; its name is stored in tmp_ret (owned). Close and rename with
 * file_publish().
 */
enum status file_create_temporary(const char *path, char **tmp_ret, int *fd_ret, struct error *err) MUST_CHECK;

/** Sync fd (takes it, closed also on failure), rename tmp to path, sync the directory. On failure tmp is unlinked. */
enum status file_publish(int fd, const char *tmp, const char *path, struct error *err) MUST_CHECK;

/** Like file_publish(), but ST_BUSY if path exists (tmp is then unlinked). */
enum status file_publish_new(int fd, const char *tmp, const char *path, struct error *err) MUST_CHECK;

/**
 * Sync the file system that contains dir. Needed before relying on the state left by an earlier process, which may have
 * been killed between a change and its sync: the change is visible but a power cut could still undo it.
 */
enum status file_sync_filesystem(const char *dir, struct error *err) MUST_CHECK;

/** Kinds of synced data, for the histogram. */
enum synced { SYNC_QUEUE /* batches, before they are acknowledged */, SYNC_FILE, SYNC_DIRECTORY };

/** fdatasync(), for a directory fsync(); timed in cairn_fsync_duration_seconds. @return 0, or -1 with errno. */
int file_sync_timed(int fd, enum synced what) MUST_CHECK;

/** Register the histogram of syncs, so that it appears before the first sync. */
void file_register_sync_metrics(void);

/** Make a new file with the current content of another, not synced. ST_NOT_FOUND if that one does not exist. */
enum status file_copy_new(const char *from, const char *to, uint64_t *bytes_ret, struct error *err) MUST_CHECK;

/**
 * Give a file that is never changed in place a second name, by a hard link or else a copy. Errors as of
 * file_copy_new().
 * @param copied_bytes_ret  UINT64_MAX for a link.
 */
enum status file_link_or_copy(const char *from, const char *to, uint64_t *copied_bytes_ret,
                              struct error *err) MUST_CHECK;

/** fsync() the directory that holds path. */
enum status file_sync_parent(const char *path, struct error *err) MUST_CHECK;

/** mkdir -p with mode 0755; the parent of each new directory is synced. */
enum status file_make_dirs(const char *path, struct error *err) MUST_CHECK;

/** Remove a file or a directory tree; ST_OK if it does not exist. */
enum status file_remove_tree(const char *path, struct error *err) MUST_CHECK;

/** "a/b" from "a" and "b", owned; NULL when out of memory. */
char *path_join(const char *dir, const char *name);

/** The text after the last slash, borrowed. */
const char *path_base(const char *path);

/** "/a/./b/../c//d" to "/a/c/d", in place. ".." at the root is ignored. */
void path_normalize(char *path);

/** Whether ".." components lead above the path's root. */
bool is_path_outside_root(const char *path);

/** Bytes of a file. */
struct file_range {
        uint64_t offset, size;
};

/** A private read-only mapping of a regular file; an empty file has data NULL. */
struct file_map {
        const void *data;
        size_t size;
};
enum status file_map_fd(int fd, size_t max, const char *name, struct file_map *ret, struct error *err) MUST_CHECK;
enum status file_map_open(const char *path, size_t max, struct file_map *ret, struct error *err) MUST_CHECK;
void file_map_close(struct file_map *m);
#define _cleanup_file_map_ _cleanup_(file_map_close)

#endif
