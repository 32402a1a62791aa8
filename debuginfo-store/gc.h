/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_GC_H
#define CAIRN_DEBUGINFO_STORE_GC_H

/**
 * @file
 * Garbage collection: removes objects that the retention rules expire, orphaned files without a record, and abandoned
 * resumable uploads (partial.h).
 *
 * Objects beyond a rule's age or unused time are removed first. Then, for each rule with a size, objects that upstreams
 * can supply again, then the least recently used ones, until the rest fits. Pinned objects, objects that are not
 * indexed yet and companions of stored objects are kept; they count towards the size.
 *
 * The record is removed durably before the file; a crash in between leaves an orphan, which the next collection
 * removes.
 *
 * Memory: 120 bytes for each object that a rule with a size selects.
 * Threads: any, concurrently with uploads and readers.
 */
#include "debuginfo-store/retention.h"

/** Why an object was removed; the names are public (JSON, metrics). GC_SUPERSEDED belongs to
 * debuginfo_store_remove_superseded(). */
enum gc_reason { GC_AGE, GC_UNUSED, GC_SIZE, GC_SUPERSEDED, GC_REASON_COUNT };
const char *gc_reason_name(enum gc_reason r); /* "age", "unused", "size", "superseded" */

struct gc_options {
        const struct retention_rule *rules; /* borrowed */
        size_t rule_count;
        int64_t now_unix_s;
        bool dry_run; /* report only, remove nothing */
        /* Whether the object still has to be indexed. NULL: none. */
        bool (*needed)(void *context, const struct stored_object *object);
        bool sweep; /* remove orphans too, which walks all folders */
        /* Called for each object that was removed, or would be in a dry run. May be NULL. */
        void (*removed)(void *context, const struct stored_object *object, enum gc_reason why);
        void *context;
};

struct gc_result {
        uint64_t objects, bytes; /* that are kept; all bytes here are on disk */
        uint64_t removed[GC_REASON_COUNT], removed_bytes;
        uint64_t pinned, needed,
                companions; /* kept although a rule expires them: pinned, not indexed yet, needed by a stored object */
        uint64_t strays, stray_bytes; /* files without a record */
};

enum status debuginfo_store_collect_garbage(struct debuginfo_store *store, const struct gc_options *options,
                                            struct gc_result *ret, struct error *err) MUST_CHECK;

/**
 * Remove a symbol file that debuginfo or an executable of the same build-id superseded: symbol files are read by the
 * indexer only, and the index has symbols as good from the other object.
 *
 * The file stays when no such object of its quality is stored (it may be in a scanned tree, which may go), when it is
 * pinned or a retention rule says keep, and when an alias leads to the build-id through it alone.
 * @param symbols as they were when the index was compared.
 * @return ST_OK, durable; ST_NOT_FOUND when the file stays, or is gone.
 */
enum status debuginfo_store_remove_superseded(struct debuginfo_store *store, const struct stored_object *symbols,
                                              const struct retention_rule *rules, size_t rule_count,
                                              struct error *err) MUST_CHECK;

#endif
