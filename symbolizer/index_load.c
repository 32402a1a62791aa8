/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a symbol table: number its texts, write its blocks, or find those that
 * hold the same already, and a map of them under a new object number, switch
 * the build-id to that number.
 *
 * Crash safety: the new number is garbage from the first transaction until the
 * last one, which also writes the object's record; so at every commit either
 * the old symbols are in use and the new ones are garbage, or the other way
 * round. Most objects need one transaction.
 */
#include "symbolizer/index_load.h"

#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "symbolizer/index_blocks.h"
#include "symbolizer/index_map.h"
#include "symbolizer/index_object.h"
#include "symbolizer/index_texts.h"

struct load {
        const struct symbol_table *table;
        struct index_write w;
        struct index_object old, now;
        struct index_texts texts;
        struct block_builder *builder;
        struct buf block;
        struct map_builder map;
        uint32_t at;          /* range that is next */
        uint32_t matched;     /* ranges that the block found for it holds */
        struct block_frame frames[BLOCK_FRAMES_MAX];
        struct symbol_frame found[BLOCK_RECORDS_MAX + 1 + BLOCK_CHAIN];
        struct block_rows rows;
};

static enum status write_map(struct load *l, struct error *err)
{
        struct map_key key;
        size_t size;

        if (l->map.count == 0)
                return ST_OK;
        size = map_builder_finish(&l->map, l->now.number, &key);
        return index_write_put(&l->w, l->w.index->maps, key.bytes, sizeof key.bytes, l->map.page, size, MDB_APPEND, err);
}

/* Note where a block lies. With a full transaction the map page goes too: users and entries agree at each commit. */
static enum status add_to_map(struct load *l, uint64_t start, uint64_t last, uint32_t number, struct error *err)
{
        enum status st = ST_OK;

        if (!map_builder_add(&l->map, start, last, number)) {
                st = write_map(l, err);
                if (!st)
                        (void)!map_builder_add(&l->map, start, last, number);
        }
        if (!st && index_write_full(&l->w)) {
                st = write_map(l, err);
                if (!st)
                        st = index_write_renew(&l->w, err);
        }
        return st;
}

static enum status write_block(struct load *l, struct error *err)
{
        uint64_t start, last;
        uint32_t number, anchor;
        enum status st;

        if (block_builder_empty(l->builder))
                return ST_OK;
        start = block_builder_first(l->builder);
        last = block_builder_last(l->builder);
        anchor = block_builder_anchor(l->builder);
        st = index_blocks_next(&l->w, &number, err);
        if (!st)
                st = block_builder_finish(l->builder, number, &l->block, err);
        if (!st)
                st = index_blocks_put(&l->w, number, anchor, &l->block, err);
        return st ? st : add_to_map(l, start, last, number, err);
}

/* The frames of a range, with the index's numbers, in l->frames; returns their count. */
static uint32_t range_frames(struct load *l, const struct symbol_range *range)
{
        const struct symbol_table *t = l->table;
        const struct symbol_chain *chain = &t->chains[range->chain];
        uint32_t count = chain->frame_count < BLOCK_FRAMES_MAX ? chain->frame_count : BLOCK_FRAMES_MAX;

        for (uint32_t i = 0; i < count; i++) {
                const struct symbol_table_frame *f = &t->frames[chain->first_frame + i];

                l->frames[i].function = f->function == SYMBOL_NO_FUNCTION ? 0 : l->texts.functions[f->function];
                l->frames[i].file = l->texts.files[chain->first_frame + i];
                l->frames[i].line = f->line;
        }
        return count;
}

static bool row_is_range(struct load *l, uint32_t row, const struct symbol_range *range, uint64_t base)
{
        uint64_t end = row + 1 < l->rows.row_count ? l->rows.starts[row + 1] : l->rows.end;
        uint32_t count;

        if (range->start - base != l->rows.starts[row] || range->end - base != end)
                return false;
        count = block_row_frames(&l->rows, row, l->found);
        if (count != range_frames(l, range))
                return false;
        for (uint32_t i = 0; i < count; i++)
                if (l->found[i].function != l->frames[i].function || l->found[i].file != l->frames[i].file ||
                    l->found[i].line != l->frames[i].line)
                        return false;
        return true;
}

