/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_REMOTE_OBJECTS_H
#define CAIRN_DEBUGINFO_STORE_REMOTE_OBJECTS_H

/**
 * @file
 * A debuginfo store whose objects are in an object store. Its table (object_table.h) is what exists; the records in
 * LMDB are a copy, which is made equal when the store is opened. Changes go to the table first (object_commit.h).
 *
 * Keys below the prefix: objects/..., as in a directory; symbols/ab/cdef.../symbol-table-GENERATION.v1.zst;
 * tables/objects/.
 */
#include "debuginfo-store/object_commit.h"

struct debuginfo_store;

/** Open the storage at url, and unless the store is read-only the table and the thread of its commits. */
enum status remote_objects_open(struct debuginfo_store *store, const char *url, struct error *err) MUST_CHECK;
void remote_objects_close(struct debuginfo_store *store);

/** Open the storage of the objects of DIR. @param ret  NULL when they are local files. */
enum status remote_objects_open_storage(const char *dir, struct storage **ret, struct error *err) MUST_CHECK;

/** Make the records equal to the table. */
enum status remote_objects_load(struct debuginfo_store *store, struct error *err) MUST_CHECK;

/** Remove an object from the table, then from the records, then from the store. @return ST_NOT_FOUND. */
enum status remote_objects_remove(struct debuginfo_store *store, const struct stored_object *object,
                                  struct error *err) MUST_CHECK;

/** As debuginfo_store_remove_unchanged(): few commits. */
enum status remote_objects_remove_unchanged(struct debuginfo_store *store, const struct stored_object *objects,
                                            size_t count, bool *removed, struct error *err) MUST_CHECK;

/** Edit the record of an object, if change() does. ST_OK also without one. */
enum status remote_objects_edit(struct debuginfo_store *store, const struct object_name *name,
                                bool (*change)(void *context, struct stored_object *object), void *context,
                                struct error *err) MUST_CHECK;

#endif
