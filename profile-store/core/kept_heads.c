/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of profile-store/peer_heads.h: the page that this node answers with, and the batches of the pages of
 * others.
 *
 * Order of an answer: the positions of the head are taken first, then their records are read from the queue, then the
 * version of the log is taken. A batch that a flush removed in between is in the tables of that version.
 *
 * A kept batch is dropped together with the change of the tables that has it (replace_tables()), by its id, or by its
 * position: the peer's queue is in the tables, or in its quarantine, up to `flushed` of a page, as soon as the tables
 * have the version of that page.
 *
 * Locks: peer_lock, then lock. peer_lock is held from the time when the ids of a commit are remembered until its tables
 * are published, so that a page that arrives meanwhile is not compared with ids whose batches no scan sees yet.
 */
#include "profile-store/core/kept_heads.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "profile-formats/profile_accept.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/queue/payload.h"

static struct metric kept_batches =
        METRIC_GAUGE("cairn_peer_head_batches", "Batches of other nodes that are kept for queries.", "");
static struct metric kept_bytes =
        METRIC_GAUGE("cairn_peer_head_bytes", "Memory of batches of other nodes that are kept for queries.", "");

static struct metric incomplete =
        METRIC_COUNTER("cairn_incomplete_scans_total",
                       "Scans that may lack samples of other nodes, which the answers of queries say.", "");

void kept_heads_register_metrics(void)
{
        metric_register(&incomplete);
        metric_register(&kept_batches);
        metric_register(&kept_bytes);
}

/* The head of one peer. Protected by lock and, for changes, peer_lock. */
struct kept_head {
        char node[NODE_ID_SIZE];
        uint64_t after;       /* known up to this position */
        uint64_t flushed;     /* of the last page: the tables of `version` have the queue up to this position */
        int64_t version;      /* of the last page */
        struct batch **items; /* by position */
        size_t count, capacity;
        uint64_t bytes;
};

enum status kept_heads_open(struct profile_store *s, struct error *err)
{
        if (!s->options.peer_count)
                return ST_OK;
        s->kept = calloc(s->options.peer_count, sizeof *s->kept);
        return s->kept ? ST_OK : error_no_memory(err);
}

static void forget_batches(struct kept_head *k, size_t from)
{
        for (size_t i = from; i < k->count; i++) {
                metric_add(&kept_batches, -1);
                metric_add(&kept_bytes, -(int64_t)batch_get_bytes(k->items[i]));
                k->bytes -= batch_get_bytes(k->items[i]);
                batch_unref(k->items[i]);
        }
        k->count = from;
}

void kept_heads_close(struct profile_store *s)
{
        for (size_t i = 0; s->kept && i < s->options.peer_count; i++) {
                forget_batches(&s->kept[i], 0);
                free(s->kept[i].items);
        }
        free(s->kept);
        s->kept = NULL;
}

/* ---- the page that this node answers with ---- */

static enum status write_head_record(void *context, const struct raw_record *record, bool *end_ret, struct error *err)
{
        struct head_page_write *w = context;
        struct buf *to = w->writer.to;

        while (w->next < w->count && w->positions[w->next] < record->position)
                w->next++;
        if (w->next == w->count || w->positions[w->next] != record->position)
                return ST_OK; /* another node committed it */
        if (to->size > w->most) {
                w->is_full = *end_ret = true;
                return ST_OK;
        }
        head_page_write_record(&w->writer, record);
        w->last = record->position;
        w->written++;
        return buf_status(to, err, "the page of the head");
}

enum status head_write_records(struct profile_store *s, struct head_page_write *w, struct error *err)
{
        return w->count ? raw_queue_visit(s->queue, w->positions[0] - 1, w->positions[w->count - 1], write_head_record,
                                          w, err)
                        : ST_OK;
}

static enum status copy_head_positions(struct profile_store *s, uint64_t after, uint64_t **ret, size_t *count_ret,
                                       uint64_t *synced_ret, struct error *err)
{
        uint64_t *positions;
        size_t n = 0;

        pthread_mutex_lock(&s->lock);
        *synced_ret = raw_queue_get_synced(s->queue);
        positions = calloc(s->head_count + 1, sizeof *positions);
        for (size_t i = 0; positions && i < s->head_count; i++)
                if (s->head[i]->position > after && s->head[i]->position <= *synced_ret)
                        positions[n++] = s->head[i]->position;
        pthread_mutex_unlock(&s->lock);
        if (!positions)
                return error_no_memory(err);
        *ret = positions;
        *count_ret = n;
        return ST_OK;
}

static void copy_samples_id(struct profile_store *s, char ret[static DELTA_TABLE_ID_SIZE])
{
        ret[0] = 0;
        if (!has_absent_tables(s))
                memcpy(ret, s->samples_id, DELTA_TABLE_ID_SIZE); /* the log itself is locked while it is read */
}

