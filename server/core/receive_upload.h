/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_RECEIVE_UPLOAD_H
#define CAIRN_SERVER_CORE_RECEIVE_UPLOAD_H

/**
 * @file
 * Upload of one object, for any protocol: limits on uploads in progress, metrics, and handing the received file to the
 * indexer.
 *
 * Threads: any; an upload belongs to one thread at a time.
 */
#include "server/core/server_internal.h"

struct receiving_upload;

/** Client of an upload: a token at an address. */
struct upload_sender {
        const char *token_name; /* "": none */
        uint64_t peer_number;
};

/**
 * Set the limits of uploads that begin from now on.
 * @param object_bytes  largest object, unpacked; 0: LIMIT_OBJECT_BYTES, which is also the maximum.
 * @param uploads       in progress at one time, at most LIMIT_UPLOADS_MOST; 0: LIMIT_UPLOADS.
 */
void set_upload_limits(uint64_t object_bytes, uint64_t uploads);
uint64_t get_max_upload_bytes(void);

/**
 * Begin an upload.
 * @return ST_BUSY when the limit of set_upload_limits() is reached, or a quarter of it by this client.
 */
enum status receive_upload_begin(struct debuginfo_space *s, const struct object_claim *claim,
                                 const struct upload_sender *from, struct receiving_upload **ret,
                                 struct error *err) MUST_CHECK;
/** For object_upload_append_some() and object_upload_get_size(). Borrowed. */
struct object_upload *receive_upload_get(struct receiving_upload *r);
/** Discard the upload; the received part of a resumable upload is kept. NULL is allowed. */
void receive_upload_abort(struct receiving_upload *r);

struct received_upload {
        uint64_t size_bytes; /* unpacked */
        bool is_same;        /* already stored, or, with content_with_better, an object as good */
};

/**
 * Verify, store and index the object. @param r taken.
 * @param content_with_better an equal or better stored object is a success.
 * @param ret size_bytes is set on failure too. Failures have an enum refusal as error.reason.
 */
enum status receive_upload_finish(struct debuginfo_space *s, struct receiving_upload *r, bool content_with_better,
                                  struct received_upload *ret, struct error *err) MUST_CHECK;

/** Count a failure, and log it if the service itself failed. @param path  of the request. */
void report_upload_failure(const char *path, enum status st, const struct error *err);
/** Count an upload that its client aborted. */
void count_broken_upload(void);

/** Register the histogram of uploads before the first one. */
void register_upload_duration(void);

#endif
