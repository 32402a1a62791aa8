/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_GC_H
#define CAIRN_DEBUGINFO_STORE_GC_H

/**
 * @file
 * Garbage collection: removes objects that the retention rules expire, orphaned files without a record, and abandoned
 * resumable uploads (partial.h).
 *
 * Objects beyond a rule's age or unused time are removed first. Then, for each rule with a size, objects that can be
 * fetched from upstreams again, then the least recently used ones, until the rest fits. Pinned objects, objects that
 * are not indexed yet and companions of stored objects are kept; they count towards the size.
 *
 * The record is removed durably before the file; a crash in between leaves an orphan, which the next collection
 * removes.
 *
 * Memory: 120 bytes for each object selected by a rule with a size.
 * Threads: any, concurrently with uploads and readers.
 */
#include "debuginfo-store/object_retention.h"

/** Why an object was removed; the names are public (JSON, metrics). GC_SUPERSEDED belongs to
 * debuginfo_store_remove_superseded(). */
enum gc_reason { GC_AGE, GC_UNUSED, GC_SIZE, GC_SUPERSEDED, GC_REASON_COUNT };
const char *gc_reason_name(enum gc_reason r); /* "age", "unused", "size", "superseded" */

struct gc_options {
        const struct retention_rule *rules; /* borrowed */
        size_t rule_count;
        int64_t now_unix_s;
        bool dry_run; /* report only */
        /* Whether the object is still required, because it is not indexed. NULL: none is. */
        bool (*needed)(void *context, const struct stored_object *object);
        bool sweep; /* also remove orphans, which walks all folders */
        /* Called for each object that was removed, or would be in a dry run. May be NULL. */
        void (*removed)(void *context, const struct stored_object *object, enum gc_reason why);
        void *context;
};

struct gc_result {
        uint64_t objects, bytes; /* kept; all byte counts are on disk */
        uint64_t removed[GC_REASON_COUNT], removed_bytes;
        uint64_t pinned, needed, companions; /* kept although a rule expires them: pinned, not indexed yet, required by
                                                a stored object */
        uint64_t orphans, orphan_bytes;      /* files without a record */
};

enum status debuginfo_store_collect_garbage(struct debuginfo_store *store, const struct gc_options *options,
                                            struct gc_result *ret, struct error *err) MUST_CHECK;

/**
 * Remove a symbol file superseded by debuginfo or an executable of the same build-id: only the indexer reads symbol
 * files, and the index has equally good symbols from the other object.
 *
 * The file is kept if no such object of its quality is stored (it may be in a scanned tree, which may be removed), if
 * it is pinned or a retention rule says keep, and if it is the only object with one of its aliases.
 * @param symbols its record when the index was compared.
 * @return ST_OK, durable; ST_NOT_FOUND if the file is kept, or no longer exists.
 */
enum status debuginfo_store_remove_superseded(struct debuginfo_store *store, const struct stored_object *symbols,
                                              const struct retention_rule *rules, size_t rule_count,
                                              struct error *err) MUST_CHECK;

#endif
