/* SPDX-License-Identifier: Apache-2.0 */
/* The table against an array in the order of use, with random operations. */
#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/hash/lru_table.h"
#include "tests/support/suite.h"

#define KEYS 200u

struct number {
        struct lru_entry lru;
        uint32_t value;
};

struct lru_model {
        struct lru_table table;
        struct number *used[KEYS]; /* least recently used first */
        size_t count;
        uint64_t hash_mask; /* a small one makes hashes collide */
};

static bool is_number(const struct lru_entry *entry, const void *key)
{
        return ((const struct number *)entry)->value == *(const uint32_t *)key;
}

static uint64_t hash_number(const struct lru_model *m, uint32_t key)
{
        return keyed_hash(&key, sizeof key) & m->hash_mask;
}

static size_t find_in_model(const struct lru_model *m, uint32_t key)
{
        size_t i = 0;

        while (i < m->count && m->used[i]->value != key)
                i++;
        return i;
}

static struct number *take_from_model(struct lru_model *m, size_t i)
{
        struct number *taken = m->used[i];

        memmove(&m->used[i], &m->used[i + 1], (m->count - i - 1) * sizeof *m->used);
        m->count--;
        return taken;
}

static void remove_number(struct lru_model *m, size_t i)
{
        struct number *gone = take_from_model(m, i);

        lru_table_remove(&m->table, &gone->lru);
        free(gone);
}

static void add_number(struct lru_model *m, uint32_t key)
{
        struct number *one = calloc(1, sizeof *one);

        one->value = key;
        lru_table_insert(&m->table, &one->lru, hash_number(m, key));
        m->used[m->count++] = one;
}

static void check_order(const struct lru_model *m)
{
        const struct lru_entry *one = lru_table_oldest(&m->table);

        ck_assert_uint_eq(m->table.count, m->count);
        for (size_t i = 0; i < m->count; i++, one = lru_entry_newer(one))
                ck_assert_ptr_eq(one, m->used[i]);
        ck_assert_ptr_null(one);
        one = lru_table_newest(&m->table);
        for (size_t i = m->count; i-- > 0; one = lru_entry_older(one))
                ck_assert_ptr_eq(one, m->used[i]);
        ck_assert_ptr_null(one);
}

static void run_random_step(struct lru_model *m, uint32_t key)
{
        size_t at = find_in_model(m, key);
        bool is_there = at < m->count;
        struct lru_entry *found = lru_table_find(&m->table, hash_number(m, key), is_number, &key);

        ck_assert_ptr_eq(found, is_there ? m->used[at] : NULL);
        switch (random() % 4) {
        case 0:
                if (is_there)
                        remove_number(m, at);
                break;
        case 1:
                if (is_there) {
                        struct number *one = take_from_model(m, at);

                        lru_table_touch(&m->table, found);
                        m->used[m->count++] = one;
                }
                break;
        default:
                if (!is_there)
                        add_number(m, key);
        }
}

START_TEST(table_agrees_with_array_in_order_of_use)
{
        for (unsigned run = 0; run < 20; run++) {
                struct lru_model m = { .hash_mask = run % 2 ? UINT64_MAX : 3 };

                srandom(run + 1);
                ck_assert_int_eq(lru_table_init(&m.table, run * 10, NULL), ST_OK);
                for (int i = 0; i < 2000; i++)
                        run_random_step(&m, (uint32_t)random() % KEYS);
                check_order(&m);
                while (m.count)
                        remove_number(&m, 0);
                check_order(&m);
                lru_table_deinit(&m.table);
        }
}
END_TEST

START_TEST(newest_of_equal_keys_is_found)
{
        struct lru_model m = { .hash_mask = UINT64_MAX };
        const uint32_t key = 7;

        ck_assert_int_eq(lru_table_init(&m.table, 1, NULL), ST_OK);
        add_number(&m, key);
        add_number(&m, key);
        ck_assert_ptr_eq(lru_table_find(&m.table, hash_number(&m, key), is_number, &key), m.used[1]);
        remove_number(&m, 1);
        ck_assert_ptr_eq(lru_table_find(&m.table, hash_number(&m, key), is_number, &key), m.used[0]);
        remove_number(&m, 0);
        lru_table_deinit(&m.table);
}
END_TEST

TEST_SUITE("lru_table", table_agrees_with_array_in_order_of_use, newest_of_equal_keys_is_found)
