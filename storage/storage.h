/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_STORAGE_H
#define CAIRN_STORAGE_STORAGE_H

/**
 * @file
 * Objects under keys: what the tables and the debuginfo store need of a file system, and what an object store has.
 *
 * A key is a relative path, "samples/_delta_log/00000000000000000007.json"; none of its components is empty or begins
 * with a dot. An object appears complete or not at all, is never changed in place, and may be replaced as a whole.
 * A folder is the keys that begin with its name and a slash.
 *
 * Durability: after ST_OK of storage_publish() and storage_put() the object survives a power cut. Removals need not:
 * what was removed may exist again.
 *
 * Errors of all calls: ST_NOT_FOUND without the object; ST_NO_MEMORY; ST_OS, with EREMOTEIO when the store does not
 * answer, and with EACCES when it refuses a request until an administrator changes something: rights, keys, the region.
 * ST_OS of storage_publish() and storage_put() leaves open whether the object is there: read it back before relying on
 * either. Messages name an object by storage_root(), a slash and its key.
 *
 * Ownership: a storage outlives what was opened from it, unless stated otherwise. Threads: every call may come from any
 * thread; uploads and maps belong to one thread, except for storage_require().
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/files/file.h"
#include "common/memory/buf.h"

struct storage;

/** NULL is allowed. */
void storage_close(struct storage *s);
#define _cleanup_storage_ _cleanup_(storage_close_pointer)
void storage_close_pointer(struct storage **s);

/** Whether a failed call was refused, see above. */
static inline bool storage_refused(const struct error *err)
{
        return err->code == ST_OS && err->os_errno == EACCES;
}

/** Where the objects are, for messages; borrowed. Of local files, a path without a slash at its end. */
const char *storage_root(const struct storage *s);

/** storage_root(), a slash and the key; owned, NULL without memory. */
char *storage_make_name(const struct storage *s, const char *key);

#define STORAGE_ETAG_BYTES 88

struct storage_info {
        uint64_t size;
        int64_t modified_ms;           /* Unix time, by the clock of storage_now_ms() */
        char etag[STORAGE_ETAG_BYTES]; /* differs when the object was replaced; "" in lists */
};

/** What becomes of an object of the same key. */
enum storage_mode {
        STORAGE_REPLACE,
        STORAGE_NEW, /* it stays, and the result is ST_BUSY: of racing writers one gets ST_OK */
};

/**
 * Make the folder of a key, durably, unless it exists. Local files need it for their first object; a folder that was
 * moved away is thus not made again by a writer that takes it for granted. An object store has nothing to do.
 */
enum status storage_make_folder(struct storage *s, const char *key, struct error *err) MUST_CHECK;

/** An object that is being written. */
struct storage_upload {
        struct storage *storage;
        char *name;      /* storage_make_name(), for messages */
        const char *key; /* within name */
        int fd;          /* write the content here, in any order */
        char *tmp;       /* of the implementation */
};

/** @param ret  end it with storage_publish() or storage_discard(); empty after a failure. */
enum status storage_begin(struct storage *s, const char *key, struct storage_upload *ret, struct error *err) MUST_CHECK;

/** Make what was written an object. Takes u, also on failure. */
enum status storage_publish(struct storage_upload *u, enum storage_mode mode, struct error *err) MUST_CHECK;

/** Give it up. No effect when u is empty, as after storage_publish(). */
void storage_discard(struct storage_upload *u);

/** Begin, write and publish. */
enum status storage_put(struct storage *s, const char *key, const void *data, size_t n, enum storage_mode mode,
                        struct error *err) MUST_CHECK;

/** Append the object to buf, whose max is the limit: ST_TOO_BIG. */
enum status storage_read(struct storage *s, const char *key, struct buf *ret, struct error *err) MUST_CHECK;

/** A descriptor from which every byte of the object can be read. @param fd_ret  owned; offset 0. */
enum status storage_open(struct storage *s, const char *key, int *fd_ret, struct storage_info *ret,
                         struct error *err) MUST_CHECK;

