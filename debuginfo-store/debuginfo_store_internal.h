/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_INTERNAL_H
#define CAIRN_DEBUGINFO_STORE_INTERNAL_H

#include <pthread.h>
#include <semaphore.h>

#include "debuginfo-store/active_uploads.h"
#include "debuginfo-store/debuginfo_store.h"
#include "debuginfo-store/frame_cache.h"
#include "debuginfo-store/meta.h"
#include "debuginfo-store/object_key.h"
#include "debuginfo-store/remote_objects.h"
#include "storage/storage.h"

struct debuginfo_store {
        char *dir;
        bool is_read_only;
        struct storage *storage; /* of the objects: below DIR, with uploads in DIR/incoming; or an object store */
        bool is_remote, is_replica;
        struct object_table *table;     /* NULL unless remote and not read-only, or a replica */
        struct object_commits *commits; /* NULL unless remote and not read-only */
        struct meta *meta;
        bool must_load;          /* of remote objects: the records may differ from the table; with publish */
        pthread_mutex_t publish; /* serializes publishing, removal and pins */
        struct active_uploads active_uploads;
        struct frame_cache *frames; /* for reads of object parts */
        sem_t finishing;            /* of remote objects: as many uploads are verified and compressed at once */
};

/** Create an unlinked temporary file in DIR/incoming; -1 and err on failure. */
int object_create_temporary(const struct debuginfo_store *store, struct error *err);

/** Register the metrics of reading objects. */
void object_reader_register_metrics(void);

/** Register the metrics of stored_tables.h. */
void stored_tables_register_metrics(void);

/**
 * Remove objects, except those that were replaced, pinned or used since they were read. In an object store they are few
 * commits. @param removed  set for each. @return the first failure; the other objects are removed nevertheless.
 */
enum status debuginfo_store_remove_unchanged(struct debuginfo_store *store, const struct stored_object *objects,
                                             size_t count, bool *removed, struct error *err) MUST_CHECK;
/** The same of one. @return ST_NOT_FOUND: it was changed. */
enum status debuginfo_store_remove_if_unchanged(struct debuginfo_store *store, const struct stored_object *object,
                                                struct error *err) MUST_CHECK;

/** Append a whole file, from its start. */
enum status object_upload_append_file(struct object_upload *u, int fd, struct error *err) MUST_CHECK;

/**
 * Find the best stored object that a new object of this kind must improve on: of its kind, and for a symbol file also
 * debuginfo and executable. @return ST_NOT_FOUND.
 */
enum status object_find_incumbent(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                  struct stored_object *ret, struct error *err) MUST_CHECK;

#endif
