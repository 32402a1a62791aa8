/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a symbol table: intern its texts, write its blocks (or share equal existing ones) and a map of them under a new
 * object number, then switch the build-id to that number.
 *
 * Crash safety: the new number is garbage from the first transaction until the
 * last one, which also writes the object's record; so at every commit either
 * the old symbols are in use and the new ones are garbage, or vice versa.
 * Most objects need one transaction.
 */
#include "symbol-index/index_load.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "symbol-index/index_blocks.h"
#include "symbol-index/block_map.h"
#include "symbol-index/index_object.h"

/* ---- numbers of the texts of a table ---- */

struct table_texts {
        uint32_t *functions;                 /* number of each function of the table; 0 if it is unused */
        uint32_t *files;                     /* number of each frame's file */
        uint64_t function_count, file_count; /* used names and paths */
};

struct text_numbering {
        struct index_write *w;
        const struct symbol_table *table;
        bool *frame_used; /* used by a range */
        struct table_texts *ret;
};

/* Functions, frames and chains without a range are left out. */
static enum status mark_used_frames(struct text_numbering *n, struct error *err)
{
        const struct symbol_table *t = n->table;

        n->frame_used = calloc((size_t)t->frame_count + 1, sizeof *n->frame_used);
        if (!n->frame_used)
                return error_no_memory(err);
        for (uint32_t i = 0; i < t->range_count; i++) {
                const struct symbol_chain *chain = &t->chains[t->ranges[i].chain];

                memset(n->frame_used + chain->first_frame, true, chain->frame_count);
        }
        return ST_OK;
}

static struct string_dict_item make_function_item(const struct symbol_table *t, const struct symbol_function *f)
{
        const char *text = t->strings + (f->linkage_name ? f->linkage_name : f->name);

        return (struct string_dict_item){ .text = text, .size = (uint32_t)strnlen(text, LIMIT_NAME_BYTES) };
}

