/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/hash.h"
#include "common/limits.h"
#include "parquet/dictionary.h"
#include "profile-formats/number_map.h"
#include "tests/support/suite.h"

static bool equal_number(const void *context, uint32_t entry, const void *key, size_t size)
{
        const uint32_t *numbers = context;

        return size == sizeof *numbers && memcmp(&numbers[entry], key, size) == 0;
}

static void add_number(struct hash_table *t, const uint32_t *numbers, uint32_t entry)
{
        ck_assert_int_eq(hash_table_reserve(t, NULL), ST_OK);
        hash_table_insert(t, hash_table_hash(&numbers[entry], sizeof *numbers), entry);
}

/*
 * From an independent implementation, which also gives the paper's a129ca6149be45e5 with two and four rounds (appendix
 * A).
 */
START_TEST(siphash_matches_published_values)
{
        static const struct {
                size_t size;
                uint64_t hash;
        } vectors[] = { { 0, 0xabac0158050fc4dcu }, { 1, 0xc9f49bf37d57ca93u },  { 7, 0xd3927d989bb11140u },
                        { 8, 0x369095118d299a8eu }, { 15, 0xd320d86d2a519956u }, { 63, 0x9d199062b7bbb3a8u } };
        uint8_t key[16], message[64];

        for (uint8_t i = 0; i < 64; i++)
                message[i] = i;
        memcpy(key, message, sizeof key);
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
                ck_assert_uint_eq(siphash13_hash(key, message, vectors[i].size), vectors[i].hash);
}
END_TEST

#define IDS 65536
#define BUCKETS 1024

/*
 * The size of the fullest bucket selected by the n low bits of the hash; also checks that equal ids have equal hashes.
 */
static void check_spread(void (*make)(uint32_t i, uint64_t id[2]))
{
        static uint32_t counts[BUCKETS];
        uint32_t most = 0;

        memset(counts, 0, sizeof counts);
        for (uint32_t i = 0; i < IDS; i++) {
                uint64_t id[2], again[2];
                uint64_t hash;

                make(i, id);
                make(i, again);
                hash = keyed_hash_id((const uint8_t *)id);
                ck_assert_uint_eq(keyed_hash_id((const uint8_t *)again), hash);
                most = ++counts[hash % BUCKETS] > most ? counts[hash % BUCKETS] : most;
        }
        ck_assert_uint_lt(most, 2 * IDS / BUCKETS); /* random ids: eight standard deviations */
}

static void make_ascending(uint32_t i, uint64_t id[2])
{
        id[0] = i;
        id[1] = 0;
}

static void make_with_high_word(uint32_t i, uint64_t id[2])
{
        id[0] = 7;
        id[1] = i;
}

static void make_with_top_bits(uint32_t i, uint64_t id[2])
{
        id[0] = id[1] = (uint64_t)i << 48;
}

/* Swapped or inverted words must not cancel out. */
static void make_mirrored(uint32_t i, uint64_t id[2])
{
        id[0] = i;
        id[1] = ~(uint64_t)i;
}

START_TEST(similar_ids_are_distributed)
{
        check_spread(make_ascending);
        check_spread(make_with_high_word);
        check_spread(make_with_top_bits);
        check_spread(make_mirrored);
}
END_TEST

/* With this key, bits 64 to 73 of the product have 16 values for ids that are evenly spaced. */
START_TEST(similar_ids_are_distributed_with_an_unlucky_key)
{
        unsigned __int128 drawn[3];

        memcpy(drawn, id_hash_key, sizeof drawn);
        for (size_t i = 0; i < 2; i++)
                id_hash_key[i] = id_hash_key[i] >> 74 << 74 | (unsigned __int128)1 << 70;
        check_spread(make_ascending);
        check_spread(make_with_high_word);
        memcpy(id_hash_key, drawn, sizeof drawn);
}
END_TEST

