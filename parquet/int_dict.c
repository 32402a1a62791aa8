/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/int_dict.h"

#include <stdlib.h>

#include "common/array.h"

#define JUDGED_FROM 1024 /* values that tell whether values repeat */

static bool equal_value(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct int_dict *d = context;

        (void)size;
        return d->values[number] == *(const int64_t *)key;
}

/* The number of a value that is not in the dictionary yet. */
static bool add_value(struct int_dict *d, int64_t value, uint32_t hash)
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
                if (hash_table_find(&d->numbers, hash, equal_value, d, &values[i], sizeof values[i], &d->codes[i]))
                        continue;
                if (d->count == max || (i >= JUDGED_FROM && d->count > i / 2))
                        return false;
                d->codes[i] = d->count;
                if (!add_value(d, values[i], hash))
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
