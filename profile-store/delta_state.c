/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta_state.h"

#include <assert.h>
#include <json-c/json.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"

struct counted_snapshot {
        struct delta_snapshot snapshot; /* first: the two are cast to each other */
        atomic_uint refs;
        char *schema_json;
        const struct delta_file *files[];
};

void delta_state_init(struct delta_state *s)
{
        *s = (struct delta_state){ .version = -1 };
}

static void drop_snapshot(struct delta_state *s)
{
        delta_snapshot_release(s->snapshot);
        s->snapshot = NULL;
}

void delta_state_deinit(struct delta_state *s)
{
        for (size_t i = 0; i < s->slot_count; i++) {
                if (s->slots[i])
                        delta_live_file_unref(s->slots[i]);
        }
        for (size_t i = 0; i < s->txn_count; i++)
                free(s->txns[i].app_id);
        free(s->slots);
        free(s->txns);
        json_object_put(s->metadata);
        drop_snapshot(s);
        delta_state_init(s);
}

/* The slot of a path: where it is, or where it would go. */
static size_t slot_of(struct delta_live_file *const *slots, size_t slot_count, const char *path)
{
        size_t at = hash64(path, strlen(path)) & (slot_count - 1);

        while (slots[at] && strcmp(slots[at]->file.path, path) != 0)
                at = (at + 1) & (slot_count - 1);
        return at;
}

struct delta_live_file *delta_state_find(const struct delta_state *s, const char *path)
{
        return s->slot_count ? s->slots[slot_of(s->slots, s->slot_count, path)] : NULL;
}

static enum status reserve(struct delta_state *s, size_t more, struct error *err)
{
        struct delta_live_file **slots;
        size_t slot_count = s->slot_count ? s->slot_count : 64;

        if (more > LIMIT_DELTA_FILES - s->file_count)
                return error_set(err, ST_TOO_BIG, "a table of more than %d files", LIMIT_DELTA_FILES);
        while (slot_count / 2 < s->file_count + more)
                slot_count *= 2;
        if (slot_count == s->slot_count)
                return ST_OK;
        slots = calloc(slot_count, sizeof(struct delta_live_file *));
        if (!slots)
                return error_no_memory(err);
        for (size_t i = 0; i < s->slot_count; i++) {
                if (s->slots[i])
                        slots[slot_of(slots, slot_count, s->slots[i]->file.path)] = s->slots[i];
        }
        free(s->slots);
        s->slots = slots;
        s->slot_count = slot_count;
        return ST_OK;
}

enum status delta_state_prepare(struct delta_state *s, struct delta_actions *a, bool strict, struct error *err)
{
        struct delta_txn *txns;
        enum status st = reserve(s, a->add_count, err);

        if (st)
                return st;
        txns = realloc(s->txns, (s->txn_count + a->txn_count + 1) * sizeof *txns);
        if (!txns)
                return error_no_memory(err);
        s->txns = txns;
        for (size_t i = 0; strict && i < a->remove_count; i++) {
                if (!delta_state_find(s, a->removes[i]))
                        return error_set(err, ST_NOT_FOUND, "file '%s' to remove is not in the table", a->removes[i]);
        }
        for (size_t i = 0; strict && i < a->add_count; i++) {
                if (delta_state_find(s, a->adds[i]->file.path))
                        return error_set(err, ST_USAGE, "file '%s' is in the table already", a->adds[i]->file.path);
        }
        return ST_OK;
}

/* Removal by shifting back: entries behind the hole that may move into it do. */
static void remove_file(struct delta_state *s, const char *path)
{
        size_t mask = s->slot_count - 1;
        size_t hole = slot_of(s->slots, s->slot_count, path);

        if (!s->slots[hole])
                return;
        delta_live_file_unref(s->slots[hole]);
        s->file_count--;
        for (size_t at = (hole + 1) & mask; s->slots[at]; at = (at + 1) & mask) {
                size_t home = hash64(s->slots[at]->file.path, strlen(s->slots[at]->file.path)) & mask;

                if (((at - home) & mask) >= ((at - hole) & mask)) {
                        s->slots[hole] = s->slots[at];
                        hole = at;
                }
        }
        s->slots[hole] = NULL;
}

static void put_txn(struct delta_state *s, struct delta_txn *txn)
{
        for (size_t i = 0; i < s->txn_count; i++) {
                if (!strcmp(s->txns[i].app_id, txn->app_id)) {
                        free(s->txns[i].app_id);
                        s->txns[i] = *txn;
                        return;
                }
        }
        s->txns[s->txn_count++] = *txn;
}

void delta_state_apply(struct delta_state *s, struct delta_actions *a, int64_t version)
{
        for (size_t i = 0; i < a->remove_count && s->slot_count; i++)
                remove_file(s, a->removes[i]);
        for (size_t i = 0; i < a->add_count; i++) {
                size_t at = slot_of(s->slots, s->slot_count, a->adds[i]->file.path);

                if (s->slots[at])
                        delta_live_file_unref(s->slots[at]);
                else
                        s->file_count++;
                s->slots[at] = a->adds[i];
        }
        a->add_count = 0;
        for (size_t i = 0; i < a->txn_count; i++)
                put_txn(s, &a->txns[i]);
        a->txn_count = 0;
        if (a->metadata) {
                json_object_put(s->metadata);
                s->metadata = a->metadata;
                a->metadata = NULL;
        }
        s->has_protocol |= a->has_protocol;
        s->version = version;
        delta_actions_deinit(a);
        drop_snapshot(s);
}

static int by_path(const void *a, const void *b)
{
        const struct delta_file *const *x = a, *const *y = b;

        return strcmp((*x)->path, (*y)->path);
}

enum status delta_state_snapshot(struct delta_state *s, struct delta_snapshot **ret, struct error *err)
{
        struct counted_snapshot *c;
        size_t n = 0;

        if (!s->snapshot) {
                c = calloc(1, sizeof *c + s->file_count * sizeof *c->files);
                if (c)
                        c->schema_json = strdup(delta_json_text(s->metadata, "schemaString"));
                if (!c || !c->schema_json) {
                        free(c);
                        return error_no_memory(err);
                }
                for (size_t i = 0; i < s->slot_count; i++) {
                        if (!s->slots[i])
                                continue;
                        delta_live_file_ref(s->slots[i]);
                        c->files[n++] = &s->slots[i]->file;
                }
                assert(n == s->file_count);
                if (n)
                        qsort(c->files, n, sizeof *c->files, by_path);
                c->refs = 1;
                c->snapshot = (struct delta_snapshot){ (uint64_t)s->version, c->files, n, c->schema_json };
                s->snapshot = &c->snapshot;
        }
        c = (struct counted_snapshot *)s->snapshot;
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
        *ret = s->snapshot;
        return ST_OK;
}

void delta_snapshot_release(struct delta_snapshot *s)
{
        struct counted_snapshot *c = (struct counted_snapshot *)s;

        if (!s || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
                return;
        for (size_t i = 0; i < s->file_count; i++)
                delta_live_file_unref((struct delta_live_file *)c->files[i]);
        free(c->schema_json);
        free(c);
}