enum status profile_store_write_head(struct profile_store *s, const struct head_mark *mark, struct buf *ret,
                                     struct error *err)
{
        _cleanup_free_ uint64_t *positions = NULL;
        struct head_page_header header = { 0 };
        struct head_page_write w = { .writer.to = ret, .most = LIMIT_HEAD_PAGE_BYTES };
        char tables[DELTA_TABLE_ID_SIZE];
        uint64_t after, synced;
        enum status st;

        if (!has_shared_tables(s) || s->options.read_only)
                return error_set(err, ST_USAGE, "no other nodes write the tables of this service");
        st = store_check_tables(s, err); /* else it is unknown which of its batches are in the tables */
        if (st)
                return st;
        copy_samples_id(s, tables);
        if (*mark->tables && strcmp(mark->tables, tables) != 0)
                return error_set(err, ST_USAGE,
                                 "this node writes other tables than the one that asks: all must have the same --store "
                                 "and tenants");
        memcpy(header.node, s->logs.node, sizeof header.node);
        after = strcmp(mark->node, header.node) == 0 ? mark->after : 0;
        st = copy_head_positions(s, after, &positions, &w.count, &synced, err);
        if (st)
                return st;
        w.positions = positions;
        head_page_write_header(ret, &header);
        st = head_write_records(s, &w, err);
        if (st)
                return st;
        header.has_more = w.is_full;
        header.last = w.is_full ? w.last : synced > after ? synced : after;
        pthread_mutex_lock(&s->lock);
        header.flushed = s->flushed;
        header.version = s->tables->versions[TABLE_SAMPLES];
        pthread_mutex_unlock(&s->lock);
        head_page_replace_header(ret, &header);
        return buf_status(ret, err, "the page of the head");
}

/* ---- the pages of others ---- */

void profile_store_get_head_mark(struct profile_store *s, unsigned peer, struct head_mark *ret)
{
        pthread_mutex_lock(&s->lock);
        memcpy(ret->node, s->kept[peer].node, sizeof ret->node);
        ret->after = s->kept[peer].after;
        pthread_mutex_unlock(&s->lock);
        copy_samples_id(s, ret->tables);
}

struct decoded_page {
        struct batch **items;
        size_t count, capacity;
        uint64_t bytes;
};

static void decoded_page_deinit(struct decoded_page *d)
{
        batches_unref(d->items, d->count);
}

static enum status decode_head_record(struct decoded_page *d, const struct raw_record *record, struct error *err)
{
        struct profile p;
        struct batch *b;
        enum status st = payload_decode(record->payload, record->payload_size, &p, err);

        if (st)
                return st;
        st = profile_check_labels(&p, err);
        if (!st)
                st = batch_create_for(MEMORY_QUERIES, &p, &b, err);
        profile_deinit(&p);
        if (!st && !array_reserve(&d->items, &d->capacity, d->count)) {
                batch_unref(b);
                st = error_no_memory(err);
        }
        if (st)
                return st;
        b->batch_id = record->batch_id;
        b->position = record->position;
        d->bytes += batch_get_bytes(b);
        d->items[d->count++] = b;
        return ST_OK;
}

static enum status decode_head_page(struct head_page_reader *r, uint64_t kept_bytes_before, struct decoded_page *d,
                                    struct error *err)
{
        struct raw_record record;
        bool found = true;
        enum status st = ST_OK;

        while (!st && found) {
                st = head_page_next(r, &record, &found, err);
                if (!st && found)
                        st = decode_head_record(d, &record, err);
                if (!st && kept_bytes_before + d->bytes > LIMIT_PEER_HEAD_BYTES)
                        st = error_set(err, ST_TOO_BIG, "its head takes more than %zu bytes of memory",
                                       (size_t)LIMIT_PEER_HEAD_BYTES);
        }
        return st;
}

static bool has_tables_of(const struct profile_store *s, const struct kept_head *k)
{
        return s->tables->versions[TABLE_SAMPLES] >= k->version;
}

static bool is_kept_committed(const struct profile_store *s, const struct kept_head *k, const struct batch *b)
{
        return (b->position <= k->flushed && has_tables_of(s, k)) || batch_ids_contain(s->ids, &b->batch_id);
}

static void drop_committed_of(struct profile_store *s, struct kept_head *k)
{
        size_t n = 0;

        for (size_t i = 0; i < k->count; i++) {
                struct batch *b = k->items[i];

                if (is_kept_committed(s, k, b))
                        continue;
                k->items[i] = k->items[n]; /* what is dropped moves to the end */
                k->items[n++] = b;
        }
        forget_batches(k, n);
}

