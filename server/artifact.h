/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ARTIFACT_H
#define CAIRN_SERVER_ARTIFACT_H

/**
 * @file
 * What a debuginfod client asks for by build-id, wherever it is: in the store,
 * in a scanned tree, at an upstream, in this order.
 *
 * Threads: an artifact belongs to one thread.
 */
#include "server/server_internal.h"

struct artifact {
        struct object_reader *reader; /* of a stored object, or NULL, */
        int fd;                       /* and of a scanned file, or -1; owned */
        void *bytes;                  /* and of a section that was at hand, size_bytes of them; owned, or NULL */
        struct download *coming;      /* what comes from an upstream just now, owned: nothing else is known of it; or NULL */
        struct build_id id;
        enum object_kind kind;
        uint64_t size_bytes;
        char identity[72];            /* of its content, for an ETag */
        char name[256], archive[512]; /* "" unknown or none */
};

enum artifact_upstream {
        ARTIFACT_HERE,   /* upstreams are not asked */
        ARTIFACT_WHOLE,  /* what they have is waited for */
        ARTIFACT_COMING, /* until its first bytes are there */
};

/**
 * Open what is here, or have it fetched.
 * @return ST_NOT_FOUND is definite. Others as artifact_wait_begin().
 */
enum status artifact_open(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                          enum artifact_upstream upstream, struct artifact *ret, struct error *err) MUST_CHECK;
void artifact_close(struct artifact *a);

/**
 * http_wait_begin() for who asks an upstream. When too many wait, a service of our kind is answered with 503, and with
 * Retry-After; any other client would take that for "not found", so a failure is to be a reset unless http_answered().
 */
enum status artifact_wait_begin(struct http_request *req, struct error *err) MUST_CHECK;

/** The same without waiting and without upstreams. ST_BUSY when only artifact_open() can tell. */
enum status artifact_open_at_once(struct server *s, const struct build_id *id, enum object_kind kind, struct artifact *ret,
                                  struct error *err) MUST_CHECK;

/**
 * A section, or a source file, from an upstream as it is, whole. Nothing of it is verified.
 * @param path without its first slash.
 * @return as federation_fetch_piece().
 */
enum status artifact_fetch_section(struct server *s, struct http_request *req, const struct build_id *id, const char *name,
                                   struct artifact *ret, struct error *err) MUST_CHECK;
enum status artifact_fetch_source(struct server *s, struct http_request *req, const struct build_id *id, const char *path,
                                  struct artifact *ret, struct error *err) MUST_CHECK;

/** Where a section of it lies. ST_NOT_FOUND when it has none of that name, or only the header of one. */
enum status artifact_section(struct server *s, const struct artifact *a, const char *name, const atomic_bool *cancel,
                             uint64_t *offset_ret, uint64_t *size_ret, struct error *err) MUST_CHECK;

/**
 * Open what has that section and tell where it lies: what is scanned, by what the scan noted, or at once what is stored.
 * @param at_once without waiting: ST_BUSY when it takes that.
 * @return ST_NOT_FOUND; ST_UNSUPPORTED when only artifact_open() and artifact_section() can tell.
 */
enum status artifact_open_section(struct server *s, struct http_request *req, const struct build_id *id, enum object_kind kind,
                                  const char *name, bool at_once, struct artifact *ret, uint64_t *offset_ret,
                                  uint64_t *size_ret, struct error *err) MUST_CHECK;

/** Answer with part of it, or with all. Takes it. */
void artifact_respond(struct http_request *req, struct artifact *a, uint64_t offset, uint64_t size, const char *etag);

#endif
