/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/range_walk.h"

#include <assert.h>
#include <stdlib.h>

#include "symbol-index/block.h"
#include "symbol-index/block_map.h"
#include "symbol-index/lookup_internal.h"

struct walk_state {
        struct range_walk *w;
        struct symbol_view *view;
        enum status (*visit)(void *context, const struct walked_range *range, bool *pause, struct error *err);
        void *context;
        bool pause;
        struct symbol_frame frames[1 + BLOCK_FRAMES_MAX + BLOCK_CHAIN];
};

enum status range_walk_init(struct range_walk *w, const struct build_id *id, struct error *err)
{
        struct block_rows *rows = malloc(sizeof *rows);

        if (!rows)
                return error_no_memory(err);
        *w = (struct range_walk){ .id = *id, .rows = rows };
        return ST_OK;
}

void range_walk_deinit(struct range_walk *w)
{
        free(w->rows);
        w->rows = NULL;
}

static enum status find_walk_object(struct range_walk *w, struct symbol_view *view, struct error *err)
{
        struct index_object object;
        enum status st = index_object_find(view->index, view->txn, &w->id, &object, err);

        if (st)
                return st;
        if (w->object && object.number != w->object)
                return error_set(err, ST_BUSY, "the object was re-indexed meanwhile; try again");
        if (object.number == 0)
                return error_set(err, ST_NOT_FOUND, "the index has no symbols of the object, it is %s",
                                 symbol_object_state_name(object.state));
        w->object = object.number;
        return ST_OK;
}

static enum status unpack_walk_block(struct walk_state *k, uint32_t number, struct error *err)
{
        uint32_t number_be = htobe32(number);
        MDB_val key = { sizeof number_be, &number_be }, value;
        struct block block;
        enum status st;
        int rc = mdb_get(k->view->txn, k->view->index->blocks, &key, &value);

        if (rc)
                return error_set(err, ST_BAD_DATA, "block %u of the index cannot be read: %s", number,
                                 mdb_strerror(rc));
        st = block_open(&block, number, value.mv_data, value.mv_size, err);
        if (st)
                return st;
        if (block_unpack(&block, k->w->rows) || k->w->rows->depth_max > BLOCK_FRAMES_MAX)
                return error_set(err, ST_BAD_DATA, "block %u of the index has inconsistent content", number);
        return ST_OK;
}

/* @param begin the block's first address. @param limit the last address before the next block. */
static enum status visit_rows(struct walk_state *k, uint64_t begin, uint64_t limit, uint32_t number, struct error *err)
{
        const struct block_rows *rows = k->w->rows;

        if (rows->end - 1 > limit - begin || limit == UINT64_MAX)
                return error_set(err, ST_BAD_DATA, "block %u of the index overlaps the next block", number);
        for (uint32_t i = 0; i < rows->row_count && !k->pause; i++) {
                uint64_t end = i + 1 < rows->row_count ? rows->starts[i + 1] : rows->end;
                struct walked_range r = { .start = begin + rows->starts[i], .end = begin + end, .frames = k->frames };
                enum status st;

                if (r.end <= k->w->next || end == rows->starts[i])
                        continue;
                r.frame_count = block_row_frames(rows, i, k->frames);
                if (r.frame_count == 0)
                        continue;
                st = k->visit(k->context, &r, &k->pause, err);
                if (st)
                        return st;
                k->w->next = r.end;
        }
        return ST_OK;
}

static enum status visit_page(struct walk_state *k, const struct map_page *page, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < page->count && !k->pause; i++) {
                uint64_t begin = map_page_start(page, i);
                uint64_t limit = i + 1 < page->count ? map_page_start(page, i + 1) - 1 : page->last;

                if (limit < k->w->next)
                        continue;
                if (limit < begin)
                        return error_set(err, ST_BAD_DATA, "a map page of the index is not in order");
                st = unpack_walk_block(k, map_page_block(page, i), err);
                if (!st)
                        st = visit_rows(k, begin, limit, map_page_block(page, i), err);
        }
        return st;
}

static enum status visit_pages(struct walk_state *k, struct error *err)
{
        struct map_key first = map_key_make(k->w->object, k->w->next);
        MDB_val key = { sizeof first.bytes, first.bytes }, value;
        enum status st = ST_OK;
        int rc = mdb_cursor_get(k->view->maps, &key, &value, MDB_SET_RANGE);

        while (!rc && key.mv_size == MAP_KEY_BYTES && map_key_object(key.mv_data) == k->w->object) {
                struct map_page page;

                st = map_page_open(&page, key.mv_data, key.mv_size, value.mv_data, value.mv_size, err);
                if (!st)
                        st = visit_page(k, &page, err);
                if (st || k->pause)
                        return st;
                rc = mdb_cursor_get(k->view->maps, &key, &value, MDB_NEXT);
        }
        if (rc && rc != MDB_NOTFOUND)
                return index_set_error(err, k->view->index, rc, "cannot read the index");
        k->w->is_done = true;
        return ST_OK;
}

enum status range_walk_continue(struct range_walk *w, struct symbol_view *view,
                                enum status (*visit)(void *context, const struct walked_range *range, bool *pause,
                                                     struct error *err),
                                void *context, struct error *err)
{
        struct walk_state k = { .w = w, .view = view, .visit = visit, .context = context };
        enum status st = find_walk_object(w, view, err);

        assert(w->rows && !w->is_done);
        return st ? st : visit_pages(&k, err);
}
