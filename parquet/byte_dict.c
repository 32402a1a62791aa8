/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/byte_dict.h"

#include <string.h>


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

static bool equal_bytes(const void *context, uint32_t number, const void *key, size_t size)
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

        if (hash_table_find(&d->numbers, hash, equal_bytes, d, data, n, ret))
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
