/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/index_explain.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-index/block.h"
#include "symbol-index/block_map.h"
#include "symbol-index/lookup_internal.h"

static enum status find_map_page(struct symbol_view *view, uint32_t object, uint64_t address, struct map_page *ret,
                                 struct error *err)
{
        struct map_key wanted = map_key_make(object, address);
        MDB_val key = { sizeof wanted.bytes, wanted.bytes }, value;
        int rc = mdb_cursor_get(view->maps, &key, &value, MDB_SET_RANGE);

        if (rc == 0 && (key.mv_size != MAP_KEY_BYTES || map_key_object(key.mv_data) != object))
                rc = MDB_NOTFOUND;
        if (rc == MDB_NOTFOUND)
                return error_set(err, ST_NOT_FOUND, "no map page contains the address");
        if (rc)
                return index_set_error(err, view->index, rc, "cannot read the index");
        return map_page_open(ret, key.mv_data, key.mv_size, value.mv_data, value.mv_size, err);
}

static enum status count_block_users(struct symbol_view *view, uint32_t number, uint32_t *ret, struct error *err)
{
        uint32_t number_be = htobe32(number), more = 0;
        MDB_val key = { sizeof number_be, &number_be }, value;
        int rc = mdb_get(view->txn, view->index->block_users, &key, &value);

        if (rc && rc != MDB_NOTFOUND)
                return index_set_error(err, view->index, rc, "cannot read the index");
        if (rc == 0 && value.mv_size == sizeof more)
                memcpy(&more, value.mv_data, sizeof more);
        *ret = le32toh(more) + 1;
        return ST_OK;
}

static enum status find_block_row(struct symbol_view *view, uint64_t address, struct index_row_found *f,
                                  struct error *err)
{
        uint32_t number_be = htobe32(f->block);
        MDB_val key = { sizeof number_be, &number_be }, value;
        _cleanup_free_ struct symbol_frame *frames = NULL;
        struct block_cursor cursor;
        struct block block;
        enum status st;
        int rc = mdb_cursor_get(view->blocks, &key, &value, MDB_SET_KEY);

        if (rc)
                return index_set_error(err, view->index, rc, "cannot read a block of the index");
        st = block_open(&block, f->block, value.mv_data, value.mv_size, err);
        if (st)
                return st;
        f->anchor = block.anchor;
        f->block_bytes = value.mv_size;
        f->block_last = f->block_start + block.span;
        f->row_count = block.row_count;
        if (address > f->block_last)
                return error_set(err, ST_NOT_FOUND, "the address is after the last one of the block");
        frames = calloc(block.node_count + 1ul, sizeof *frames);
        if (!frames)
                return error_no_memory(err);
        block_cursor_init(&cursor, &block);
        if (block_seek(&block, &cursor, address - f->block_start, &f->row, &f->row_end) ||
            block_get_frames(&block, &cursor, f->row, frames, &f->frame_count))
                return error_set(err, ST_BAD_DATA, "block %u of the index is damaged", f->block);
        f->row_end = f->row_end > block.span ? f->block_last + 1 : f->block_start + f->row_end;
        return ST_OK;
}

enum status symbol_view_explain(struct symbol_view *view, const struct build_id *id, uint64_t address,
                                struct index_row_found *ret, struct error *err)
{
        struct index_row_found f = { 0 };
        struct index_object o = { 0 };
        struct map_page page = { 0 };
        enum status st = index_object_find(view->index, view->txn, id, &o, err);

        if (!st && !o.number)
                return error_set(err, ST_NOT_FOUND, "the index has no symbols of the object");
        if (!st)
                st = find_map_page(view, o.number, address, &page, err);
        if (st)
                return st;
        f.page_last = page.last;
        f.entry_count = page.count;
        f.entry = map_page_find(&page, 0, address);
        if (f.entry == page.count)
                return error_set(err, ST_NOT_FOUND, "the address is before the page's first block");
        f.block = map_page_block(&page, f.entry);
        f.block_start = map_page_start(&page, f.entry);
        st = count_block_users(view, f.block, &f.users, err);
        if (!st)
                st = find_block_row(view, address, &f, err);
        if (!st)
                *ret = f;
        return st;
}
