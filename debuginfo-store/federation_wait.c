/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that wait for what the federation fetches. */
#include "common/clock.h"
#include "common/condition.h"
#include "debuginfo-store/federation_internal.h"
#include "debuginfo-store/pieces.h"

#define CANCEL_POLL_NS 100000000

/* Called with the lock held. A new question of a client; NULL: there is no room for it. */
static struct wanted *begin(struct federation *f, const struct build_id *id, const char *part, const struct forwarded *way)
{
        struct wanted *w = wanted_add(&f->table, id, part, way);

        if (w && !federation_start_errand(f, w))
                federation_enqueue(f, w);
        return w;
}

/* Called with the lock held. Nobody signals a cancelled caller, so one that can be cancelled looks now and then. */
static void wait_for_change(struct federation *f, const atomic_bool *cancel)
{
        if (cancel)
                condition_wait_until(&f->changed, &f->lock, monotonic_ns() + CANCEL_POLL_NS);
        else
                pthread_cond_wait(&f->changed, &f->lock);
}

/* What a client waits for: an object, when fd is NULL, else a piece. */
struct wait {
        const struct build_id *id;
        const char *part;
        enum object_kind kind;
        int *fd;
        const struct federation_client *client;
        struct forwarded way;
};

static enum status find_stored(struct federation *f, const struct wait *q, struct error *err)
{
        struct stored_object have;

        return q->fd ? piece_open(f->asker.store, q->id, q->part, q->fd, err)
                     : debuginfo_store_find(f->asker.store, q->id, q->kind, &have, err);
}

/* Called with the lock held. The entry of a question that somebody waits for now; NULL: there is none. */
static struct wanted *entry_of(struct federation *f, const struct wait *q, bool is_over)
{
        struct wanted *w = wanted_find(&f->table, q->id, q->part, &q->way);

        if (!w)
                return is_over ? NULL : begin(f, q->id, q->part, &q->way);
        if (w->state == WANTED_QUEUED && federation_has_room(f, w)) {
                federation_dequeue(f, w);
                if (!federation_start_errand(f, w))
                        federation_enqueue(f, w);
        }
        return w;
}

static enum status wait_for(struct federation *f, struct wait *q, struct download **coming_ret, struct error *err)
{
        const atomic_bool *cancel = q->client->cancel;
        char hex[BUILD_ID_HEX_MAX];
        enum status st;

        build_id_hex(q->id, hex);
        if (forwarded_parse(q->client->forwarded_for, f->name, &q->way, err)) {
                error_prefix(err, ST_NOT_FOUND, "build-id %s is not asked for any further", hex);
                return ST_NOT_FOUND;
        }
        pthread_mutex_lock(&f->lock);
        for (;;) {
                bool is_over = f->stop || (cancel && *cancel);
                struct wanted *w;

                st = find_stored(f, q, err);
                if (st != ST_NOT_FOUND)
                        break;
                w = entry_of(f, q, is_over);
                if (w && w->state == WANTED_MISSING) {
                        st = error_set(err, ST_NOT_FOUND, "no upstream has a %.80s for build-id %s", q->part, hex);
                        break;
                }
                if (!w || w->state == WANTED_FAILED || is_over) {
                        st = error_set(err, ST_BUSY, "the upstreams did not answer for build-id %s", hex);
                        break;
                }
                if (coming_ret && w->download) {
                        *coming_ret = download_ref(w->download);
                        st = ST_OK;
                        break;
                }
                wait_for_change(f, cancel);
        }
        pthread_mutex_unlock(&f->lock);
        return st;
}

enum status federation_fetch(struct federation *f, const struct build_id *id, enum object_kind kind,
                             const struct federation_client *client, struct download **coming_ret, struct error *err)
{
        struct wait q = { .id = id, .part = object_kind_name(kind), .kind = kind, .client = client };

        if (coming_ret)
                *coming_ret = NULL;
        return wait_for(f, &q, coming_ret, err);
}

enum status federation_fetch_piece(struct federation *f, const struct build_id *id, const char *part,
                                   const struct federation_client *client, int *fd_ret, struct error *err)
{
        struct wait q = { .id = id, .part = part, .fd = fd_ret, .client = client };

        return wait_for(f, &q, NULL, err);
}
