/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/sample_labels.h"

#include <assert.h>
#include <string.h>

enum status sample_labels_set(struct sample_labels *l, uint32_t key, uint32_t value, struct error *err)
{
        for (uint32_t i = 0; i < l->count; i++) {
                if (l->items[i].key == key) {
                        l->items[i].value = value;
                        return ST_OK;
                }
        }
        assert(l->count <= LIMIT_LABELS_PER_SAMPLE);
        if (l->count == LIMIT_LABELS_PER_SAMPLE)
                return error_set(err, ST_TOO_BIG, "sample has more than %d labels", LIMIT_LABELS_PER_SAMPLE);
        l->items[l->count++] = (struct profile_label){ key, value };
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
