/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_batch_ids.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"

#define FOLDER "_batch_ids/"
#define SUFFIX ".ids"
#define MAX_BYTES ((size_t)LIMIT_BATCH_IDS * sizeof(struct hash128) + sizeof(uint64_t))

/* The folder beside that of the log, with a slash at its end; owned. */
static char *make_ids_folder(const struct delta_place *p)
{
        const char *log = path_base(p->key);
        char *ret;

        return asprintf(&ret, "%.*s" FOLDER, (int)(log - p->key), p->key) < 0 ? NULL : ret;
}

enum status delta_batch_ids_write(const struct delta_place *p, const struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *folder = make_ids_folder(p), *key = NULL;
        _cleanup_buf_ struct buf bytes;
        enum status st;

        buf_init(&bytes, MAX_BYTES);
        if (!s->batch_id_count)
                return ST_OK;
        if (!folder || asprintf(&key, "%s%0*jd" SUFFIX, folder, DELTA_VERSION_DIGITS, (intmax_t)s->version) < 0) {
                key = NULL;
                return error_no_memory(err);
        }
        for (size_t i = 0; i < s->batch_id_count; i++)
                buf_append(&bytes, s->batch_ids[i].id.bytes, sizeof s->batch_ids[i].id.bytes);
        if (!buf_status(&bytes, NULL, ""))
                buf_append_u64(&bytes, hash_bytes64(bytes.data, bytes.size));
        st = buf_status(&bytes, err, "batch ids");
        if (!st)
                st = storage_make_folder(p->storage, key, err);
        return st ? st : storage_put(p->storage, key, bytes.data, bytes.size, STORAGE_REPLACE, err);
}

struct ids_listing {
        const struct delta_place *place;
        int64_t before_ms;
        struct hash128 **ids; /* NULL: remove old objects */
        size_t *count, *capacity;
};

static bool is_ids_key(const char *key)
{
        size_t n = strlen(key);

        return n > strlen(SUFFIX) && strcmp(key + n - strlen(SUFFIX), SUFFIX) == 0;
}

static enum status read_ids_object(struct ids_listing *l, const char *key, struct error *err)
{
        struct storage *s = l->place->storage;
        _cleanup_buf_ struct buf bytes;
        uint64_t checksum;
        enum status st;
        size_t n;

        buf_init(&bytes, MAX_BYTES);
        st = storage_read(s, key, &bytes, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st; /* another writer removed it */
        n = bytes.size < sizeof checksum ? 0 : bytes.size - sizeof checksum;
        memcpy(&checksum, bytes.data + n, bytes.size < sizeof checksum ? 0 : sizeof checksum);
        if (!n || n % sizeof **l->ids || checksum != htole64(hash_bytes64(bytes.data, n)))
                return error_set(err, ST_BAD_DATA,
                                 "'%s/%s' is damaged: remove it if batches of the last two days may "
                                 "count twice when they are sent again",
                                 storage_root(s), key);
        if (!array_reserve_many(l->ids, l->capacity, *l->count, n / sizeof **l->ids))
                return error_no_memory(err);
        memcpy(*l->ids + *l->count, bytes.data, n);
        *l->count += n / sizeof **l->ids;
        return ST_OK;
}

static enum status visit_ids_object(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        struct ids_listing *l = context;
        bool is_old = info->modified_ms < l->before_ms;
        enum status st;

        if (!is_ids_key(key))
                return ST_OK;
        if (l->ids)
                return is_old ? ST_OK : read_ids_object(l, key, err);
        st = is_old ? storage_remove(l->place->storage, key, err) : ST_OK;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status list_ids_objects(struct ids_listing *l, struct error *err)
{
        _cleanup_free_ char *folder = make_ids_folder(l->place);

        l->before_ms = storage_now_ms(l->place->storage) - LIMIT_BATCH_ID_AGE_S * INT64_C(1000);
        return folder ? storage_list(l->place->storage, folder, "", visit_ids_object, l, err) : error_no_memory(err);
}

enum status delta_batch_ids_read(const struct delta_place *p, struct hash128 **ids, size_t *count, size_t *capacity,
                                 struct error *err)
{
        struct ids_listing l = { .place = p, .ids = ids, .count = count, .capacity = capacity };

        return list_ids_objects(&l, err);
}

enum status delta_batch_ids_expire(const struct delta_place *p, struct error *err)
{
        struct ids_listing l = { .place = p };

        return list_ids_objects(&l, err);
}