/* Whether a block holds the ranges from l->at on; l->matched tells how many. */
static bool block_matches(void *arg, const struct block *block)
{
        struct load *l = arg;
        uint64_t base = l->table->ranges[l->at].start;
        uint32_t range = l->at;

        if (block_unpack(block, &l->rows))
                return false;
        for (uint32_t row = 0; row < l->rows.row_count; row++) {
                if (l->rows.row_scopes[row] == 0)
                        continue;
                if (range == l->table->range_count || !row_is_range(l, row, &l->table->ranges[range], base))
                        return false;
                range++;
        }
        l->matched = range - l->at;
        return l->matched > 0;
}

static enum status use_block(struct load *l, uint32_t number, struct error *err)
{
        uint32_t first = l->at, last = l->at + l->matched - 1;
        enum status st = write_block(l, err);

        if (!st)
                st = index_blocks_ref(&l->w, number, err);
        l->at += l->matched;
        return st ? st : add_to_map(l, l->table->ranges[first].start, l->table->ranges[last].end - 1, number, err);
}

static enum status add_range(struct load *l, const struct symbol_range *range, uint32_t count, struct error *err)
{
        enum status st = block_builder_add(l->builder, range->start, range->end, l->frames, count, err);

        if (st != ST_BUSY)
                return st;
        st = write_block(l, err);
        return st ? st : block_builder_add(l->builder, range->start, range->end, l->frames, count, err);
}

static enum status write_ranges(struct load *l, struct error *err)
{
        enum status st = ST_OK;

        while (l->at < l->table->range_count && !st) {
                const struct symbol_range *range = &l->table->ranges[l->at];
                uint32_t count = range_frames(l, range), number;

                st = index_blocks_find(&l->w, block_anchor(range->end - range->start, l->frames, count), block_matches,
                                       l, &number, err);
                if (st)
                        break;
                if (number) {
                        st = use_block(l, number, err);
                        continue;
                }
                count = range_frames(l, range);
                st = add_range(l, range, count, err);
                l->at++;
        }
        if (!st)
                st = write_block(l, err);
        return st ? st : write_map(l, err);
}

/* Take the next object number; it is garbage until the load ends. */
static enum status take_number(struct load *l, struct error *err)
{
        struct symbol_index *index = l->w.index;
        MDB_val key = { 11, (void *)"next_object" }, value;
        uint32_t next = 1;
        enum status st;
        int rc = mdb_get(l->w.txn, index->meta, &key, &value);

        if (rc == 0 && value.mv_size == sizeof next) {
                memcpy(&next, value.mv_data, sizeof next);
                next = le32toh(next);
        } else if (rc != MDB_NOTFOUND) {
                return rc ? index_error(err, index, rc, "cannot read the index's meta record")
                          : error_set(err, ST_BAD_DATA, "index '%s' has a damaged next_object record", index->dir);
        }
        if (next == UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "index '%s' has no object number left", index->dir);
        l->now.number = next;
        next = htole32(next + 1);
        st = index_write_put(&l->w, index->meta, "next_object", 11, &next, sizeof next, 0, err);
        return st ? st : index_garbage_add(&l->w, l->now.number, err);
}

static enum status switch_over(struct load *l, struct error *err)
{
        const struct symbol_table *t = l->table;
        enum status st;

        l->now.state = OBJECT_INDEXED;
        l->now.quality = t->quality;
        snprintf(l->now.partial, sizeof l->now.partial, "%s", symbol_table_partial(t));
        l->now.range_count = t->range_count;
        l->now.chain_count = t->chain_count;
        l->now.inputs = t->inputs;
        l->now.indexed_unix_s = wall_clock_ns() / 1000000000;
        st = index_object_put(&l->w, &t->build_id, &l->now, t->segments, t->segment_count, err);
        if (!st)
                st = index_garbage_remove(&l->w, l->now.number, err);
        if (!st && l->old.number)
                st = index_garbage_add(&l->w, l->old.number, err);
        return st ? st : index_write_commit(&l->w, err);
}

