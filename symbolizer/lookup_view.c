/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/limits.h"
#include "symbolizer/demangle.h"
#include "symbolizer/index_object.h"
#include "symbolizer/lookup_cache.h"
#include "symbolizer/lookup_internal.h"
#include "symbolizer/text_page.h"

#define TEXTS_PER_PAGE 512

enum status symbol_view_begin(struct symbol_index *index, struct symbol_view **ret, struct error *err)
{
        struct symbol_view *view = calloc(1, sizeof *view);
        int rc;

        if (!view)
                return error_no_memory(err);
        view->index = index;
        view->verified = calloc(VERIFIED_SLOTS, sizeof *view->verified);
        if (!view->verified) {
                free(view);
                return error_no_memory(err);
        }
        arena_init(&view->arena, LIMIT_VIEW_TEXT_BYTES);
        buf_init(&view->scratch, LIMIT_NAME_BYTES + LIMIT_DEMANGLED_BYTES);
        view->functions.last = view->files.last = UINT32_MAX;
        rc = mdb_txn_begin(index->env, NULL, MDB_RDONLY, &view->txn);
        if (!rc)
                rc = mdb_cursor_open(view->txn, index->maps, &view->maps);
        if (!rc)
                rc = mdb_cursor_open(view->txn, index->blocks, &view->blocks);
        if (rc) {
                symbol_view_end(view);
                return index_error(err, index, rc, "cannot read the index");
        }
        *ret = view;
        return ST_OK;
}

void symbol_view_end(struct symbol_view *view)
{
        if (!view)
                return;
        if (view->maps)
                mdb_cursor_close(view->maps);
        if (view->blocks)
                mdb_cursor_close(view->blocks);
        if (view->txn)
                mdb_txn_abort(view->txn);
        lookup_known_deinit(&view->known);
        free(view->rows);
        free(view->tiles);
        free(view->verified);
        text_unpacker_destroy(view->unpacker);
        free(view->functions.pages);
        free(view->files.pages);
        buf_deinit(&view->scratch);
        arena_deinit(&view->arena);
        free(view);
}

static enum status text_too_much(struct error *err)
{
        return error_set(err, ST_TOO_BIG, "one view asked for more than %zu bytes of names", LIMIT_VIEW_TEXT_BYTES);
}

/* The entry of a number, with its text fetched. */
static enum status text_get(struct symbol_view *view, struct text_table *t, uint32_t number, struct text_entry **ret,
                            struct error *err)
{
        uint32_t page = number / TEXTS_PER_PAGE;
        struct text_entry *entry;
        enum status st;

        if (t->last == UINT32_MAX) {
                st = strings_last(&view->index->texts, view->txn, &t->last, err);
                if (st)
                        return st;
        }
        if (number > t->last)
                return error_set(err, ST_BAD_DATA, "the index has no string %u", number);
        if (!t->pages) {
                t->page_count = t->last / TEXTS_PER_PAGE + 1;
                t->pages = calloc(t->page_count, sizeof *t->pages);
                if (!t->pages)
                        return error_no_memory(err);
        }
        if (!t->pages[page])
                t->pages[page] = arena_alloc_array(&view->arena, TEXTS_PER_PAGE, sizeof **t->pages);
        if (!t->pages[page])
                return text_too_much(err);
        entry = &t->pages[page][number % TEXTS_PER_PAGE];
        if (!entry->text) {
                st = view->unpacker ? ST_OK : text_unpacker_create(&view->unpacker, err);
                if (!st)
                        st = strings_get(&view->index->texts, view->txn, view->unpacker, number, &view->scratch, err);
                if (st)
                        return st;
                entry->text = arena_strndup(&view->arena, (const char *)view->scratch.data, view->scratch.size);
                if (!entry->text)
                        return text_too_much(err);
        }
        *ret = entry;
        return ST_OK;
}

enum status symbol_view_file(struct symbol_view *view, uint32_t file, const char **path_ret, struct error *err)
{
        struct text_entry *entry;
        enum status st;

        if (file == 0) {
                *path_ret = "";
                return ST_OK;
        }
        st = text_get(view, &view->files, file, &entry, err);
        if (!st)
                *path_ret = entry->text;
        return st;
}

static enum status make_readable(struct symbol_view *view, uint32_t function, struct text_entry *entry,
                                 struct error *err)
{
        struct name_cache *cache = view->index->names;
        const char *name;

        if (!name_cache_get(cache, function, &view->scratch)) {
                name = symbol_demangle(entry->text, &view->scratch);
                if (name == entry->text) {
                        entry->readable = entry->text;
                        return ST_OK;
                }
                name_cache_put(cache, function, name, strlen(name));
        } else {
                name = buf_cstr(&view->scratch);
                if (!name)
                        return error_no_memory(err);
        }
        entry->readable = arena_strndup(&view->arena, name, strlen(name));
        return entry->readable ? ST_OK : text_too_much(err);
}

enum status symbol_view_function(struct symbol_view *view, uint32_t function, const char **name_ret,
                                 const char **linkage_name_ret, struct error *err)
{
        struct text_entry *entry;
        enum status st;

        if (function == 0) {
                *name_ret = *linkage_name_ret = "";
                return ST_OK;
        }
        st = text_get(view, &view->functions, function, &entry, err);
        if (!st && !entry->readable)
                st = make_readable(view, function, entry, err);
        if (st)
                return st;
        *name_ret = entry->readable;
        *linkage_name_ret = entry->text;
        return ST_OK;
}

static void tell(const struct index_object *o, struct symbol_object *ret)
{
        *ret = (struct symbol_object){
                .state = o->state,
                .quality = o->quality,
                .generation = o->number,
                .range_count = o->range_count,
                .function_count = o->function_count,
                .file_count = o->file_count,
                .chain_count = o->chain_count,
                .index_bytes = o->block_bytes + o->string_bytes,
                .block_bytes = o->block_bytes,
                .string_bytes = o->string_bytes,
                .indexed_unix_s = o->indexed_unix_s,
                .image_base = index_object_base(o),
                .inputs = o->inputs,
        };
        memcpy(ret->reason, o->reason, sizeof ret->reason);
        memcpy(ret->partial, o->partial, sizeof ret->partial);
}

enum status symbol_view_object(struct symbol_view *view, const struct build_id *id, struct symbol_object *ret,
                               struct error *err)
{
        struct index_object o;
        enum status st = index_object_find(view->index, view->txn, id, &o, err);

        if (!st)
                tell(&o, ret);
        return st;
}

enum status symbol_view_object_itself(struct symbol_view *view, const struct build_id *id, struct symbol_object *ret,
                                      struct error *err)
{
        struct index_object o;
        enum status st = index_object_get(view->index, view->txn, id, &o, err);

        if (!st)
                tell(&o, ret);
        return st;
}
