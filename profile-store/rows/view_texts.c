/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/rows/view_texts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/rows/frame_chains.h"

#define COPIES_PER_PAGE 64

struct text_copy {
        const char *name; /* NULL: not copied yet */
        const char *linkage_name;
};

struct text_copy_page {
        struct text_copy items[COPIES_PER_PAGE];
};

enum status view_texts_init(struct view_texts *t, struct symbol_index *symbols, struct arena *a, struct error *err)
{
        *t = (struct view_texts){ .arena = a };
        arena_init_budget(&t->pages, LIMIT_FLUSH_MEMORY_BYTES, a->memory.use);
        return symbol_view_begin(symbols, &t->view, err);
}

void view_texts_deinit(struct view_texts *t)
{
        free(t->functions.pages);
        free(t->files.pages);
        arena_deinit(&t->pages);
        symbol_view_end(t->view);
        *t = (struct view_texts){ 0 };
}

static bool grow_text_copies(struct text_copies *c, uint32_t page)
{
        size_t count = (size_t)page + page / 2 + 16;
        struct text_copy_page **bigger = reallocarray(c->pages, count, sizeof *bigger);

        if (!bigger)
                return false;
        memset(bigger + c->page_count, 0, (count - c->page_count) * sizeof *bigger);
        c->pages = bigger;
        c->page_count = (uint32_t)count;
        return true;
}

static enum status get_text_copy(struct view_texts *t, struct text_copies *c, uint32_t number, struct text_copy **ret,
                                 struct error *err)
{
        uint32_t page = number / COPIES_PER_PAGE;

        if (page >= c->page_count && !grow_text_copies(c, page))
                return error_no_memory(err);
        if (!c->pages[page])
                c->pages[page] = arena_alloc(&t->pages, sizeof **c->pages);
        if (!c->pages[page])
                return report_full_arena(&t->pages, sizeof **c->pages, "names of locations", err);
        *ret = &c->pages[page]->items[number % COPIES_PER_PAGE];
        return ST_OK;
}

static enum status copy_text(struct arena *a, const char *s, const char **ret, struct error *err)
{
        size_t n = strlen(s);

        *ret = n ? arena_strndup(a, s, n) : "";
        return *ret ? ST_OK : report_full_arena(a, n + 1, "names of locations", err);
}

/* Readable and linkage names are the same pointer when nothing was mangled: copy once. */
static enum status copy_function(struct view_texts *t, uint32_t number, struct text_copy *copy, struct error *err)
{
        const char *name, *linkage_name, *name_copy, *linkage_copy;
        enum status st = symbol_view_get_function(t->view, number, &name, &linkage_name, err);

        if (!st)
                st = copy_text(t->arena, name, &name_copy, err);
        if (st)
                return st;
        linkage_copy = name_copy;
        if (linkage_name != name)
                st = copy_text(t->arena, linkage_name, &linkage_copy, err);
        if (!st)
                *copy = (struct text_copy){ name_copy, linkage_copy };
        return st;
}

static enum status copy_file(struct view_texts *t, uint32_t number, struct text_copy *copy, struct error *err)
{
        const char *path;
        enum status st = symbol_view_get_file(t->view, number, &path, err);

        return st ? st : copy_text(t->arena, path, &copy->name, err);
}

enum status view_texts_convert_frame(struct view_texts *t, const struct symbol_frame *from, struct scan_frame *frame,
                                     struct error *err)
{
        struct text_copy *function = NULL, *file = NULL;
        enum status st = get_text_copy(t, &t->functions, from->function, &function, err);

        assert(st || function);
        if (!st && !function->name)
                st = copy_function(t, from->function, function, err);
        if (!st)
                st = get_text_copy(t, &t->files, from->file, &file, err);
        assert(st || file);
        if (!st && !file->name)
                st = copy_file(t, from->file, file, err);
        if (st)
                return st;
        frame->function = function->name;
        frame->linkage_name = function->linkage_name;
        frame->file = file->name;
        frame->line = from->line;
        frame->start_line = from->start_line;
        frame->inlined = from->inlined;
        return ST_OK;
}
