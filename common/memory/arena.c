/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory/arena.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/memory/huge_pages.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

/*
 * The chunk size grows with the bytes in use, because many arenas hold only a few names, while a few hold gigabytes,
 * where huge pages save most page faults. Beyond CHUNK_BYTES at most a sixteenth is allocated but unused.
 */
#define FIRST_CHUNK_BYTES (1u << 10)
#define CHUNK_BYTES (64u << 10)
#define LARGE_ARRAY_BYTES (CHUNK_BYTES / 4) /* larger allocations have chunks of their own */
#define LARGE_CHUNK_BYTES MiB(16)

struct arena_chunk {
        struct arena_chunk *next;
        size_t used;
        size_t size;
        _Alignas(16) uint8_t data[];
};

void arena_init(struct arena *a, size_t max)
{
        *a = (struct arena){ .max = max };
}

void arena_init_budget(struct arena *a, size_t max, enum memory_use use)
{
        *a = (struct arena){ .max = max, .memory.use = use };
}

enum status arena_error(const struct arena *a, struct error *err, const char *what)
{
        if (a->failed == ST_TOO_BIG)
                return error_set(err, ST_TOO_BIG, "%s take more than %zu bytes, or than the memory they may use", what,
                                 a->max);
        if (a->failed == ST_BUSY)
                return error_set(err, ST_BUSY, "the memory for %s is in use; retry later", what);
        return error_no_memory(err);
}

void arena_deinit(struct arena *a)
{
        while (a->chunks) {
                struct arena_chunk *next = a->chunks->next;

                free(a->chunks);
                a->chunks = next;
        }
        a->used = 0;
        memory_release(&a->memory);
}

/* Size of a chunk for n bytes and some later allocations; just n if it is large. */
static size_t arena_chunk_bytes(size_t used, size_t n)
{
        size_t size = used > 4 * n ? used : 4 * n;

        if (n > LARGE_ARRAY_BYTES)
                return n;
        if (used / 16 > CHUNK_BYTES)
                return used / 16 < LARGE_CHUNK_BYTES ? used / 16 : LARGE_CHUNK_BYTES;
        return size < FIRST_CHUNK_BYTES ? FIRST_CHUNK_BYTES : size > CHUNK_BYTES ? CHUNK_BYTES : size;
}

static size_t round_arena_bytes(size_t n)
{
        return (n + 15) & ~(size_t)15;
}

bool arena_fits(const struct arena *a, size_t n)
{
        return n <= SIZE_MAX - 64 && round_arena_bytes(n) <= a->max - a->used;
}

void *arena_alloc(struct arena *a, size_t n)
{
        struct arena_chunk *c = a->chunks;
        void *ret;

        if (!arena_fits(a, n)) {
                a->failed = ST_TOO_BIG;
                return NULL;
        }
        n = round_arena_bytes(n);
        if (!c || n > c->size - c->used) {
                size_t size = arena_chunk_bytes(a->used, n);

                if (a->memory.use != MEMORY_BASE) {
                        a->failed = memory_reserve(&a->memory, sizeof *c + size, NULL);
                        if (a->failed)
                                return NULL;
                }
                c = calloc(1, sizeof *c + size);
                if (!c) {
                        if (a->memory.use != MEMORY_BASE)
                                memory_shrink(&a->memory, a->memory.bytes - sizeof *c - size);
                        a->failed = ST_NO_MEMORY;
                        return NULL;
                }
                advise_huge_pages(c, sizeof *c + size);
                c->size = size;
                if (a->chunks && size == n) { /* keep filling the current chunk */
                        c->next = a->chunks->next;
                        a->chunks->next = c;
                } else {
                        c->next = a->chunks;
                        a->chunks = c;
                }
        }
        ret = c->data + c->used;
        c->used += n;
        a->used += n;
        return ret;
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size)
{
        size_t n;

        if (__builtin_mul_overflow(count, size, &n))
                return NULL;
        return arena_alloc(a, n);
}

void arena_discard(struct arena *a, void *array, size_t n)
{
        const size_t size = round_arena_bytes(n);

        if (!array)
                return;
        assert(size <= a->used);
        for (struct arena_chunk **at = &a->chunks; size > LARGE_ARRAY_BYTES && *at; at = &(*at)->next) {
                struct arena_chunk *c = *at;

                if (c->data != array || c->used != size)
                        continue;
                *at = c->next;
                a->used -= size;
                if (a->memory.use != MEMORY_BASE)
                        memory_shrink(&a->memory, a->memory.bytes - sizeof *c - c->size);
                free(c);
                return;
        }
        ASAN_POISON_MEMORY_REGION(array, n);
}

bool arena_absorb(struct arena *into, struct arena *from)
{
        struct arena_chunk **end = &from->chunks;

        assert(into->memory.use == from->memory.use && !into->memory.group && !from->memory.group);
        if (from->used > into->max - into->used)
                return false;
        while (*end)
                end = &(*end)->next;
        *end = into->chunks; /* keep filling the newest chunk of `from` */
        into->chunks = from->chunks;
        into->used += from->used;
        into->memory.bytes += from->memory.bytes;
        from->chunks = NULL;
        from->used = from->memory.bytes = 0;
        return true;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
        char *copy = n == SIZE_MAX ? NULL : arena_alloc(a, n + 1);

        assert(s || !n);
        if (copy && n)
                memcpy(copy, s, n);
        return copy;
}
