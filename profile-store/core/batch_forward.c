/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/batch_forward.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/limits.h"
#include "profile-store/core/kept_heads.h"

#define NO_NODE                                                                                                        \
        "0000000000000000" /* the batches of a page are committed under the identity of the node that takes them */

/* @param sent_ret  batches in the page, at least 1 */
static enum status make_forward_page(struct profile_store *s, const uint64_t *positions, size_t count, struct buf *ret,
                                     size_t *sent_ret, struct error *err)
{
        struct head_page_header header = { .node = NO_NODE };
        struct head_page_write w = {
                .writer.to = ret, .positions = positions, .count = count, .most = LIMIT_FORWARD_PAGE_BYTES
        };
        enum status st;

        head_page_write_header(ret, &header);
        st = head_write_records(s, &w, err);
        if (st == ST_BAD_DATA) /* of the disk, not of the batches */
                st = err->code = ST_OS;
        if (!st && (w.is_full ? !w.written : w.written != count))
                st = error_set(err, ST_OS, "the queue lacks an acknowledged batch after position %" PRIu64, w.last);
        if (st)
                return st;
        header.last = w.last;
        head_page_replace_header(ret, &header);
        *sent_ret = w.written;
        return buf_status(ret, err, "the page of batches");
}

static enum status forward_page(struct profile_store *s, const uint64_t *positions, size_t count, size_t *sent_ret,
                                struct error *err)
{
        _cleanup_buf_ struct buf page;
        enum status st;

        buf_init_budget(&page, LIMIT_FORWARD_PAGE_BYTES + LIMIT_QUEUE_RECORD_BYTES + KiB(64), MEMORY_FLUSH);
        st = make_forward_page(s, positions, count, &page, sent_ret, err);
        return st ? st : s->options.forward(s->options.forward_context, page.data, page.size, err);
}

enum status forward_batches(struct profile_store *s, struct batch *const *batches, size_t count, struct error *err)
{
        _cleanup_free_ uint64_t *positions = calloc(count + 1, sizeof *positions);
        enum status st = positions ? ST_OK : error_no_memory(err);
        size_t sent = 0;

        for (size_t i = 0; !st && i < count; i++)
                positions[i] = batches[i]->position;
        for (size_t at = 0; !st && at < count; at += sent)
                st = forward_page(s, positions + at, count - at, &sent, err);
        return st;
}