static enum status load_new(struct load *l, struct error *err)
{
        struct symbol_index *index = l->w.index;
        uint64_t blocks = index_blocks_bytes(index, l->w.txn), texts;
        enum status st;

        texts = strings_bytes(&index->texts, l->w.txn);
        st = take_number(l, err);
        if (!st)
                st = index_texts_number(&l->w, l->table, &l->texts, err);
        if (!st)
                st = block_builder_create(index->block_bytes, &l->builder, err);
        if (!st)
                st = write_ranges(l, err);
        if (st)
                return st;
        texts = strings_bytes(&index->texts, l->w.txn) - texts;
        l->now.function_count = l->texts.function_count;
        l->now.file_count = l->texts.file_count;
        l->now.string_bytes = l->old.string_bytes + texts;
        l->now.block_bytes = index_blocks_bytes(index, l->w.txn) - blocks;
        return switch_over(l, err);
}

/* Better symbols are in use already: the mark goes back to "indexed", and it is noted what was read for nothing. */
static enum status keep_old(struct load *l, struct error *err)
{
        enum status st;

        l->old.state = OBJECT_INDEXED;
        l->old.inputs = l->table->inputs;
        l->old.indexed_unix_s = wall_clock_ns() / 1000000000;
        memset(l->old.reason, 0, sizeof l->old.reason);
        st = index_object_put(&l->w, &l->table->build_id, &l->old, NULL, 0, err);
        return st ? st : index_write_commit(&l->w, err);
}

/* Of the same quality, symbols that are whole are better than those that are not. */
static bool is_better(const struct index_object *old, const struct symbol_table *t)
{
        if (old->quality != t->quality)
                return old->quality > t->quality;
        return t->partial && !old->partial[0] && !old->is_of_version_1;
}

static enum status load(struct load *l, struct symbol_index *index, bool *replaced_ret, uint64_t *generation_ret,
                        struct error *err)
{
        enum status st = index_write_begin(&l->w, index, err);
        bool keep;

        if (st)
                return st;
        /* A damaged record has nothing worth keeping. */
        if (index_object_get(index, l->w.txn, &l->table->build_id, &l->old, NULL))
                l->old = (struct index_object){ 0 };
        keep = l->old.number && is_better(&l->old, l->table);
        st = keep ? keep_old(l, err) : load_new(l, err);
        index_write_abort(&l->w);
        if (st) {
                /* What was committed is garbage. */
                (void)!index_garbage_sweep(index, NULL);
                return st;
        }
        /* The load stands. If the replaced blocks can't be deleted now, the next load or open does it. */
        *replaced_ret = !keep;
        *generation_ret = keep ? l->old.number : l->now.number;
        if (!keep && l->old.number)
                (void)!index_garbage_sweep(index, NULL);
        return ST_OK;
}

enum status symbol_index_load(struct symbol_index *index, const struct symbol_table *table, bool *replaced_ret,
                              uint64_t *generation_ret, struct error *err)
{
        struct load *l;
        enum status st;

        if (index->read_only)
                return error_set(err, ST_USAGE, "index '%s' is open for reading only", index->dir);
        if (table->build_id.size == 0)
                return error_set(err, ST_BAD_DATA, "a symbol table without a build-id cannot be indexed");
        if (table->segment_count > LIMIT_ELF_SEGMENTS)
                return error_set(err, ST_TOO_BIG, "a symbol table has %u segments, more than %d", table->segment_count,
                                 LIMIT_ELF_SEGMENTS);
        st = symbol_table_check(table, err);
        if (st)
                return st;
        l = calloc(1, sizeof *l);
        if (!l)
                return error_no_memory(err);
        l->table = table;
        buf_init(&l->block, MiB(1));
        pthread_mutex_lock(&index->write_lock);
        st = load(l, index, replaced_ret, generation_ret, err);
        pthread_mutex_unlock(&index->write_lock);
        block_builder_destroy(l->builder);
        buf_deinit(&l->block);
        index_texts_deinit(&l->texts);
        free(l);
        return st;
}