static int compare_u32(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Collect the distinct file offsets of used frames; returns their number. */
static size_t collect_file_offsets(const struct text_numbering *n, uint32_t *offsets)
{
        const struct symbol_table *t = n->table;
        size_t count = 0;

        for (uint32_t i = 0; i < t->frame_count; i++)
                offsets[i] = n->frame_used[i] ? t->frames[i].file : 0;
        qsort(offsets, t->frame_count, sizeof *offsets, compare_u32);
        for (uint32_t i = 0; i < t->frame_count; i++)
                if (i == 0 || offsets[i] != offsets[count - 1])
                        offsets[count++] = offsets[i];
        return count;
}

/* List all used functions; an unnamed one has the empty text. */
static void list_used_functions(const struct text_numbering *n, struct string_dict_item *items)
{
        const struct symbol_table *t = n->table;

        for (uint32_t i = 0; i < t->function_count; i++)
                items[i].text = "";
        for (uint32_t i = 0; i < t->frame_count; i++) {
                uint32_t function = t->frames[i].function;

                if (n->frame_used[i] && function != SYMBOL_NO_FUNCTION && !items[function].size)
                        items[function] = make_function_item(t, &t->functions[function]);
        }
}

static void list_used_files(const struct text_numbering *n, const uint32_t *offsets, size_t count,
                            struct string_dict_item *items)
{
        for (size_t i = 0; i < count; i++) {
                items[i].text = n->table->strings + offsets[i];
                items[i].size = (uint32_t)strnlen(items[i].text, LIMIT_NAME_BYTES);
        }
}

/* Functions with one name that are declared in several places share their number. */
static uint64_t count_distinct_numbers(const struct string_dict_item *items, size_t count, uint32_t *scratch)
{
        uint64_t distinct = 0;

        for (size_t i = 0; i < count; i++)
                scratch[i] = items[i].number;
        qsort(scratch, count, sizeof *scratch, compare_u32);
        for (size_t i = 0; i < count; i++)
                distinct += scratch[i] != 0 && (i == 0 || scratch[i] != scratch[i - 1]);
        return distinct;
}

static void store_text_numbers(struct text_numbering *n, const uint32_t *offsets, size_t file_count,
                               const struct string_dict_item *items)
{
        const struct symbol_table *t = n->table;
        const struct string_dict_item *files = items + t->function_count;

        n->ret->function_count = count_distinct_numbers(items, t->function_count, n->ret->functions);
        for (uint32_t i = 0; i < t->function_count; i++)
                n->ret->functions[i] = items[i].number;
        for (uint32_t i = 0; i < t->frame_count; i++) {
                const uint32_t *at;

                if (!n->frame_used[i])
                        continue;
                at = bsearch(&t->frames[i].file, offsets, file_count, sizeof *offsets, compare_u32);
                n->ret->files[i] = files[at - offsets].number;
        }
        for (size_t i = 0; i < file_count; i++)
                n->ret->file_count += files[i].number != 0;
}

/* Intern all used texts; function names and file paths share pages. */
static enum status intern_texts(struct text_numbering *n, struct error *err)
{
        const struct symbol_table *t = n->table;
        _cleanup_free_ uint32_t *offsets = calloc((size_t)t->frame_count + 1, sizeof *offsets);
        _cleanup_free_ struct string_dict_item *items = NULL;
        size_t file_count;
        enum status st;

        n->ret->functions = calloc((size_t)t->function_count + 1, sizeof *n->ret->functions);
        n->ret->files = calloc((size_t)t->frame_count + 1, sizeof *n->ret->files);
        if (!offsets || !n->ret->functions || !n->ret->files)
                return error_no_memory(err);
        file_count = collect_file_offsets(n, offsets);
        items = calloc(t->function_count + file_count + 1, sizeof *items);
        if (!items)
                return error_no_memory(err);
        list_used_functions(n, items);
        list_used_files(n, offsets, file_count, items + t->function_count);
        st = string_dict_intern(&n->w->index->texts, n->w, items, t->function_count + file_count, err);
        if (!st)
                store_text_numbers(n, offsets, file_count, items);
        return st;
}

static enum status number_table_texts(struct index_write *w, const struct symbol_table *table, struct table_texts *ret,
                                      struct error *err)
{
        struct text_numbering n = { .w = w, .table = table, .ret = ret };
        enum status st = mark_used_frames(&n, err);

        if (!st)
                st = intern_texts(&n, err);
        free(n.frame_used);
        return st;
}

static void deinit_table_texts(struct table_texts *t)
{
        free(t->functions);
        free(t->files);
}

/* ---- blocks and maps ---- */

struct index_load {
        const struct symbol_table *table;
        struct index_write w;
        struct index_object old, now;
        struct table_texts texts;
        struct block_builder *builder;
        struct buf block;
        struct map_builder map;
        uint32_t at;      /* next range */
        uint32_t matched; /* number of ranges matched by the block that was found */
        struct block_frame frames[BLOCK_FRAMES_MAX];
        struct symbol_frame found[BLOCK_RECORDS_MAX + 1 + BLOCK_CHAIN];
        struct block_rows rows;
};

static enum status write_map_page(struct index_load *l, struct error *err)
{
        struct map_key key;
        size_t size;

        if (l->map.count == 0)
                return ST_OK;
        size = map_builder_finish(&l->map, l->now.number, &key);
        return index_write_put(&l->w, l->w.index->maps,
                               &(struct index_record){ key.bytes, sizeof key.bytes, l->map.page, size }, MDB_APPEND,
                               err);
}

/* Add a block to the map. A full transaction also writes the map page: reference counts match entries at each commit.
 */
static enum status add_to_map(struct index_load *l, uint64_t start, uint64_t last, uint32_t number, struct error *err)
{
        enum status st = ST_OK;

        if (!map_builder_add(&l->map, start, last, number)) {
                st = write_map_page(l, err);
                if (!st)
                        (void)!map_builder_add(&l->map, start, last, number);
        }
        if (!st && index_write_is_full(&l->w)) {
                st = write_map_page(l, err);
                if (!st)
                        st = index_write_renew(&l->w, err);
        }
        return st;
}

static enum status finish_block(struct index_load *l, struct error *err)
{
        uint64_t start, last;
        uint32_t number, anchor;
        enum status st;

        if (block_builder_is_empty(l->builder))
                return ST_OK;
        start = block_builder_first_address(l->builder);
        last = block_builder_last_address(l->builder);
        anchor = block_builder_anchor(l->builder);
        st = index_blocks_next_number(&l->w, &number, err);
        if (!st)
                st = block_builder_finish(l->builder, number, &l->block, err);
        if (!st)
                st = index_blocks_put(&l->w, number, anchor, &l->block, err);
        return st ? st : add_to_map(l, start, last, number, err);
}

/* Translate the frames of a range to index numbers in l->frames; returns their count. */
static uint32_t collect_range_frames(struct index_load *l, const struct symbol_range *range)
{
        const struct symbol_table *t = l->table;
        const struct symbol_chain *chain = &t->chains[range->chain];
        uint32_t count = chain->frame_count < BLOCK_FRAMES_MAX ? chain->frame_count : BLOCK_FRAMES_MAX;

        for (uint32_t i = 0; i < count; i++) {
                const struct symbol_table_frame *f = &t->frames[chain->first_frame + i];

                l->frames[i].function = f->function == SYMBOL_NO_FUNCTION ? 0 : l->texts.functions[f->function];
                l->frames[i].file = l->texts.files[chain->first_frame + i];
                l->frames[i].line = f->line;
                l->frames[i].start_line = symbol_table_start_line(t, f);
                if (l->frames[i].start_line > BLOCK_START_LINE_MAX)
                        l->frames[i].start_line = 0;
        }
        return count;
}

static bool row_equals_range(struct index_load *l, uint32_t row, const struct symbol_range *range, uint64_t base)
{
        uint64_t end = row + 1 < l->rows.row_count ? l->rows.starts[row + 1] : l->rows.end;
        uint32_t count;

        if (range->start - base != l->rows.starts[row] || range->end - base != end)
                return false;
        count = block_row_frames(&l->rows, row, l->found);
        if (count != collect_range_frames(l, range))
                return false;
        for (uint32_t i = 0; i < count; i++)
                if (l->found[i].function != l->frames[i].function || l->found[i].file != l->frames[i].file ||
                    l->found[i].line != l->frames[i].line || l->found[i].start_line != l->frames[i].start_line)
                        return false;
        return true;
}

/* True if a block equals the ranges from l->at on; sets l->matched to their number. */
static bool match_block(void *arg, const struct block *block)
{
        struct index_load *l = arg;
        uint64_t base = l->table->ranges[l->at].start;
        uint32_t range = l->at;

        if (block_unpack(block, &l->rows))
                return false;
        for (uint32_t row = 0; row < l->rows.row_count; row++) {
                if (l->rows.row_scopes[row] == 0)
                        continue;
                if (range == l->table->range_count || !row_equals_range(l, row, &l->table->ranges[range], base))
                        return false;
                range++;
        }
        l->matched = range - l->at;
        return l->matched > 0;
}

static enum status share_block(struct index_load *l, uint32_t number, struct error *err)
{
        uint32_t first = l->at, last = l->at + l->matched - 1;
        enum status st = finish_block(l, err);

        if (!st)
                st = index_blocks_ref(&l->w, number, err);
        l->at += l->matched;
        return st ? st : add_to_map(l, l->table->ranges[first].start, l->table->ranges[last].end - 1, number, err);
}

static enum status add_range_to_block(struct index_load *l, const struct symbol_range *range, uint32_t count,
                                      struct error *err)
{
        enum status st = block_builder_add(l->builder, range->start, range->end, l->frames, count, err);

        if (st != ST_BUSY)
                return st;
        st = finish_block(l, err);
        return st ? st : block_builder_add(l->builder, range->start, range->end, l->frames, count, err);
}

static enum status write_ranges(struct index_load *l, struct error *err)
{
        enum status st = ST_OK;

        while (l->at < l->table->range_count && !st) {
                const struct symbol_range *range = &l->table->ranges[l->at];
                uint32_t count = collect_range_frames(l, range), number;

                st = index_blocks_find(&l->w, block_compute_anchor(range->end - range->start, l->frames, count),
                                       match_block, l, &number, err);
                if (st)
                        break;
                if (number) {
                        st = share_block(l, number, err);
                        continue;
                }
                count = collect_range_frames(l, range);
                st = add_range_to_block(l, range, count, err);
                l->at++;
        }
        if (!st)
                st = finish_block(l, err);
        return st ? st : write_map_page(l, err);
}

/* Allocate an object number, marked as garbage until the load completes. */
static enum status allocate_object_number(struct index_load *l, struct error *err)
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
                return rc ? index_set_error(err, index, rc, "cannot read the index's meta record")
                          : error_set(err, ST_BAD_DATA, "index '%s' has a damaged next_object record", index->dir);
        }
        if (next == UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "index '%s' has no object number left", index->dir);
        l->now.number = next;
        next = htole32(next + 1);
        st = index_write_put(&l->w, index->meta, &(struct index_record){ "next_object", 11, &next, sizeof next }, 0,
                             err);
        return st ? st : index_garbage_add(&l->w, l->now.number, err);
}

