/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_index_measure_blocks() walks the map of one object. symbol_index_verify() walks all databases of the index,
 * in an order that lets each check use what was collected before: blocks (their keys ascend, so c->blocks is sorted
 * and searched by number), objects and garbage (the numbers that may have a map), then maps, anchors and reference
 * counts, which are compared with the blocks they refer to, then the totals of each block, and at last the text pages,
 * whose texts must have ids if a block refers to them.
 *
 * Damage is reported, and the walk continues; only a failure to read the database or lack of memory ends it. All reads
 * are in one transaction, and what a load leaves at any of its commits is no damage.
 */
#include "symbol-index/index_verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "symbol-index/block_bits.h"
#include "symbol-index/block_map.h"
#include "symbol-index/index_object.h"
#include "symbol-index/text_page.h"

/* ---- one object */

static enum status measure_block(struct symbol_index *index, MDB_txn *txn, uint32_t number,
                                 struct index_object_blocks *r, struct error *err)
{
        uint32_t number_be = htobe32(number);
        MDB_val key = { sizeof number_be, &number_be }, value, users;
        struct block block;
        enum status st;
        int rc = mdb_get(txn, index->blocks, &key, &value);

        if (rc)
                return error_set(err, ST_BAD_DATA, "block %u of the index cannot be read: %s", number,
                                 mdb_strerror(rc));
        st = block_open(&block, number, value.mv_data, value.mv_size, err);
        if (st)
                return st;
        block_add_sizes(&block, &r->sizes);
        r->blocks++;
        r->shared += mdb_get(txn, index->block_users, &key, &users) == 0;
        return ST_OK;
}

static enum status measure_maps(struct symbol_index *index, MDB_txn *txn, uint32_t object,
                                struct index_object_blocks *r, struct error *err)
{
        struct map_key first = map_key_make(object, 0);
        MDB_val key = { sizeof first.bytes, first.bytes }, value;
        MDB_cursor *cursor;
        enum status st = ST_OK;
        int rc = mdb_cursor_open(txn, index->maps, &cursor);

        if (rc)
                return index_set_error(err, index, rc, "cannot read the index");
        rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        while (rc == 0 && !st && key.mv_size == MAP_KEY_BYTES && map_key_object(key.mv_data) == object) {
                struct map_page page;

                st = map_page_open(&page, key.mv_data, key.mv_size, value.mv_data, value.mv_size, err);
                r->map_bytes += key.mv_size + value.mv_size;
                for (uint32_t i = 0; !st && i < page.count; i++)
                        st = measure_block(index, txn, map_page_block(&page, i), r, err);
                rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
        mdb_cursor_close(cursor);
        return st || !rc || rc == MDB_NOTFOUND ? st : index_set_error(err, index, rc, "cannot read the index");
}

enum status symbol_index_measure_blocks(struct symbol_index *index, const struct build_id *id,
                                        struct index_object_blocks *ret, struct error *err)
{
        struct index_object_blocks r = { 0 };
        struct index_object object;
        MDB_txn *txn;
        enum status st =
                index_set_error(err, index, mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn), "cannot read the index");

        if (st)
                return st;
        st = index_object_get(index, txn, id, &object, err);
        if (!st && object.number)
                st = measure_maps(index, txn, object.number, &r, err);
        mdb_txn_abort(txn);
        if (!st)
                *ret = r;
        return st;
}

/* ---- the whole index */

struct verify_state {
        struct symbol_index *index;
        struct index_verify *v;
        MDB_txn *txn;
        struct seen_block {
                uint32_t number, users, ids, anchor;
                uint64_t span;
        } * blocks; /* by number */
        size_t block_count, block_capacity;
        uint32_t *objects; /* numbers that are in use or garbage */
        size_t object_count, object_capacity;
        uint32_t last_text;
        uint8_t *text_uses; /* bit n: a block refers to text n */
        struct block_rows *rows;
};

static void __attribute__((format(printf, 2, 3))) report_problem(struct verify_state *c, const char *format, ...)
{
        char text[240];
        va_list list;

        va_start(list, format);
        vsnprintf(text, sizeof text, format, list);
        va_end(list);
        c->v->problems++;
        if (c->v->problem)
                c->v->problem(c->v->context, text);
}

