/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/label_list.h"

#include <string.h>

enum status label_list_set(struct label_list *l, uint32_t key, uint32_t value, struct error *err)
{
        for (uint32_t i = 0; i < l->count; i++) {
                if (l->items[i].key == key) {
                        l->items[i].value = value;
                        return ST_OK;
                }
        }
        if (l->count == LIMIT_LABELS_PER_SAMPLE)
                return error_set(err, ST_TOO_BIG, "sample has more than %d labels", LIMIT_LABELS_PER_SAMPLE);
        l->items[l->count++] = (struct profile_label){ key, value };
        return ST_OK;
}

enum status label_list_set_text(struct label_list *l, struct profile *p, const char *key, const char *value,
                                size_t n, struct error *err)
{
        uint32_t k, v;
        enum status st = profile_add_string(p, key, text_cut(key, strlen(key), LIMIT_LABEL_BYTES), &k, err);

        if (!st)
                st = profile_add_string(p, value, text_cut(value, n, LIMIT_LABEL_BYTES), &v, err);
        return st ? st : label_list_set(l, k, v, err);
}

size_t text_cut(const void *text, size_t n, size_t max)
{
        const uint8_t *bytes = text;

        if (n <= max)
                return n;
        for (n = max; n > max - 4 && (bytes[n] & 0xc0) == 0x80; n--)
                ;
        return n;
}
