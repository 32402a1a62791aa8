/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/int_dict.h"

#include <stdlib.h>

#define JUDGED_FROM 1024 /* values that tell whether values repeat */

static uint32_t hash_of(int64_t v)
{
        return (uint32_t)(((uint64_t)v * 0x9e3779b97f4a7c15u) >> 32);
}

static bool grow(struct int_dict *d)
{
        uint32_t slot_count = d->slot_count ? d->slot_count * 2 : 256;
        uint32_t *slots = calloc(slot_count, sizeof *slots);
        int64_t *values = slots ? realloc(d->values, slot_count / 2 * sizeof *values) : NULL;

        if (!values) {
                free(slots);
                d->failed = ST_NO_MEMORY;
                return false;
        }
        d->values = values;
        for (uint32_t i = 0; i < d->count; i++) {
                uint32_t at = hash_of(values[i]) & (slot_count - 1);

                while (slots[at])
                        at = (at + 1) & (slot_count - 1);
                slots[at] = i + 1;
        }
        free(d->slots);
        d->slots = slots;
        d->slot_count = slot_count;
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
                uint32_t at;

                if (i && values[i] == values[i - 1]) {
                        d->codes[i] = d->codes[i - 1];
                        continue;
                }
                if (d->count >= d->slot_count / 2 && !grow(d))
                        return false;
                at = hash_of(values[i]) & (d->slot_count - 1);
                while (d->slots[at] && d->values[d->slots[at] - 1] != values[i])
                        at = (at + 1) & (d->slot_count - 1);
                if (!d->slots[at]) {
                        if (d->count == max || (i >= JUDGED_FROM && d->count > i / 2))
                                return false;
                        d->values[d->count++] = values[i];
                        d->slots[at] = d->count;
                }
                d->codes[i] = d->slots[at] - 1;
        }
        return true;
}

void int_dict_deinit(struct int_dict *d)
{
        free(d->values);
        free(d->codes);
        free(d->slots);
        *d = (struct int_dict){ 0 };
}
