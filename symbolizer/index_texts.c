/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index_texts.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"

struct numbering {
        struct index_write *w;
        const struct symbol_table *table;
        bool *frame_used;     /* by a range */
        struct index_texts *ret;
};

/* A table may hold functions, frames and chains that no range refers to: they are left out. */
static enum status mark_used(struct numbering *l, struct error *err)
{
        const struct symbol_table *t = l->table;

        l->frame_used = calloc((size_t)t->frame_count + 1, sizeof *l->frame_used);
        if (!l->frame_used)
                return error_no_memory(err);
        for (uint32_t i = 0; i < t->range_count; i++) {
                const struct symbol_chain *chain = &t->chains[t->ranges[i].chain];

                memset(l->frame_used + chain->first_frame, true, chain->frame_count);
        }
        return ST_OK;
}

static struct strings_item function_item(const struct symbol_table *t, const struct symbol_function *f)
{
        const char *text = t->strings + (f->linkage_name ? f->linkage_name : f->name);

        return (struct strings_item){ .text = text, .size = (uint32_t)strnlen(text, LIMIT_NAME_BYTES) };
}

static int compare_u32(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Frames name their file by string offset: the distinct offsets of those in use. Returns how many. */
static size_t file_offsets(const struct numbering *l, uint32_t *offsets)
{
        const struct symbol_table *t = l->table;
        size_t count = 0;

        for (uint32_t i = 0; i < t->frame_count; i++)
                offsets[i] = l->frame_used[i] ? t->frames[i].file : 0;
        qsort(offsets, t->frame_count, sizeof *offsets, compare_u32);
        for (uint32_t i = 0; i < t->frame_count; i++)
                if (i == 0 || offsets[i] != offsets[count - 1])
                        offsets[count++] = offsets[i];
        return count;
}

/* Every function in use; an unnamed one has the empty text. */
static void list_functions(const struct numbering *l, struct strings_item *items)
{
        const struct symbol_table *t = l->table;

        for (uint32_t i = 0; i < t->function_count; i++)
                items[i].text = "";
        for (uint32_t i = 0; i < t->frame_count; i++) {
                uint32_t function = t->frames[i].function;

                if (l->frame_used[i] && function != SYMBOL_NO_FUNCTION && !items[function].size)
                        items[function] = function_item(t, &t->functions[function]);
        }
}

static void list_files(const struct numbering *l, const uint32_t *offsets, size_t count, struct strings_item *items)
{
        for (size_t i = 0; i < count; i++) {
                items[i].text = l->table->strings + offsets[i];
                items[i].size = (uint32_t)strnlen(items[i].text, LIMIT_NAME_BYTES);
        }
}

static void take_numbers(struct numbering *l, const uint32_t *offsets, size_t file_count, const struct strings_item *items)
{
        const struct symbol_table *t = l->table;
        const struct strings_item *files = items + t->function_count;

        for (uint32_t i = 0; i < t->function_count; i++) {
                l->ret->functions[i] = items[i].number;
                l->ret->function_count += items[i].number != 0;
        }
        for (uint32_t i = 0; i < t->frame_count; i++) {
                const uint32_t *at;

                if (!l->frame_used[i])
                        continue;
                at = bsearch(&t->frames[i].file, offsets, file_count, sizeof *offsets, compare_u32);
                l->ret->files[i] = files[at - offsets].number;
        }
        for (size_t i = 0; i < file_count; i++)
                l->ret->file_count += files[i].number != 0;
}

/* The numbers of all texts in use: names of functions and paths of files go into the same pages. */
static enum status intern_texts(struct numbering *l, struct error *err)
{
        const struct symbol_table *t = l->table;
        _cleanup_free_ uint32_t *offsets = calloc((size_t)t->frame_count + 1, sizeof *offsets);
        _cleanup_free_ struct strings_item *items = NULL;
        size_t file_count;
        enum status st;

        l->ret->functions = calloc((size_t)t->function_count + 1, sizeof *l->ret->functions);
        l->ret->files = calloc((size_t)t->frame_count + 1, sizeof *l->ret->files);
        if (!offsets || !l->ret->functions || !l->ret->files)
                return error_no_memory(err);
        file_count = file_offsets(l, offsets);
        items = calloc(t->function_count + file_count + 1, sizeof *items);
        if (!items)
                return error_no_memory(err);
        list_functions(l, items);
        list_files(l, offsets, file_count, items + t->function_count);
        st = strings_intern(&l->w->index->texts, l->w, items, t->function_count + file_count, err);
        if (!st)
                take_numbers(l, offsets, file_count, items);
        return st;
}

enum status index_texts_number(struct index_write *w, const struct symbol_table *table, struct index_texts *ret,
                               struct error *err)
{
        struct numbering n = { .w = w, .table = table, .ret = ret };
        enum status st = mark_used(&n, err);

        if (!st)
                st = intern_texts(&n, err);
        free(n.frame_used);
        return st;
}

void index_texts_deinit(struct index_texts *t)
{
        free(t->functions);
        free(t->files);
}