static int compare_u32_numbers(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static struct seen_block *find_seen_block(struct verify_state *c, uint32_t number)
{
        return c->block_count ? bsearch(&number, c->blocks, c->block_count, sizeof *c->blocks, compare_u32_numbers)
                              : NULL;
}

/* Call visit for each entry of a database; false ends with ST_NO_MEMORY. */
static enum status visit_entries(struct verify_state *c, MDB_dbi dbi,
                                 bool (*visit)(struct verify_state *, const MDB_val *, const MDB_val *),
                                 struct error *err)
{
        MDB_val key, value;
        MDB_cursor *cursor;
        bool room = true;
        int rc = mdb_cursor_open(c->txn, dbi, &cursor);

        if (rc)
                return index_set_error(err, c->index, rc, "cannot read the index");
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0 && room;
             rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
                room = visit(c, &key, &value);
        mdb_cursor_close(cursor);
        if (!room)
                return error_no_memory(err);
        return rc == MDB_NOTFOUND ? ST_OK : index_set_error(err, c->index, rc, "cannot read the index");
}

static uint32_t decode_number(const MDB_val *key)
{
        uint32_t number = 0;

        if (key->mv_size == sizeof number)
                memcpy(&number, key->mv_data, sizeof number);
        return be32toh(number);
}

/* @return false if the index does not have that text */
static bool note_text_use(struct verify_state *c, uint32_t number)
{
        if (number > c->last_text)
                return false;
        c->text_uses[number / 8] |= (uint8_t)(1 << number % 8);
        return true;
}

static void check_text_numbers(struct verify_state *c, uint32_t block)
{
        bool ok = true;

        for (uint32_t i = 1; i <= c->rows->scope_count; i++) {
                const struct symbol_frame *f = &c->rows->scopes[i].frame;

                ok &= note_text_use(c, f->function) && note_text_use(c, f->file);
        }
        if (!ok)
                report_problem(c, "block %u names a function or file that the index does not have", block);
}

static bool visit_block(struct verify_state *c, const MDB_val *key, const MDB_val *value)
{
        uint32_t number = decode_number(key);
        struct block block;
        struct error err;

        if (!array_reserve(&c->blocks, &c->block_capacity, c->block_count))
                return false;
        c->v->blocks++;
        if (block_open(&block, number, value->mv_data, value->mv_size, &err)) {
                report_problem(c, "%s", err.text);
                block = (struct block){ 0 };
        } else if (block_unpack(&block, c->rows)) {
                report_problem(c, "block %u has inconsistent content", number);
        } else {
                check_text_numbers(c, number);
        }
        c->blocks[c->block_count++] =
                (struct seen_block){ .number = number, .anchor = block.anchor, .span = block.span };
        return true;
}

static bool visit_object(struct verify_state *c, const MDB_val *key, const MDB_val *value)
{
        struct build_id id = { 0 };
        struct index_object object;
        struct error err;

        (void)value;
        c->v->objects++;
        if (key->mv_size > sizeof id.bytes) {
                report_problem(c, "an object has a build-id of %zu bytes", key->mv_size);
                return true;
        }
        memcpy(id.bytes, key->mv_data, key->mv_size);
        id.size = (uint8_t)key->mv_size;
        if (index_object_get(c->index, c->txn, &id, &object, &err)) {
                report_problem(c, "%s", err.text);
                return true;
        }
        if (!array_reserve(&c->objects, &c->object_capacity, c->object_count))
                return false;
        c->objects[c->object_count++] = object.number;
        return true;
}

static bool visit_garbage(struct verify_state *c, const MDB_val *key, const MDB_val *value)
{
        (void)value;
        if (!array_reserve(&c->objects, &c->object_capacity, c->object_count))
                return false;
        c->objects[c->object_count++] = decode_number(key);
        return true;
}

static void check_map_entry(struct verify_state *c, const struct map_page *page, uint32_t object, uint32_t entry)
{
        uint64_t start = map_page_start(page, entry);
        uint64_t limit = entry + 1 < page->count ? map_page_start(page, entry + 1) - 1 : page->last;
        struct seen_block *block = find_seen_block(c, map_page_block(page, entry));

        if (!block) {
                report_problem(c, "object %u refers to block %u, which does not exist", object,
                               map_page_block(page, entry));
                return;
        }
        block->users++;
        if (limit < start || block->span > limit - start)
                report_problem(c, "block %u of object %u overlaps the next block", block->number, object);
}

static bool visit_map(struct verify_state *c, const MDB_val *key, const MDB_val *value)
{
        struct map_page page;
        struct error err;
        uint32_t object;

        c->v->map_pages++;
        if (map_page_open(&page, key->mv_data, key->mv_size, value->mv_data, value->mv_size, &err)) {
                report_problem(c, "%s", err.text);
                return true;
        }
        object = map_key_object(key->mv_data);
        if (!c->object_count || !bsearch(&object, c->objects, c->object_count, sizeof object, compare_u32_numbers))
                report_problem(c, "object %u has a map, but no object has that number", object);
        for (uint32_t i = 0; i < page.count; i++)
                check_map_entry(c, &page, object, i);
        return true;
}

static bool visit_anchor(struct verify_state *c, const MDB_val *key, const MDB_val *value)
{
        uint32_t halves[2] = { 0 };
        struct seen_block *block;

        (void)key;
        if (value->mv_size == sizeof halves)
                memcpy(halves, value->mv_data, sizeof halves);
        block = find_seen_block(c, be32toh(halves[1]));
        if (!block || block->anchor != be32toh(halves[0]))
                report_problem(c, "an anchor refers to block %u, which has another anchor", be32toh(halves[1]));
        else
                block->ids++;
        return true;
}

static bool visit_users(struct verify_state *c, const MDB_val *key, const MDB_val *value)
{
        struct seen_block *block = find_seen_block(c, decode_number(key));
        uint32_t users = value->mv_size == 4 ? load_le32(value->mv_data) : 0;

        if (!block || users == 0 || block->users != (uint64_t)users + 1)
                report_problem(c, "block %u has %u users and a reference count of %llu", decode_number(key),
                               block ? block->users : 0, (unsigned long long)users + 1);
        else
                c->v->shared_blocks++;
        return true;
}

static void check_block_users(struct verify_state *c)
{
        for (size_t i = 0; i < c->block_count; i++) {
                const struct seen_block *b = &c->blocks[i];
                uint32_t number_be = htobe32(b->number);
                MDB_val key = { sizeof number_be, &number_be }, users;

                if (b->users == 0)
                        report_problem(c, "block %u has no user", b->number);
                if (b->users > 1 && mdb_get(c->txn, c->index->block_users, &key, &users))
                        report_problem(c, "block %u has %u users and a reference count of 1", b->number, b->users);
                if (b->ids != 1)
                        report_problem(c, "block %u has %u anchors", b->number, b->ids);
        }
}

/* Check each text page, and that each text in use is found by its hash. */
static enum status check_strings(struct verify_state *c, struct error *err)
{
        struct string_dict_check check = {
                .strings = &c->index->texts, .txn = c->txn, .uses = c->text_uses, .last_used = c->last_text
        };
        MDB_val key, value;
        MDB_cursor *cursor;
        enum status st = text_unpacker_create(&check.unpacker, err);
        int rc;

        if (st)
                return st;
        rc = mdb_cursor_open(c->txn, check.strings->pages, &cursor);
        if (rc) {
                text_unpacker_destroy(check.unpacker);
                return index_set_error(err, c->index, rc, "cannot read the index");
        }
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0;
             rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
                struct error e;

                c->v->string_pages++;
                if (string_dict_verify_page(&check, &key, &value, &e))
                        report_problem(c, "%s", e.text);
        }
        mdb_cursor_close(cursor);
        text_unpacker_destroy(check.unpacker);
        return rc == MDB_NOTFOUND ? ST_OK : index_set_error(err, c->index, rc, "cannot read the index");
}

