/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/byte_dict.h"

#include <string.h>

#include "common/hash.h"

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
        free(d->slots);
        *d = (struct byte_dict){ 0 };
}

void byte_dict_clear(struct byte_dict *d)
{
        buf_clear(&d->bytes);
        buf_clear(&d->entries);
        if (d->slots)
                memset(d->slots, 0, d->slot_count * sizeof *d->slots);
        d->count = 0;
}

static enum status grow(struct byte_dict *d)
{
        uint32_t slot_count = d->slot_count ? d->slot_count * 2 : 256;
        uint32_t *slots = calloc(slot_count, sizeof *slots);

        if (!slots)
                return ST_NO_MEMORY;
        for (uint32_t i = 0; i < d->count; i++) {
                uint32_t at = byte_dict_entry(d, i)->hash & (slot_count - 1);

                while (slots[at])
                        at = (at + 1) & (slot_count - 1);
                slots[at] = i + 1;
        }
        free(d->slots);
        d->slots = slots;
        d->slot_count = slot_count;
        return ST_OK;
}

enum status byte_dict_add(struct byte_dict *d, const void *data, uint32_t n, uint32_t *ret)
{
        uint32_t hash = (uint32_t)hash64(data, n);
        struct byte_dict_entry e = { .offset = d->bytes.size, .size = n, .hash = hash };
        uint32_t at;

        if (d->count >= d->slot_count / 2) {
                enum status st = d->count < UINT32_MAX / 4 ? grow(d) : ST_TOO_BIG;

                if (st)
                        return st;
        }
        for (at = hash & (d->slot_count - 1); d->slots[at]; at = (at + 1) & (d->slot_count - 1)) {
                const struct byte_dict_entry *have = byte_dict_entry(d, d->slots[at] - 1);

                if (have->hash == hash && have->size == n &&
                    (n == 0 || memcmp(d->bytes.data + have->offset, data, n) == 0)) {
                        *ret = d->slots[at] - 1;
                        return ST_OK;
                }
        }
        if (buf_append(&d->bytes, data, n) || buf_append(&d->entries, &e, sizeof e))
                return d->bytes.failed ? d->bytes.failed : d->entries.failed;
        d->slots[at] = ++d->count;
        *ret = d->count - 1;
        return ST_OK;
}
