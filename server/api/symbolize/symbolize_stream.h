/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_SYMBOLIZE_SYMBOLIZE_STREAM_H
#define CAIRN_SERVER_API_SYMBOLIZE_SYMBOLIZE_STREAM_H

/**
 * @file
 * Response to a symbolize request, in pieces: each piece has its own view of the index, and keys until it has
 * SYMBOLIZE_PIECE_BYTES. Between pieces only the position is kept.
 *
 * Memory of a response: 8 bytes per address, two pieces, and the writer's state.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http_server.h"
#include "server/api/symbolize/symbolize_request.h"
#include "server/core/symbolize_text.h"
#include "symbol-index/lookup.h"

#define SYMBOLIZE_PIECE_BYTES ((size_t)1 << 20) /* a piece ends after the key that reaches it */

/* Consecutive results for addresses of one object. */
struct symbolize_run {
        const uint64_t *addresses;
        const struct symbol_result *results;
        const struct symbol_frame *frames; /* indexed by results[].first_frame */
        size_t count;
};

/* Response format. Failures to append are kept in `to`. */
struct symbolize_writer {
        const char *content_type;
        size_t kept_bytes; /* maximum size of the writer's tables */
        void (*begin)(struct symbolize_writer *w, struct buf *to);
        /** Begin an object, or its part in this piece. @param first  the part is the object's first, as is `last` */
        void (*object_begin)(struct symbolize_writer *w, size_t index, const struct symbolize_object *requested,
                             const struct symbol_object *object, bool first, struct buf *to);
        /** Write results until the piece is full. @param done_ret  number of results written, at least one */
        enum status (*results)(struct symbolize_writer *w, struct text_reader *texts, const struct symbolize_run *run,
                               struct buf *to, size_t *done_ret, struct error *err);
        void (*object_end)(struct symbolize_writer *w, bool last, struct buf *to);
        void (*end)(struct symbolize_writer *w, struct buf *to);
        void (*destroy)(struct symbolize_writer *w);
};

/* Owned; NULL when out of memory. */
struct symbolize_writer *symbolize_json_create(void);
struct symbolize_writer *symbolize_proto_create(void);

/**
 * Respond with 200 and the results of the request.
 * @param request  taken, and left empty.
 * @param writer   taken; NULL: the caller ran out of memory.
 */
void answer_symbolize(struct http_request *req, struct symbol_index *index, struct text_cache *texts,
                      struct symbolize_request *request, struct symbolize_writer *writer);

#endif
