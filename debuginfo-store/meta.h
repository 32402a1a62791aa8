/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_META_H
#define CAIRN_DEBUGINFO_STORE_META_H

/**
 * @file
 * The records of stored objects: an LMDB environment in DIR/meta, one record
 * per (build-id, kind). docs/formats/debuginfo-store.md has the layout.
 *
 * Threads: any; LMDB serializes writers.
 */
#include "debuginfo-store/links.h"
#include "debuginfo-store/sections.h"

struct meta;

/** A code of LMDB or the system as a status. */
enum status meta_error(struct error *err, int rc, const char *what);

enum status meta_open(const char *dir, bool read_only, struct meta **ret, struct error *err) MUST_CHECK;
void meta_close(struct meta *m);

enum status meta_get(struct meta *m, const struct build_id *id, enum object_kind kind, struct stored_object *ret,
                     struct error *err) MUST_CHECK;
/** Durable when it returns. @param links @param note NULL: they stay as they are. */
enum status meta_put(struct meta *m, const struct stored_object *object, const struct object_links *links,
                     const struct section_note *note, struct error *err) MUST_CHECK;

/** Where a section of this very content lies. ST_NOT_FOUND when it has none of that name; ST_UNSUPPORTED when nothing is noted. */
enum status meta_section(struct meta *m, const struct stored_object *object, const char *name, uint64_t *offset_ret,
                         uint64_t *size_ret, struct error *err) MUST_CHECK;
/** Note it of an object that is stored already; nothing is done when another content took its place. */
enum status meta_note_sections(struct meta *m, const struct stored_object *object, const struct section_note *note,
                               struct error *err) MUST_CHECK;

/** Edits a record in place; false: it stays as it is. */
typedef bool meta_change(void *context, struct stored_object *object);

/** Have change look at each of these records that is there; all that it changed is committed together, durably. */
enum status meta_edit(struct meta *m, const struct object_name *names, size_t count, meta_change *change, void *context,
                      struct error *err) MUST_CHECK;
enum status meta_remove(struct meta *m, const struct build_id *id, enum object_kind kind, struct error *err) MUST_CHECK;
/** Only when the record still has this content, no pin, and this last use; ST_NOT_FOUND when not. */
enum status meta_remove_exactly(struct meta *m, const struct stored_object *object, struct error *err) MUST_CHECK;

/** A transaction to look into the links with, and what goes with it; end it with mdb_txn_abort(). */
enum status meta_links_begin(struct meta *m, MDB_txn **txn_ret, const struct link_databases **ret, struct error *err) MUST_CHECK;

/** Records with a key greater than (after, kind), at most n; for listing without a long read transaction. */
enum status meta_next(struct meta *m, const struct stored_object *after, struct stored_object *ret, size_t n,
                      size_t *count_ret, struct error *err) MUST_CHECK;

#endif