static enum status publish_symbols(struct index_load *l, struct error *err)
{
        const struct symbol_table *t = l->table;
        enum status st;

        l->now.state = OBJECT_INDEXED;
        l->now.quality = t->quality;
        snprintf(l->now.partial, sizeof l->now.partial, "%s", symbol_table_partial_text(t));
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

static enum status load_symbols(struct index_load *l, struct error *err)
{
        struct symbol_index *index = l->w.index;
        uint64_t blocks = index_blocks_count_bytes(index, l->w.txn), texts;
        enum status st;

        texts = string_dict_count_bytes(&index->texts, l->w.txn);
        st = allocate_object_number(l, err);
        if (!st)
                st = number_table_texts(&l->w, l->table, &l->texts, err);
        if (!st)
                st = block_builder_create(index->block_bytes, &l->builder, err);
        if (!st)
                st = write_ranges(l, err);
        if (st)
                return st;
        texts = string_dict_count_bytes(&index->texts, l->w.txn) - texts;
        l->now.function_count = l->texts.function_count;
        l->now.file_count = l->texts.file_count;
        l->now.string_bytes = l->old.string_bytes + texts;
        l->now.block_bytes = index_blocks_count_bytes(index, l->w.txn) - blocks;
        return publish_symbols(l, err);
}

/* Keep better symbols: the state returns to "indexed", and the files that were read are recorded. */
static enum status keep_existing_symbols(struct index_load *l, struct error *err)
{
        enum status st;

