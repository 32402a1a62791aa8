/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_ARTIFACT_H
#define CAIRN_SERVER_API_DEBUGINFO_ARTIFACT_H

/**
 * @file
 * Artifacts that debuginfod clients request by build-id. They are looked up in the store, in scanned trees, and at
 * upstreams, in this order.
 *
 * Threads: an artifact belongs to one thread.
 */
#include "server/core/server_internal.h"

struct artifact {
        /* The content, in one of four forms. */
        struct object_reader *reader; /* stored object; owned; else NULL */
        int fd;                       /* scanned or fetched file; owned; else -1 */
        void *bytes;                  /* cached section of size_bytes; owned; else NULL */
        struct download *coming;      /* running download, then no other member is set; owned; else NULL */
        struct build_id id;
        enum object_kind kind;
        uint64_t size_bytes;
        char identity[72];            /* of the content, for an ETag */
        char name[256], archive[512]; /* "" unknown or none */
};

/** A client's request for the files of one object. */
struct artifact_query {
        struct debuginfo_space *space;
        struct http_request *req; /* waits end when it is cancelled */
        struct build_id id;
};

/** A range of an artifact, such as a section. */
struct artifact_part {
        struct artifact artifact;
        uint64_t offset, size;
};

enum artifact_upstream {
        ARTIFACT_LOCAL,   /* do not query upstreams */
        ARTIFACT_WHOLE,   /* wait for the complete download */
        ARTIFACT_PARTIAL, /* wait for the first bytes of the download */
};

/**
 * Open an artifact, fetching it from an upstream if needed.
 * @return ST_NOT_FOUND is definite. Other failures as artifact_begin_wait().
 */
enum status artifact_open(const struct artifact_query *q, enum object_kind kind, enum artifact_upstream upstream,
                          struct artifact *ret, struct error *err) MUST_CHECK;
void artifact_close(struct artifact *a);

/**
 * http_begin_wait() before an upstream is queried. When too many requests wait, a request from another Cairn service
 * gets 503 and Retry-After. Any other client would cache that as "not found", so the caller resets the connection
 * unless http_is_answered().
 */
enum status artifact_begin_wait(struct http_request *req, struct error *err) MUST_CHECK;

/** As artifact_open(), without waiting and without upstreams. ST_BUSY when artifact_open() is needed. */
enum status artifact_open_at_once(const struct artifact_query *q, enum object_kind kind, struct artifact *ret,
                                  struct error *err) MUST_CHECK;

/**
 * Fetch a section, or a source file, from an upstream. Its content is not verified.
 * @param path without its first slash.
 * @return as federation_fetch_part().
 */
enum status artifact_fetch_section(const struct artifact_query *q, const char *name, struct artifact *ret,
                                   struct error *err) MUST_CHECK;
enum status artifact_fetch_source(const struct artifact_query *q, const char *path, struct artifact *ret,
                                  struct error *err) MUST_CHECK;

/**
 * Find the offset and size of a section of p->artifact, and set those of p.
 * @return ST_NOT_FOUND when it is absent, or is a section header without content.
 */
enum status artifact_find_section(const struct artifact_query *q, const char *name, struct artifact_part *p,
                                  struct error *err) MUST_CHECK;

/**
 * Open the file that has a section and find its offset: in scanned trees by the recorded section table, or, if at_once,
 * in the store by the cached section.
 * @param at_once  do not wait: ST_BUSY when that is impossible.
 * @return ST_NOT_FOUND; ST_UNSUPPORTED when artifact_open() and artifact_find_section() are needed.
 */
enum status artifact_open_section(const struct artifact_query *q, enum object_kind kind, const char *name, bool at_once,
                                  struct artifact_part *ret, struct error *err) MUST_CHECK;

/** Respond with all or part of the artifact. @param a  taken. */
void artifact_send(struct http_request *req, struct artifact *a, uint64_t offset, uint64_t size, const char *etag);

#endif