/** An object in memory. Ranges of it may be absent until they are required. */
struct storage_map {
        struct file_map file; /* data is NULL for an empty object */
        struct storage *storage;
        void *state;         /* of the implementation */
        bool is_cached_only; /* may be set: storage_require() fails rather than ask a network */
};

/**
 * Map an object of at most max bytes: ST_TOO_BIG. It may be removed while it is mapped. Nothing of it may be read
 * before storage_require().
 * @param ret  end it with storage_unmap(); empty after a failure.
 */
enum status storage_map(struct storage *s, const char *key, size_t max, struct storage_map *ret,
                        struct error *err) MUST_CHECK;
void storage_unmap(struct storage_map *m);
#define _cleanup_storage_map_ _cleanup_(storage_unmap)

/** Make ranges within the object present; they stay until storage_unmap(). Any thread. */
enum status storage_require(struct storage_map *m, const struct file_range *ranges, size_t count,
                            struct error *err) MUST_CHECK;

/**
 * Get ranges anew, of which what was read is not what was put. Others may read the map meanwhile.
 * @return ST_UNSUPPORTED, without a message, when there is no other copy than the one that was read, or when an object
 * was loaded anew so often that the other copy must be damaged, too.
 */
enum status storage_reload(struct storage_map *m, const struct file_range *ranges, size_t count,
                           struct error *err) MUST_CHECK;
bool storage_can_reload(const struct storage_map *m);

/** Whether a map of the object needs no answer of a network: the object, or its end, is here. Any thread. */
bool storage_has_at_hand(struct storage *s, const char *key);

/** @param key, info  borrowed for the call. A failure ends the list. */
typedef enum status storage_visit(void *context, const char *key, const struct storage_info *info, struct error *err);

/**
 * Visit the objects whose keys are in a folder, in the byte order of their keys. Objects that are put or removed
 * meanwhile are visited or not; an object store may also be late to list new ones.
 * @param folder  ends with a slash, or "" for all.
 * @param after   visit only keys behind this one; "" for all.
 * @return ST_OK, also when there is no such folder; the first failure of visit().
 */
enum status storage_list(struct storage *s, const char *folder, const char *after, storage_visit *visit, void *context,
                         struct error *err) MUST_CHECK;

enum status storage_stat(struct storage *s, const char *key, struct storage_info *ret, struct error *err) MUST_CHECK;

/** A question about one object. */
struct storage_question {
        const char *key;
        struct buf *text;         /* storage_read() appends to it; NULL: the object is not read */
        struct storage_info info; /* as of storage_stat(), also of an object that was read */
        enum status status;       /* the answer, with error */
        struct error error;
};

/** Ask all questions, of an object store at the same time. */
void storage_ask(struct storage *s, struct storage_question *questions, size_t count);

/** @return ST_NOT_FOUND when it is known that there was no object; an object store does not tell. */
enum status storage_remove(struct storage *s, const char *key, struct error *err) MUST_CHECK;

/**
 * Remove what uploads left that were interrupted, as by a crash, and were last written before before_ms.
 * @param count_ret  added to, also on failure.
 */
enum status storage_remove_unfinished(struct storage *s, const char *folder, int64_t before_ms, uint64_t *count_ret,
                                      struct error *err) MUST_CHECK;

/**
 * Make a new local file with the object's content, by a hard link where possible. It is not synced.
 * @param copied_bytes_ret  the size, or UINT64_MAX for a link.
 */
enum status storage_export(struct storage *s, const char *key, const char *path, uint64_t *copied_bytes_ret,
                           struct error *err) MUST_CHECK;

/** Bytes that may still be put; UINT64_MAX without a limit, or when it is unknown. */
uint64_t storage_get_free_bytes(struct storage *s);

/** The store's clock, Unix time: that of modified_ms, so that ages do not depend on the clocks of several machines. */
int64_t storage_now_ms(struct storage *s);

#endif
