/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash/hash_table.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

#include "common/memory/huge_pages.h"

#define FIRST_SLOTS 64u

/* ---- keyed hash ---------------------------------------------------------------------- */

static uint8_t process_key[16];
unsigned __int128 id_hash_key[3];

static void draw_process_key(void)
{
        const void *random = (const void *)getauxval(AT_RANDOM); /* 16 random bytes from the kernel */

        if (getrandom(process_key, sizeof process_key, 0) == (ssize_t)sizeof process_key)
                return;
        if (!random)
                abort();
        memcpy(process_key, random, sizeof process_key);
}

static void derive_id_hash_key(void)
{
        for (uint64_t i = 0; i < sizeof id_hash_key / sizeof *id_hash_key; i++) {
                uint64_t low = 2 * i, high = 2 * i + 1;

                id_hash_key[i] = (unsigned __int128)keyed_hash(&high, sizeof high) << 64 | keyed_hash(&low, sizeof low);
        }
}

/* Runs before main(), so that no thread sees the keys change and no sandbox forbids the system call. */
__attribute__((constructor)) static void draw_hash_keys(void)
{
        draw_process_key();
        derive_id_hash_key();
}

struct sip_state {
        uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left_64(uint64_t x, unsigned bits)
{
        return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct sip_state *s)
{
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotate_left_64(s->v1, 13) ^ s->v0;
        s->v3 = rotate_left_64(s->v3, 16) ^ s->v2;
        s->v0 = rotate_left_64(s->v0, 32) + s->v3;
        s->v2 += s->v1;
        s->v3 = rotate_left_64(s->v3, 21) ^ s->v0;
        s->v1 = rotate_left_64(s->v1, 17) ^ s->v2;
        s->v2 = rotate_left_64(s->v2, 32);
}

static inline uint64_t load_word(const uint8_t *p)
{
        uint64_t word;

        memcpy(&word, p, sizeof word);
        return le64toh(word);
}

/* The last 0 to 7 bytes, little-endian, with the length modulo 256 in the top byte. */
static inline uint64_t last_word(const uint8_t *p, size_t n)
{
        uint64_t word = (uint64_t)n << 56;

        if (n >= 8)
                return n & 7 ? word | load_word(p + n - 8) >> (64 - 8 * (n & 7)) : word;
        for (size_t i = 0; i < n; i++)
                word |= (uint64_t)p[i] << (8 * i);
        return word;
}

uint64_t siphash13_hash(const uint8_t key[16], const void *data, size_t n)
{
        const uint8_t *p = data;
        uint64_t k0 = load_word(key), k1 = load_word(key + 8), word;
        struct sip_state s = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                               k1 ^ 0x7465646279746573u };

        for (size_t i = 0; i + 8 <= n; i += 8) {
                word = load_word(p + i);
                s.v3 ^= word;
                sip_round(&s);
                s.v0 ^= word;
        }
        word = last_word(p, n);
        s.v3 ^= word;
        sip_round(&s);
        s.v0 ^= word;
        s.v2 ^= 0xff;
        sip_round(&s);
        sip_round(&s);
        sip_round(&s);
        return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t keyed_hash(const void *data, size_t n)
{
        return siphash13_hash(process_key, data, n);
}

/* ---- table --------------------------------------------------------------------------- */

void hash_table_deinit(struct hash_table *t)
{
        if (!t->arena)
                free(t->slots);
        *t = (struct hash_table){ .arena = t->arena };
}

void hash_table_clear(struct hash_table *t)
{
        if (t->count)
                memset(t->slots, 0, t->slot_count * sizeof *t->slots);
        t->count = 0;
}

static void put_slot(struct hash_slot *slots, uint32_t mask, struct hash_slot slot)
{
        uint32_t at = slot.hash & mask;

        while (slots[at].entry)
                at = (at + 1) & mask;
        slots[at] = slot;
}

enum status hash_table_reserve(struct hash_table *t, struct error *err)
{
        uint32_t slot_count = t->slot_count ? t->slot_count * 2 : FIRST_SLOTS;
        struct hash_slot *slots;

        if (t->count < t->slot_count / 2)
                return ST_OK;
        if (t->count >= HASH_TABLE_MAX)
                return error_set(err, ST_TOO_BIG, "hash table has more than %u entries", HASH_TABLE_MAX);
        slots = t->arena ? arena_alloc_array(t->arena, slot_count, sizeof *slots)
                         : calloc_huge(slot_count, sizeof *slots);
        if (!slots)
                return error_no_memory(err);
        for (uint32_t i = 0; i < t->slot_count; i++)
                if (t->slots[i].entry)
                        put_slot(slots, slot_count - 1, t->slots[i]);
        if (t->arena)
                arena_discard(t->arena, t->slots, t->slot_count * sizeof *slots);
        else
                free(t->slots);
        t->slots = slots;
        t->slot_count = slot_count;
        return ST_OK;
}

void hash_table_insert(struct hash_table *t, uint32_t hash, uint32_t entry)
{
        assert(t->count < t->slot_count / 2 && entry < UINT32_MAX);
        put_slot(t->slots, t->slot_count - 1, (struct hash_slot){ hash, entry + 1 });
        t->count++;
}

static bool find_entry_slot(const struct hash_table *t, uint32_t hash, uint32_t entry, uint32_t *ret)
{
        uint32_t mask = t->slot_count - 1, at;

        if (!t->count)
                return false;
        for (at = hash & mask; t->slots[at].entry != entry + 1; at = (at + 1) & mask)
                if (!t->slots[at].entry)
                        return false;
        *ret = at;
        return t->slots[at].hash == hash;
}

/*
 * Instead of leaving a tombstone, each later entry of the run moves into the gap if the gap lies between its home and
 * its slot.
 */
bool hash_table_remove(struct hash_table *t, uint32_t hash, uint32_t entry)
{
        uint32_t mask = t->slot_count - 1, gap;

        if (!find_entry_slot(t, hash, entry, &gap))
                return false;
        for (uint32_t at = (gap + 1) & mask; t->slots[at].entry; at = (at + 1) & mask) {
                uint32_t home = t->slots[at].hash & mask;

                if (((at - home) & mask) >= ((at - gap) & mask)) {
                        t->slots[gap] = t->slots[at];
                        gap = at;
                }
        }
        t->slots[gap] = (struct hash_slot){ 0 };
        t->count--;
        return true;
}

bool hash_table_renumber(struct hash_table *t, uint32_t hash, uint32_t entry, uint32_t new_entry)
{
        uint32_t at;

        if (!find_entry_slot(t, hash, entry, &at))
                return false;
        t->slots[at].entry = new_entry + 1;
        return true;
}

uint32_t hash_table_longest_probe(const struct hash_table *t)
{
        uint32_t longest = 0;

        for (uint32_t i = 0; i < t->slot_count; i++) {
                uint32_t probe = ((i - t->slots[i].hash) & (t->slot_count - 1)) + 1;

                if (t->slots[i].entry && probe > longest)
                        longest = probe;
        }
        return longest;
}
