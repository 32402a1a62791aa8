/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

void byte_dict_init(struct byte_dict *d, size_t max_bytes)
{
        *d = (struct byte_dict){ 0 };
        buf_init(&d->bytes, max_bytes);
        buf_init(&d->entries, (size_t)UINT32_MAX);
}

void byte_dict_deinit(struct byte_dict *d)
{
        buf_deinit(&d->bytes);
        buf_deinit(&d->entries);
        hash_table_deinit(&d->numbers);
        *d = (struct byte_dict){ 0 };
}

void byte_dict_clear(struct byte_dict *d)
{
        buf_clear(&d->bytes);
        buf_clear(&d->entries);
        hash_table_clear(&d->numbers);
        d->count = 0;
}

static bool byte_dict_equal(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct byte_dict *d = context;
        const struct byte_dict_entry *e = byte_dict_entry(d, number);

        return e->size == size && (size == 0 || memcmp(d->bytes.data + e->offset, key, size) == 0);
}

enum status byte_dict_add(struct byte_dict *d, const void *data, uint32_t n, uint32_t *ret)
{
        struct byte_dict_entry e = { .offset = d->bytes.size, .size = n };
        uint32_t hash = hash_table_hash(data, n);
        enum status st;

        if (hash_table_find(&d->numbers, hash, byte_dict_equal, d, data, n, ret))
                return ST_OK;
        st = hash_table_reserve(&d->numbers, NULL);
        if (st)
                return st;
        if (buf_append(&d->bytes, data, n) || buf_append(&d->entries, &e, sizeof e))
                return d->bytes.failed ? d->bytes.failed : d->entries.failed;
        *ret = d->count++;
        hash_table_insert(&d->numbers, hash, *ret);
        return ST_OK;
}

/*
 * Values after which a dictionary is given up when most of them are distinct. Location ids of sorted stacks repeat
 * late: of the first thousand over 95% are distinct, of a row group less than a tenth.
 */
#define DICTIONARY_SAMPLE 16384
#define MOST_OF(count) ((count) - (count) / 8)

static bool int_dict_equal(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct int_dict *d = context;

        (void)size;
        return d->values[number] == *(const int64_t *)key;
}

/* Add a new value, with the next number. */
static bool int_dict_add(struct int_dict *d, int64_t value, uint32_t hash)
{
        if (hash_table_reserve(&d->numbers, NULL) || !array_reserve(&d->values, &d->capacity, d->count)) {
                d->failed = ST_NO_MEMORY;
                return false;
        }
        d->values[d->count] = value;
        hash_table_insert(&d->numbers, hash, d->count++);
        return true;
}

bool int_dict_fill(struct int_dict *d, const int64_t *values, size_t count, uint32_t max)
{
        d->codes = malloc(count * sizeof *d->codes);
        if (!d->codes) {
                d->failed = ST_NO_MEMORY;
                return false;
        }
        for (size_t i = 0; i < count; i++) {
                uint32_t hash;

                if (i && values[i] == values[i - 1]) {
                        d->codes[i] = d->codes[i - 1];
                        continue;
                }
                hash = hash_table_hash(&values[i], sizeof values[i]);
                if (hash_table_find(&d->numbers, hash, int_dict_equal, d, &values[i], sizeof values[i], &d->codes[i]))
                        continue;
                if (d->count == max || (i >= DICTIONARY_SAMPLE && d->count > MOST_OF(i)))
                        return false;
                d->codes[i] = d->count;
                if (!int_dict_add(d, values[i], hash))
                        return false;
        }
        return true;
}

void int_dict_deinit(struct int_dict *d)
{
        free(d->values);
        free(d->codes);
        hash_table_deinit(&d->numbers);
        *d = (struct int_dict){ 0 };
}
