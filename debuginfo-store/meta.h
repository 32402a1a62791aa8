/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_META_H
#define CAIRN_DEBUGINFO_STORE_META_H

/**
 * @file
 * Records of stored objects: an LMDB environment in DIR/meta, one record per (build-id, kind). Layout:
 * docs/formats/debuginfo-store.md.
 *
 * Threads: any; LMDB serializes writers.
 */
#include "debuginfo-store/links.h"

struct meta;

/**
 * Section offsets of an object, from the verifying worker (elf-image/section_list.h). An LMDB database in the
 * environment of the records, changed in the same transaction as the record. A list includes the SHA-256 of the
 * object's content, so that stale ones are ignored.
 */
struct section_note {
        const void *list; /* borrowed */
        size_t size;      /* 0: unknown, as for lists above LIMIT_SECTION_LIST_BYTES */
};

/** Convert an LMDB code or errno to a status. */
enum status meta_set_error(struct error *err, int rc, const char *what);

enum status meta_open(const char *dir, bool read_only, struct meta **ret, struct error *err) MUST_CHECK;
void meta_close(struct meta *m);

enum status meta_get(struct meta *m, const struct build_id *id, enum object_kind kind, struct stored_object *ret,
                     struct error *err) MUST_CHECK;
/** Durable when it returns. @param links @param note NULL: unchanged. */
enum status meta_put(struct meta *m, const struct stored_object *object, const struct object_links *links,
                     const struct section_note *note, struct error *err) MUST_CHECK;

/** A record with all that belongs to it. */
struct meta_entry {
        struct stored_object object;
        struct object_links links;
        struct section_note note;
        bool has_links;
};

/**
 * Make these the only records, in one commit. A record of the same content keeps its time of last use when that is
 * later.
 * @param entries  sorted by object_name_compare() of their names, which differ.
 */
enum status meta_replace_all(struct meta *m, const struct meta_entry *entries, size_t count,
                             struct error *err) MUST_CHECK;

/**
 * Append what is recorded of an object besides its record: the links, as links_encode() writes them, and the list of
 * sections of this content. Nothing is appended of what is not recorded.
 */
enum status meta_read_notes(struct meta *m, const struct stored_object *object, struct buf *links_ret,
                            struct buf *sections_ret, struct error *err) MUST_CHECK;

/** Find a section of exactly this content. ST_NOT_FOUND: no such section; ST_UNSUPPORTED: no list is stored. */
enum status meta_find_section(struct meta *m, const struct stored_object *object, const char *name,
                              uint64_t *offset_ret, uint64_t *size_ret, struct error *err) MUST_CHECK;
/** Edits a record in place. False: unchanged. */
typedef bool meta_change(void *context, struct stored_object *object);

/** Call change for each of these records that exists, and commit all changes together, durably. */
enum status meta_edit(struct meta *m, const struct object_name *names, size_t count, meta_change *change, void *context,
                      struct error *err) MUST_CHECK;
enum status meta_remove(struct meta *m, const struct build_id *id, enum object_kind kind, struct error *err) MUST_CHECK;
/** Remove the record if its content, pin and time of last use are unchanged; otherwise ST_NOT_FOUND. */
enum status meta_remove_if_unchanged(struct meta *m, const struct stored_object *object, struct error *err) MUST_CHECK;

/** Begin a read transaction for the link databases; end it with mdb_txn_abort(). */
enum status meta_begin_links_read(struct meta *m, MDB_txn **txn_ret, const struct link_databases **ret,
                                  struct error *err) MUST_CHECK;

/** Records with a key greater than (after, kind), at most n; lists without a long read transaction. */
enum status meta_list_next(struct meta *m, const struct stored_object *after, struct stored_object *ret, size_t n,
                           size_t *count_ret, struct error *err) MUST_CHECK;

#endif