START_TEST(an_empty_table_finds_nothing_and_removes_nothing)
{
        struct hash_table t = { 0 };
        uint32_t number = 1, entry = 77;

        ck_assert(!hash_table_find(&t, 5, equal_number, &number, &number, sizeof number, &entry));
        ck_assert_uint_eq(entry, 77);
        ck_assert(!hash_table_remove(&t, 5, 0));
        ck_assert(!hash_table_renumber(&t, 5, 0, 1));
        ck_assert_uint_eq(hash_table_longest_probe(&t), 0);
        hash_table_clear(&t);
        hash_table_deinit(&t);
}
END_TEST

START_TEST(full_arena_leaves_table_unchanged)
{
        _cleanup_arena_ struct arena a;
        struct hash_table t = { .arena = &a };
        static uint32_t numbers[100000];
        uint32_t count = 0, entry;
        enum status st = ST_OK;

        arena_init(&a, KiB(64));
        for (; count < 100000; count++) {
                numbers[count] = count * 3;
                st = hash_table_reserve(&t, NULL);
                if (st)
                        break;
                hash_table_insert(&t, hash_table_hash(&numbers[count], sizeof *numbers), count);
        }
        ck_assert_int_eq(st, ST_NO_MEMORY);
        ck_assert_uint_eq(t.count, count);
        for (uint32_t i = 0; i < count; i++) {
                ck_assert(hash_table_find(&t, hash_table_hash(&numbers[i], sizeof *numbers), equal_number, numbers,
                                          &numbers[i], sizeof *numbers, &entry));
                ck_assert_uint_eq(entry, i);
        }
        hash_table_deinit(&t);
        ck_assert_ptr_eq(t.arena, &a);
}
END_TEST

/*
 * Random operations compared with a linearly searched array. In half of the runs hashes have four bits, so that probe
 * sequences overlap and wrap around.
 */
#define MODEL_KEYS 400u

struct model {
        struct hash_table table;
        uint32_t numbers[MODEL_KEYS]; /* key of each entry number */
        bool used[MODEL_KEYS];        /* entry numbers in the table */
        uint32_t count, hash_mask;
};

static uint32_t model_hash(const struct model *m, uint32_t key)
{
        return hash_table_hash(&key, sizeof key) & m->hash_mask;
}

static bool model_find(const struct model *m, uint32_t key, uint32_t *ret)
{
        for (*ret = 0; *ret < MODEL_KEYS; ++*ret)
                if (m->used[*ret] && m->numbers[*ret] == key)
                        return true;
        return false;
}

static uint32_t free_entry(const struct model *m)
{
        uint32_t i = (uint32_t)random() % MODEL_KEYS;

        while (m->used[i])
                i = (i + 1) % MODEL_KEYS;
        return i;
}

static void model_set(struct model *m, uint32_t entry, uint32_t key)
{
        m->numbers[entry] = key;
        m->used[entry] = true;
}

static void model_step(struct model *m, uint32_t key)
{
        uint32_t expected, entry = UINT32_MAX, other, hash = model_hash(m, key);
        bool there = model_find(m, key, &expected);

        ck_assert_int_eq(hash_table_find(&m->table, hash, equal_number, m->numbers, &key, sizeof key, &entry), there);
        if (there)
                ck_assert_uint_eq(entry, expected);
        switch (random() % 8) {
        case 0 ... 3:
                if (there || m->count == MODEL_KEYS)
                        return;
                entry = free_entry(m);
                ck_assert_int_eq(hash_table_reserve(&m->table, NULL), ST_OK);
                hash_table_insert(&m->table, hash, entry);
                model_set(m, entry, key);
                m->count++;
                return;
        case 4 ... 5:
                ck_assert_int_eq(hash_table_remove(&m->table, hash, there ? expected : MODEL_KEYS), there);
                if (there)
                        m->used[expected] = false;
                m->count -= there;
                return;
        case 6:
                if (!there || m->count == MODEL_KEYS)
                        return;
                other = free_entry(m);
                ck_assert(hash_table_renumber(&m->table, hash, expected, other));
                m->used[expected] = false;
                model_set(m, other, key);
                return;
        default:
                if (random() % 500)
                        return;
                hash_table_clear(&m->table);
                memset(m->used, 0, sizeof m->used);
                m->count = 0;
        }
}

