/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_INTERNAL_H
#define CAIRN_DEBUGINFO_STORE_INTERNAL_H

#include <pthread.h>

#include "debuginfo-store/frames.h"
#include "debuginfo-store/live.h"
#include "debuginfo-store/meta.h"
#include "debuginfo-store/store.h"

struct debuginfo_store {
        char *dir;
        struct meta *meta;
        pthread_mutex_t publish; /* one object at a time takes its place */
        struct live_uploads live;
        struct frames *frames; /* for who asks for parts of objects */
};

/** Where an object with this content lies: DIR/objects/ab/cdef/debuginfo-0123456789abcdef.zst. Owned; NULL without memory. */
char *object_path(const struct debuginfo_store *store, const struct stored_object *object);

/** An unlinked temporary file in DIR/incoming; -1 and err on failure. */
int object_scratch(const struct debuginfo_store *store, struct error *err);

/** Remove this very content: ST_NOT_FOUND when another took its place, or it was pinned or used meanwhile. */
enum status debuginfo_store_remove_exactly(struct debuginfo_store *store, const struct stored_object *object,
                                           struct error *err) MUST_CHECK;

/** Append the whole of a file, from its start. */
enum status object_upload_append_file(struct object_upload *u, int fd, enum refusal *why, struct error *err) MUST_CHECK;

/**
 * The best of what is stored that an object of this kind has to be better than: of its kind, and for symbols debuginfo and
 * an executable too, which answer as much and more. @return ST_NOT_FOUND.
 */
enum status object_rival(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                         struct stored_object *ret, struct error *err) MUST_CHECK;

#endif
