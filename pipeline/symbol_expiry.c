/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/symbol_expiry.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/hash/hash_table.h"
#include "common/memory/array.h"
#include "debuginfo-store/stored_tables.h"
#include "profile-store/scan.h"
#include "symbol-index/index_expiry.h"

struct object_set {
        struct build_id *ids;
        size_t count, capacity;
        struct hash_table numbers;
        enum status failed;
        struct error error;
};

struct expiry_check {
        const struct symbol_expiry *expiry;
        struct object_set sampled;
        enum status failed; /* of reading the object store */
        struct error error;
};

static void object_set_deinit(struct object_set *s)
{
        free(s->ids);
        hash_table_deinit(&s->numbers);
}

static bool is_object_at(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct object_set *s = context;

        return s->ids[number].size == size && memcmp(s->ids[number].bytes, key, size) == 0;
}

static bool object_set_contains(const struct object_set *s, const struct build_id *id)
{
        uint32_t number;

        return hash_table_find(&s->numbers, hash_table_hash(id->bytes, id->size), is_object_at, s, id->bytes, id->size,
                               &number);
}

static void add_sampled_object(void *context, const struct build_id *id)
{
        struct object_set *s = context;

        if (s->failed || object_set_contains(s, id))
                return;
        s->failed = hash_table_reserve(&s->numbers, &s->error);
        if (!s->failed && !array_reserve(&s->ids, &s->capacity, s->count))
                s->failed = error_no_memory(&s->error);
        if (s->failed)
                return;
        hash_table_insert(&s->numbers, hash_table_hash(id->bytes, id->size), (uint32_t)s->count);
        s->ids[s->count++] = *id;
}

static enum status list_sampled_objects(const struct symbol_expiry *e, struct object_set *ret, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < e->store_count; i++) {
                struct store_scan *scan;

                st = store_scan_begin(e->stores[i], &scan, err);
                if (st)
                        return st;
                st = store_scan_lacks_tables(scan)
                             ? error_set(err, ST_OS, "the tables have not been read since the start")
                             : store_scan_visit_objects(scan, add_sampled_object, ret, err);
                store_scan_end(scan);
        }
        if (!st && ret->failed) {
                st = ret->failed;
                *err = ret->error;
        }
        return st;
}

/* After a failure every object counts as used. */
static bool is_object_used(void *context, const struct build_id *id)
{
        struct expiry_check *c = context;

        if (c->failed || object_set_contains(&c->sampled, id))
                return true;
        for (int kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
                struct stored_object object;
                enum status st =
                        debuginfo_store_stat(c->expiry->objects, id, (enum object_kind)kind, &object, &c->error);

                if (!st)
                        return true;
                if (st != ST_NOT_FOUND) {
                        c->failed = st;
                        return true;
                }
        }
        return false;
}

static bool may_proceed_with_expiry(void *context)
{
        const struct expiry_check *c = context;

        return !c->expiry->proceed || c->expiry->proceed(c->expiry->context);
}

enum status symbol_expiry_run(const struct symbol_expiry *e, int64_t now_unix_s, uint64_t *removed_ret,
                              struct error *err)
{
        struct expiry_check c = { .expiry = e };
        const struct index_expiry_options o = { .indexed_before_unix_s = now_unix_s - (int64_t)e->keep_s,
                                                .is_used = is_object_used,
                                                .proceed = may_proceed_with_expiry,
                                                .context = &c };
        uint64_t tables = 0;
        enum status st;

        *removed_ret = 0;
        st = list_sampled_objects(e, &c.sampled, err);
        if (!st)
                st = symbol_index_remove_unused(e->symbols, &o, removed_ret, err);
        if (!st)
                st = stored_table_expire(e->objects, o.indexed_before_unix_s, is_object_used, &c, &tables, err);
        object_set_deinit(&c.sampled);
        if (!st && c.failed) {
                st = c.failed;
                *err = c.error;
        }
        return st;
}
