/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/sample_labels.h"

#include <assert.h>
#include <string.h>

/* Find the position of the first key that is not less. A sample may have as many references to labels as bytes, so the
 * search must be short. */
static uint32_t find_label_position(const struct sample_labels *l, uint32_t key)
{
        uint32_t low = 0, high = l->count;

        assert(l->count <= LIMIT_LABELS_PER_SAMPLE);
        if (l->count && l->items[l->count - 1].key < key)
                return l->count;
        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (l->items[middle].key < key)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

bool sample_labels_has(const struct sample_labels *l, uint32_t key)
{
        uint32_t at = find_label_position(l, key);

        return at < l->count && l->items[at].key == key;
}

enum status sample_labels_set(struct sample_labels *l, uint32_t key, uint32_t value, struct error *err)
{
        uint32_t at = find_label_position(l, key);

        if (at < l->count && l->items[at].key == key) {
                l->items[at].value = value;
                return ST_OK;
        }
        if (l->count == LIMIT_LABELS_PER_SAMPLE)
                return error_set(err, ST_TOO_BIG, "sample has more than %d labels", LIMIT_LABELS_PER_SAMPLE);
        memmove(&l->items[at + 1], &l->items[at], (l->count - at) * sizeof *l->items);
        l->items[at] = (struct profile_label){ key, value };
        l->count++;
        return ST_OK;
}

enum status sample_labels_set_text(struct sample_labels *l, struct profile *p, const char *key, const char *value,
                                   size_t n, struct error *err)
{
        uint32_t k, v;
        enum status st = profile_add_string(p, key, utf8_truncate(key, strlen(key), LIMIT_LABEL_BYTES), &k, err);

        if (!st)
                st = profile_add_string(p, value, utf8_truncate(value, n, LIMIT_LABEL_BYTES), &v, err);
        return st ? st : sample_labels_set(l, k, v, err);
}

size_t utf8_truncate(const void *text, size_t n, size_t max)
{
        const uint8_t *bytes = text;

        if (n <= max)
                return n;
        for (n = max; n > max - 4 && (bytes[n] & 0xc0) == 0x80; n--)
                ;
        return n;
}
