/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INDEXER_H
#define CAIRN_SERVER_INDEXER_H

/**
 * @file
 * From a stored object to symbols in the index: unpack what is stored of its
 * build-id, have a confined worker make the symbol table, check and load it,
 * tell the healer. An object waits for its companions (dwz supplementary file,
 * .dwo files) only in so far as it is indexed again when they arrive: when the
 * last one has, or no further one has for a while (later.h).
 *
 * Threads: any, except start and stop.
 */
#include "debuginfo-store/federation.h"
#include "server/healer.h"

struct indexer;

struct indexer_options {
        struct debuginfo_store *objects; /* all borrowed */
        struct symbol_index *symbols;
        struct healer *healer;
        const char *scratch_dir;         /* for temporary files; copied, as is the next */
        const char *needs_path;          /* file that remembers who waits for a supplementary file */
        /* An object is missing that another one needs. May be NULL. */
        void (*wanted)(void *context, const struct build_id *id);
        /* Objects that are not in the store: a descriptor, owned. May be NULL. */
        enum status (*open_other)(void *context, const struct build_id *id, enum object_kind kind, int *fd_ret, struct error *err);
        /* Has open_other() a supplementary file of this id? May be NULL. */
        bool (*has_other)(void *context, const struct build_id *id);
        /* The index has symbols from debuginfo or an executable, all of them, that are as good as these. May be NULL. */
        void (*superseded)(void *context, const struct stored_object *symbols);
        /* One object less waits. May be NULL. */
        void (*done)(void *context);
        void *context;
};

/** Queues what is stored and not indexed. */
enum status indexer_start(const struct indexer_options *options, struct indexer **ret, struct error *err) MUST_CHECK;
/** Kills what runs; it and what waits is done at the next start. NULL is allowed. */
void indexer_stop(struct indexer *ix);

/** Does it wait, or is it being read? */
bool indexer_holds(struct indexer *ix, const struct build_id *id);

/** Does the service itself keep objects from being indexed (a full or read-only disk, a full index)? @param ret why. */
bool indexer_is_hindered(struct indexer *ix, struct error *ret);

/** Something is stored under this id: index it, and whatever waited for it. */
void indexer_add(struct indexer *ix, const struct build_id *id, enum object_kind kind);

/** open_other() may find more than before: objects that wait for such a companion are indexed again. */
void indexer_look_again(struct indexer *ix);

#endif
