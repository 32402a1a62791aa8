/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bpf_drain.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ENTRIES 256

/* Take every entry out of a hash map into one array of (key, value) rows. */
static enum status take_all(int fd, size_t key_size, size_t value_size, void **rows_ret, size_t *count_ret,
                            struct error *err)
{
        _cleanup_free_ uint8_t *keys = reallocarray(NULL, BATCH_ENTRIES, key_size);
        _cleanup_free_ uint8_t *values = reallocarray(NULL, BATCH_ENTRIES, value_size);
        _cleanup_free_ uint8_t *rows = NULL;
        size_t row_size = key_size + value_size, count = 0;
        uint32_t position = 0;
        bool first = true, more = true;

        if (!keys || !values)
                return error_no_memory(err);
        while (more) {
                uint32_t n = BATCH_ENTRIES;
                uint8_t *grown;

                if (bpf_map_lookup_and_delete_batch(fd, first ? NULL : &position, &position, keys, values, &n,
                                                    NULL) < 0) {
                        if (errno != ENOENT)
                                return error_os(err, errno, "cannot drain a BPF map");
                        more = false;
                }
                first = false;
                if (n == 0)
                        continue;
                grown = reallocarray(rows, count + n, row_size);
                if (!grown)
                        return error_no_memory(err);
                rows = grown;
                for (uint32_t i = 0; i < n; i++, count++) {
                        memcpy(rows + count * row_size, keys + i * key_size, key_size);
                        memcpy(rows + count * row_size + key_size, values + i * value_size, value_size);
                }
        }
        *rows_ret = steal_ptr(rows);
        *count_ret = count;
        return ST_OK;
}

/* A row of take_all() is one of these structs. */
struct chunk_entry {
        uint64_t hash;
        struct sample_chunk chunk;
};
static_assert(sizeof(struct sample_count) == sizeof(struct sample_key) + sizeof(uint64_t), "no padding");
static_assert(sizeof(struct chunk_entry) == sizeof(uint64_t) + sizeof(struct sample_chunk), "no padding");

struct chunks {
        struct chunk_entry *items;
        size_t count;
};

static int compare_entries(const void *a, const void *b)
{
        uint64_t x = ((const struct chunk_entry *)a)->hash, y = ((const struct chunk_entry *)b)->hash;

        return x < y ? -1 : x > y;
}

static const struct sample_chunk *find(const struct chunks *c, uint64_t hash)
{
        const struct chunk_entry wanted = { .hash = hash };
        const struct chunk_entry *e = NULL;

        if (hash && c->count)
                e = bsearch(&wanted, c->items, c->count, sizeof wanted, compare_entries);
        return e ? &e->chunk : NULL;
}

static int compare_hashes(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

/* Every hash that a count names, once. */
static enum status first_hashes(const struct sample_batch *b, uint64_t **ret, size_t *count_ret, struct error *err)
{
        uint64_t *hashes = reallocarray(NULL, 2 * b->count_count + 1, sizeof *hashes);
        size_t n = 0, kept = 0;

        if (!hashes)
                return error_no_memory(err);
        for (size_t i = 0; i < b->count_count; i++) {
                hashes[n++] = b->counts[i].key.kernel_stack;
                hashes[n++] = b->counts[i].key.user_stack;
        }
        qsort(hashes, n, sizeof *hashes, compare_hashes);
        for (size_t i = 0; i < n; i++)
                if (hashes[i] && (!kept || hashes[i] != hashes[kept - 1]))
                        hashes[kept++] = hashes[i];
        *ret = hashes;
        *count_ret = kept;
        return ST_OK;
}

static size_t chain_length(const struct chunks *c, uint64_t hash)
{
        const struct sample_chunk *chunk = find(c, hash);
        size_t n = 0;

        for (unsigned i = 0; chunk && i < SAMPLE_CHUNKS_MAX; i++, chunk = find(c, chunk->next))
                n += chunk->frame_count <= SAMPLE_CHUNK_FRAMES ? chunk->frame_count : 0;
        return n;
}

static void put_together(const struct chunks *c, uint64_t hash, struct sample_batch *b)
{
        const struct sample_chunk *chunk = find(c, hash);
        struct sample_stack *s = &b->stacks[b->stack_count];

        if (!chunk)
                return;
        *s = (struct sample_stack){ .hash = hash, .first_frame = b->frame_count, .end = chunk->end };
        for (unsigned i = 0; chunk && i < SAMPLE_CHUNKS_MAX; i++, chunk = find(c, chunk->next)) {
                if (chunk->frame_count > SAMPLE_CHUNK_FRAMES)
                        continue;
                memcpy(b->frames + b->frame_count, chunk->frames, chunk->frame_count * sizeof *b->frames);
                b->frame_count += chunk->frame_count;
        }
        s->frame_count = (uint32_t)(b->frame_count - s->first_frame);
        b->stack_count++;
}

enum status bpf_drain_counts(int fd, struct sample_batch *b, struct error *err)
{
        void *rows;
        enum status st = take_all(fd, sizeof(struct sample_key), sizeof(uint64_t), &rows, &b->count_count, err);

        if (!st)
                b->counts = rows;
        return st;
}

enum status bpf_drain_chunks(int fd, struct sample_batch *b, struct error *err)
{
        _cleanup_free_ uint64_t *hashes = NULL;
        struct chunks c;
        size_t count = 0, frames = 0;
        void *rows;
        enum status st = take_all(fd, sizeof(uint64_t), sizeof(struct sample_chunk), &rows, &c.count, err);

        if (st)
                return st;
        c.items = rows;
        if (c.count)
                qsort(c.items, c.count, sizeof *c.items, compare_entries);
        st = first_hashes(b, &hashes, &count, err);
        for (size_t i = 0; !st && i < count; i++)
                frames += chain_length(&c, hashes[i]);
        if (!st) {
                b->stacks = calloc(count + 1, sizeof *b->stacks);
                b->frames = calloc(frames + 1, sizeof *b->frames);
                if (!b->stacks || !b->frames)
                        st = error_no_memory(err);
        }
        for (size_t i = 0; !st && i < count; i++) /* ascending: the order that sample_batch_stack() wants */
                put_together(&c, hashes[i], b);
        free(rows);
        return st;
}
