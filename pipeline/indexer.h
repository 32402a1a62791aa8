/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_INDEXER_H
#define CAIRN_PIPELINE_INDEXER_H

/**
 * @file
 * Indexer: threads that turn stored objects into symbols in the index.
 *
 * For each build-id: unpack the stored files, extract a symbol table in a
 * confined worker, check and load it, notify the resymbolizer. An object is
 * indexed without waiting for its companions (dwz supplementary file, .dwo
 * files), and again when all of them arrived or no more arrive (debounce.h).
 *
 * Threads: any, except start and stop.
 */
#include "debuginfo-store/federation/federation.h"
#include "pipeline/resymbolizer.h"

struct indexer;

struct indexer_options {
        struct debuginfo_store *objects; /* borrowed, like the next two */
        struct symbol_index *symbols;
        struct resymbolizer *resymbolizer;
        const char *scratch_dir;     /* for temporary files; copied, like the next member */
        const char *companions_path; /* file of missing companions (missing_companions.h) */
        /* A required companion is not stored. May be NULL. */
        void (*wanted)(void *context, const struct build_id *id);
        /* Opens an object that is not in the store; the descriptor is owned. May be NULL. */
        enum status (*open_other)(void *context, const struct build_id *id, enum object_kind kind, int *fd_ret,
                                  struct error *err);
        /* Whether open_other() has a supplementary file with this build-id. May be NULL. */
        bool (*has_other)(void *context, const struct build_id *id);
        /* The index has complete symbols from ELF files, at least as good as this symbol file's. May be NULL. */
        void (*superseded)(void *context, const struct stored_object *symbols);
        /* A job ended. May be NULL. */
        void (*done)(void *context);
        void *context;
};

/** Queues all stored objects that are not indexed. */
enum status indexer_start(const struct indexer_options *options, struct indexer **ret, struct error *err) MUST_CHECK;
/** Kills running workers. Unfinished objects are indexed after the next start. NULL is allowed. */
void indexer_stop(struct indexer *ix);

/** Whether the object is queued, postponed or being indexed. */
bool indexer_is_busy_with(struct indexer *ix, const struct build_id *id);

/** Whether the service itself prevents indexing (full or read-only disk, full index). @param ret the last failure. */
bool indexer_is_blocked(struct indexer *ix, struct error *ret);

/** A file was stored for this build-id: index it, and all objects whose missing companion it is. */
void indexer_enqueue(struct indexer *ix, const struct build_id *id, enum object_kind kind);

/**
 * The same, with the uploaded file: it is read instead of the stored object, until the object was indexed once.
 * @param fd taken, read-only; -1: none.
 */
void indexer_enqueue_file(struct indexer *ix, const struct stored_object *object, int fd);

/** Queue all stored objects that are not indexed, as other nodes may have stored some. */
enum status indexer_enqueue_unindexed(struct indexer *ix, struct error *err) MUST_CHECK;

/** open_other() may find more than before: re-index the objects whose missing companions it now has. */
void indexer_recheck_companions(struct indexer *ix);

#endif
