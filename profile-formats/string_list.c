/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/string_list.h"

#include <assert.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"

void string_list_init(struct string_list *l, const struct profile *p, uint32_t field)
{
        assert(field > 0);
        *l = (struct string_list){ .p = p, .field = field };
        buf_init(&l->fields, LIMIT_RESPONSE_BYTES);
}

void string_list_deinit(struct string_list *l)
{
        number_map_deinit(&l->seen);
        buf_deinit(&l->fields);
}

enum status string_list_get(struct string_list *l, const char *text, size_t n, uint32_t *ret, struct error *err)
{
        struct number_key key = { 0 };
        struct hash128 hash;
        uint32_t number;
        bool fresh;
        enum status st;

        if (profile_find_string(l->p, text, n, ret))
                return ST_OK;
        hash = hash_bytes128(text, n);
        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        st = number_map_get(&l->seen, &key, &number, &fresh, err);
        if (!st && fresh) {
                wire_put_bytes(&l->fields, l->field, text, n);
                st = buf_status(&l->fields, err, "string table");
        }
        if (!st)
                *ret = l->p->strings.count + number;
        return st;
}