START_TEST(table_agrees_with_list)
{
        for (uint32_t run = 0; run < 20; run++) {
                struct model m = { .hash_mask = run % 2 ? UINT32_MAX : 15 };

                srandom(run + 1);
                for (int i = 0; i < 4000; i++)
                        model_step(&m, (uint32_t)random() % (2 * MODEL_KEYS));
                ck_assert_uint_eq(m.table.count, m.count);
                for (uint32_t key = 0; key < 2 * MODEL_KEYS; key++)
                        model_step(&m, key);
                hash_table_deinit(&m.table);
        }
}
END_TEST

/* Keys that are close, evenly spaced, or equal except for one bit must not be slower than random ones. */
START_TEST(structured_keys_are_distributed_evenly)
{
        static uint32_t numbers[1 << 16];
        static const unsigned shifts[] = { 0, 8, 16 };

        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
                struct hash_table t = { 0 };

                for (uint32_t i = 0; i < 1 << 16; i++) {
                        numbers[i] = i << shifts[s];
                        if (i && !numbers[i])
                                break;
                        add_number(&t, numbers, i);
                }
                ck_assert_uint_lt(hash_table_longest_probe(&t), 100);
                hash_table_deinit(&t);
        }
}
END_TEST

/* Values chosen by a sender to collide without a hash key. */
#define COLLISIONS 2048u
#define COLLIDING_BITS 0xfffu

static uint64_t next_colliding_number(uint64_t from)
{
        while (hash_bytes64(&from, sizeof from) & COLLIDING_BITS)
                from++;
        return from;
}

START_TEST(tables_of_sent_values_resist_chosen_collisions)
{
        struct byte_dict bytes;
        _cleanup_number_map_ struct number_map map = { 0 };
        struct int_dict ints = { 0 };
        static int64_t values[COLLISIONS];
        uint64_t number = 0;
        uint32_t at;

        byte_dict_init(&bytes, MiB(1));
        for (uint32_t i = 0; i < COLLISIONS; i++, number++) {
                number = next_colliding_number(number);
                ck_assert_int_eq(byte_dict_add(&bytes, &number, sizeof number, &at), ST_OK);
                ck_assert_uint_eq(at, i);
        }
        ck_assert_uint_lt(hash_table_longest_probe(&bytes.numbers), 100);
        byte_dict_deinit(&bytes);

        for (uint32_t i = 0, k = 0; k < COLLISIONS; i++) {
                struct number_key key = { { i } };

                if (hash_bytes64(&key, sizeof key) & COLLIDING_BITS)
                        continue;
                ck_assert_int_eq(number_map_get(&map, &key, &at, NULL, NULL), ST_OK);
                ck_assert_uint_eq(at, k++);
        }
        ck_assert_uint_lt(hash_table_longest_probe(&map.numbers), 100);

        /* The inverse of the multiplier of the former integer hash: k times it hashes to k, whose upper half is 0. */
        for (uint64_t i = 0; i < COLLISIONS; i++)
                values[i] = (int64_t)(i / 2 * 0xf1de83e19937733du);
        ck_assert(int_dict_fill(&ints, values, COLLISIONS, COLLISIONS));
        ck_assert_uint_eq(ints.count, COLLISIONS / 2);
        ck_assert_uint_lt(hash_table_longest_probe(&ints.numbers), 100);
        int_dict_deinit(&ints);
}
END_TEST

TEST_SUITE("hash_table", siphash_matches_published_values, similar_ids_are_distributed,
           similar_ids_are_distributed_with_an_unlucky_key, an_empty_table_finds_nothing_and_removes_nothing,
           full_arena_leaves_table_unchanged, table_agrees_with_list, structured_keys_are_distributed_evenly,
           tables_of_sent_values_resist_chosen_collisions)