void kept_heads_drop_committed(struct profile_store *s)
{
        for (size_t i = 0; s->kept && i < s->options.peer_count; i++)
                drop_committed_of(s, &s->kept[i]);
}

/* Takes the batches of the page. Caller holds peer_lock and lock. */
static void keep_page(struct profile_store *s, struct kept_head *k, const struct head_page_header *h,
                      struct decoded_page *d)
{
        bool is_changed;

        if (strcmp(k->node, h->node) != 0) { /* with another disk: what the old one had is lost */
                forget_batches(k, 0);
                memcpy(k->node, h->node, sizeof k->node);
        }
        is_changed = d->count || k->flushed != h->flushed;
        k->after = h->last;
        k->flushed = h->flushed;
        k->version = h->version;
        for (size_t i = 0; i < d->count; i++) {
                k->items[k->count++] = d->items[i];
                k->bytes += batch_get_bytes(d->items[i]);
                metric_add(&kept_batches, 1);
                metric_add(&kept_bytes, (int64_t)batch_get_bytes(d->items[i]));
        }
        d->count = 0;
        if (is_changed)
                drop_committed_of(s, k);
}

enum status profile_store_add_head(struct profile_store *s, unsigned peer, const void *page, size_t n,
                                   bool *is_self_ret, bool *has_more_ret, struct error *err)
{
        _cleanup_(decoded_page_deinit) struct decoded_page d = { 0 };
        struct kept_head *k = &s->kept[peer];
        struct head_page_reader r;
        uint64_t before;
        enum status st = head_page_read(&r, page, n, err);

        if (st)
                return st;
        *is_self_ret = strcmp(r.header.node, s->logs.node) == 0;
        *has_more_ret = r.header.has_more && !*is_self_ret;
        if (*is_self_ret)
                return ST_OK;
        pthread_mutex_lock(&s->lock);
        before = strcmp(k->node, r.header.node) == 0 ? k->bytes : 0;
        pthread_mutex_unlock(&s->lock);
        st = decode_head_page(&r, before, &d, err);
        if (st)
                return st;
        pthread_mutex_lock(&s->peer_lock);
        pthread_mutex_lock(&s->lock);
        if (array_reserve_many(&k->items, &k->capacity, k->count, d.count))
                keep_page(s, k, &r.header, &d);
        else
                st = error_no_memory(err);
        pthread_mutex_unlock(&s->lock);
        pthread_mutex_unlock(&s->peer_lock);
        return st;
}

/* ---- scans ---- */

/* The heads first: the commits that are read afterwards have what the heads no longer have. */
void store_gather_from_nodes(struct profile_store *s, struct missing_nodes *ret)
{
        if (s->options.ask_peers)
                s->options.ask_peers(s->options.ask_context, ret);
        if (!store_follow_for_scan(s))
                ret->items[ret->count++].since_unix_s = s->followed_unix_s;
        metric_add(&incomplete, ret->count > 0);
}

bool kept_heads_are_followed(struct profile_store *s)
{
        bool ret = true;

        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; s->kept && i < s->options.peer_count; i++)
                ret = ret && has_tables_of(s, &s->kept[i]);
        pthread_mutex_unlock(&s->lock);
        return ret;
}

/* @param own_until  position of the last batch of the own head in `to`: later ones are not durable yet. */
static enum status copy_kept_head(struct profile_store *s, const struct kept_head *k, uint64_t own_until,
                                  struct key_map *seen, struct batch **to, size_t *count, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < k->count; i++) {
                const uint64_t *own = key_map_find(&s->queued, &k->items[i]->batch_id);
                bool is_new = true;

                if (own && *own && *own <= own_until)
                        continue;
                st = key_map_put(seen, &k->items[i]->batch_id, 0, &is_new, NULL, err);
                if (!st && is_new)
                        to[(*count)++] = batch_ref(k->items[i]);
        }
        return st;
}

enum status kept_heads_copy(struct profile_store *s, struct batch ***batches, size_t *count, struct error *err)
{
        _cleanup_key_map_ struct key_map seen = { .memory.use = MEMORY_QUERIES };
        const uint64_t own_until = *count ? (*batches)[*count - 1]->position : 0;
        struct batch **grown;
        size_t more = 0;
        enum status st = ST_OK;

        for (size_t i = 0; s->kept && i < s->options.peer_count; i++)
                more += s->kept[i].count;
        if (!more)
                return ST_OK;
        grown = reallocarray(*batches, *count + more, sizeof(struct batch *));
        if (!grown)
                return error_no_memory(err);
        *batches = grown;
        for (size_t i = 0; !st && i < s->options.peer_count; i++)
                st = copy_kept_head(s, &s->kept[i], own_until, &seen, grown, count, err);
        return st;
}
