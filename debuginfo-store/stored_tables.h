/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_STORED_TABLES_H
#define CAIRN_DEBUGINFO_STORE_STORED_TABLES_H

/**
 * @file
 * Symbol tables (docs/formats/symbol-table.md) of a store whose objects are in an object store: a node with an empty
 * index loads them instead of reading ELF and DWARF again, also of objects that retention removed.
 *
 * The generation of a table is a hash of the content of the objects from which it is extracted: those of the build-id,
 * and their companions, stored or not. A table of another generation is not used while any of these objects is stored.
 *
 * Threads: any.
 */
#include "debuginfo-store/debuginfo_store.h"
#include "debuginfo-store/object_table.h"

/** Whether the store keeps tables: its objects are in an object store, and it is not read-only. */
bool debuginfo_store_keeps_tables(const struct debuginfo_store *store);

/** The generation that a table has now. @param any_ret  whether an object of the build-id is stored. */
enum status stored_table_compute_generation(struct debuginfo_store *store, const struct build_id *id,
                                            uint8_t ret[static OBJECT_GENERATION_BYTES], bool *any_ret,
                                            struct error *err) MUST_CHECK;

/**
 * Open the table of a build-id. @param generation  NULL: any. @param fd_ret  owned, an unlinked file.
 * @return ST_NOT_FOUND: none is stored; ST_BAD_DATA: it is damaged.
 */
enum status stored_table_open(struct debuginfo_store *store, const struct build_id *id, const uint8_t *generation,
                              int *fd_ret, struct error *err) MUST_CHECK;

/** Keep a table of size bytes in fd. It is in the table of objects some seconds later. */
enum status stored_table_put(struct debuginfo_store *store, const struct build_id *id,
                             const uint8_t generation[static OBJECT_GENERATION_BYTES], enum symbol_quality quality,
                             int fd, uint64_t size, struct error *err) MUST_CHECK;

/** Call each for the build-id of every table. */
enum status stored_table_list(struct debuginfo_store *store, void (*each)(void *context, const struct build_id *id),
                              void *context, struct error *err) MUST_CHECK;

/** Remove tables that were stored before a time and are not used any more. @param removed_ret  added to. */
enum status stored_table_expire(struct debuginfo_store *store, int64_t before_unix_s,
                                bool (*is_used)(void *context, const struct build_id *id), void *context,
                                uint64_t *removed_ret, struct error *err) MUST_CHECK;

#endif
