/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_GC_H
#define CAIRN_DEBUGINFO_STORE_GC_H

/**
 * @file
 * Removing objects that the retention rules give up, files that no record
 * names, and uploads that nobody went on with (partial.h).
 *
 * What is past its age or its last use goes; then, for each rule with a size,
 * what upstreams can give again, and of the rest what was used longest ago,
 * until the others fit. Pinned objects stay, and so do those that are still
 * to be read and companions of objects that stay; they count for the size.
 *
 * An object's record goes first, durably, then its file; a crash in between
 * leaves a file that the next collection removes.
 *
 * Memory: 120 bytes for each object that a rule with a size selects.
 * Threads: any; uploads and readers go on meanwhile.
 */
#include "debuginfo-store/retention.h"

/** Why an object goes; the names are public (JSON, metrics). The last one is no rule's: superseded.h. */
enum gc_reason { GC_AGE, GC_UNUSED, GC_SIZE, GC_SUPERSEDED, GC_REASON_COUNT };
const char *gc_reason_name(enum gc_reason r); /* "age", "unused", "size", "superseded" */

struct gc_options {
        const struct retention_rule *rules; /* borrowed */
        size_t rule_count;
        int64_t now_unix_s;
        bool dry_run;                       /* tell, remove nothing */
        /* Whether the object has still to be read for its symbols. NULL: none has. */
        bool (*needed)(void *context, const struct stored_object *object);
        bool sweep;                         /* look for files that no record names too: that walks all folders */
        /* Told of each object that went, or would go in a dry run. May be NULL. */
        void (*removed)(void *context, const struct stored_object *object, enum gc_reason why);
        void *context;
};

struct gc_result {
        uint64_t objects, bytes;            /* that stay; bytes on disk here and below */
        uint64_t removed[GC_REASON_COUNT], removed_bytes;
        uint64_t pinned, needed, companions; /* kept past their rule: pinned, not read yet, needed by a stored object */
        uint64_t strays, stray_bytes;       /* files without a record */
};

enum status debuginfo_store_gc(struct debuginfo_store *store, const struct gc_options *options, struct gc_result *ret,
                               struct error *err) MUST_CHECK;

#endif