        l->old.state = OBJECT_INDEXED;
        l->old.inputs = l->table->inputs;
        l->old.indexed_unix_s = wall_clock_ns() / 1000000000;
        memset(l->old.reason, 0, sizeof l->old.reason);
        st = index_object_put(&l->w, &l->table->build_id, &l->old, NULL, 0, err);
        return st ? st : index_write_commit(&l->w, err);
}

static bool is_existing_better(const struct index_object *old, const struct symbol_table *t)
{
        return symbol_quality_is_better(old->quality, old->partial[0] != 0, t->quality, t->partial != 0);
}

static enum status load_or_keep(struct index_load *l, struct symbol_index *index, bool *replaced_ret,
                                uint64_t *generation_ret, struct error *err)
{
        enum status st = index_write_begin(&l->w, index, err);
        bool keep;

        if (st)
                return st;
        /* A damaged record is replaced. */
        if (index_object_get(index, l->w.txn, &l->table->build_id, &l->old, NULL))
                l->old = (struct index_object){ 0 };
        keep = l->old.number && is_existing_better(&l->old, l->table);
        st = keep ? keep_existing_symbols(l, err) : load_symbols(l, err);
        index_write_abort(&l->w);
        if (st) {
                /* Committed parts are garbage. */
                (void)!index_garbage_sweep(index, NULL);
                return st;
        }
        /* The load is committed. If the sweep fails, the next load or open repeats it. */
        *replaced_ret = !keep;
        *generation_ret = keep ? l->old.number : l->now.number;
        if (!keep && l->old.number)
                (void)!index_garbage_sweep(index, NULL);
        return ST_OK;
}

enum status symbol_index_load(struct symbol_index *index, const struct symbol_table *table, bool *replaced_ret,
                              uint64_t *generation_ret, struct error *err)
{
        struct index_load *l;
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
        st = load_or_keep(l, index, replaced_ret, generation_ret, err);
        pthread_mutex_unlock(&index->write_lock);
        block_builder_destroy(l->builder);
        buf_deinit(&l->block);
        deinit_table_texts(&l->texts);
        free(l);
        return st;
}