static enum status verify_index(struct verify_state *c, struct error *err)
{
        struct symbol_index *index = c->index;
        enum status st = string_dict_last_number(&index->texts, c->txn, &c->last_text, err);

        if (st)
                return st;
        c->text_uses = calloc(c->last_text / 8 + 1, 1);
        if (!c->text_uses)
                return error_no_memory(err);
        st = visit_entries(c, index->blocks, visit_block, err);
        if (!st)
                st = visit_entries(c, index->objects, visit_object, err);
        if (!st)
                st = visit_entries(c, index->garbage, visit_garbage, err);
        if (st)
                return st;
        if (c->object_count)
                qsort(c->objects, c->object_count, sizeof *c->objects, compare_u32_numbers);
        st = visit_entries(c, index->maps, visit_map, err);
        if (!st)
                st = visit_entries(c, index->block_ids, visit_anchor, err);
        if (!st)
                st = visit_entries(c, index->block_users, visit_users, err);
        if (st)
                return st;
        check_block_users(c);
        return check_strings(c, err);
}

enum status symbol_index_verify(struct symbol_index *index, struct index_verify *v, struct error *err)
{
        struct verify_state c = { .index = index, .v = v, .rows = malloc(sizeof *c.rows) };
        enum status st;

        v->objects = v->map_pages = v->blocks = v->shared_blocks = v->string_pages = v->problems = 0;
        if (!c.rows)
                return error_no_memory(err);
        st = index_set_error(err, index, mdb_txn_begin(index->env, NULL, MDB_RDONLY, &c.txn), "cannot read the index");
        if (!st) {
                st = verify_index(&c, err);
                mdb_txn_abort(c.txn);
        }
        free(c.blocks);
        free(c.objects);
        free(c.text_uses);
        free(c.rows);
        return st;
}
