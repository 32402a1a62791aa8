/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_ARTIFACT_H
#define CAIRN_SERVER_ROUTES_ARTIFACT_H

/**
 * @file
 * Artifacts that debuginfod clients request by build-id, looked up in the store, in scanned trees, and at upstreams, in
 * this order.
 *
 * Threads: an artifact belongs to one thread.
 */
#include "server/server_internal.h"

struct artifact {
        struct object_reader *reader; /* of a stored object, or NULL, */
        int fd;                       /* and of a scanned file, or -1; owned */
        void *bytes;                  /* or a section that was cached, size_bytes of them; owned, or NULL */
        struct download
                *coming; /* or a running download from an upstream, owned: no other field is set then; or NULL */
        struct build_id id;
        enum object_kind kind;
        uint64_t size_bytes;
        char identity[72];            /* of its content, for an ETag */
        char name[256], archive[512]; /* "" unknown or none */
};

enum artifact_upstream {
        ARTIFACT_LOCAL,   /* upstreams are not asked */
        ARTIFACT_WHOLE,   /* what they have is waited for */
        ARTIFACT_PARTIAL, /* until its first bytes are there */
};

/**
 * Open an artifact, fetching it from an upstream if needed.
 * @return ST_NOT_FOUND is definite. Others as artifact_begin_wait().
 */
enum status artifact_open(struct debuginfo_space *s, struct http_request *req, const struct build_id *id,
                          enum object_kind kind, enum artifact_upstream upstream, struct artifact *ret,
                          struct error *err) MUST_CHECK;
void artifact_close(struct artifact *a);

/**
 * http_begin_wait() before an upstream is asked. When too many requests wait, another Cairn service is answered with
 * 503 and Retry-After; any other client would cache that as "not found", so reset the connection unless
 * http_is_answered().
 */
enum status artifact_begin_wait(struct http_request *req, struct error *err) MUST_CHECK;

/** As artifact_open(), without waiting and without upstreams. ST_BUSY when only artifact_open() can answer. */
enum status artifact_open_at_once(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind,
                                  struct artifact *ret, struct error *err) MUST_CHECK;

/**
 * Fetch a section, or a source file, from an upstream. Its content is not verified.
 * @param path without its first slash.
 * @return as federation_fetch_part().
 */
enum status artifact_fetch_section(struct debuginfo_space *s, struct http_request *req, const struct build_id *id,
                                   const char *name, struct artifact *ret, struct error *err) MUST_CHECK;
enum status artifact_fetch_source(struct debuginfo_space *s, struct http_request *req, const struct build_id *id,
                                  const char *path, struct artifact *ret, struct error *err) MUST_CHECK;

/** Find the offset and size of a section. ST_NOT_FOUND when there is none, or only a section header without content. */
enum status artifact_find_section(struct debuginfo_space *s, const struct artifact *a, const char *name,
                                  const atomic_bool *cancel, uint64_t *offset_ret, uint64_t *size_ret,
                                  struct error *err) MUST_CHECK;

/**
 * Open the file that has a section and find its offset: in scanned trees by the recorded section table, or in the store
 * if at_once.
 * @param at_once without waiting: ST_BUSY when that is not possible.
 * @return ST_NOT_FOUND; ST_UNSUPPORTED when only artifact_open() and artifact_find_section() can answer.
 */
enum status artifact_open_section(struct debuginfo_space *s, struct http_request *req, const struct build_id *id,
                                  enum object_kind kind, const char *name, bool at_once, struct artifact *ret,
                                  uint64_t *offset_ret, uint64_t *size_ret, struct error *err) MUST_CHECK;

/** Answer with part of it, or with all. Takes it. */
void artifact_send(struct http_request *req, struct artifact *a, uint64_t offset, uint64_t size, const char *etag);

#endif
