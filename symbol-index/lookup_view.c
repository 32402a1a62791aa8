/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "common/limits.h"
#include "symbol-index/demangle.h"
#include "symbol-index/index_object.h"
#include "symbol-index/lookup_internal.h"
#include "symbol-index/name_cache.h"
#include "symbol-index/text_page.h"

static const char *const object_state_names[] = {
        [OBJECT_ABSENT] = "absent",
        [OBJECT_PENDING] = "pending",
        [OBJECT_INDEXED] = "indexed",
        [OBJECT_FAILED] = "failed",
};

const char *symbol_object_state_name(enum symbol_object_state s)
{
        assert((unsigned)s <= OBJECT_FAILED);
        return object_state_names[s];
}

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
                return index_set_error(err, index, rc, "cannot read the index");
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
        lookup_cache_deinit(&view->known);
        if (view->rows)
                free(atomic_exchange(&view->index->spare_rows, view->rows));
        free(view->tiles);
        free(view->verified);
        text_unpacker_destroy(view->unpacker);
        free(view->functions.pages);
        free(view->files.pages);
        buf_deinit(&view->scratch);
        arena_deinit(&view->arena);
        free(view);
}

static enum status set_text_limit_error(struct error *err)
{
        return error_set(err, ST_TOO_BIG, "one view loaded more than %zu bytes of names", LIMIT_VIEW_TEXT_BYTES);
}

/* The page of entries with a number. */
static enum status get_entry_page(struct symbol_view *view, struct text_table *t, uint32_t number,
                                  struct text_entry_page **ret, struct error *err)
{
        uint32_t page = number / TEXTS_PER_PAGE;

        if (t->last == UINT32_MAX) {
                enum status st = string_dict_last_number(&view->index->texts, view->txn, &t->last, err);

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
                t->pages[page] = arena_alloc(&view->arena, sizeof **t->pages);
        if (!t->pages[page])
                return set_text_limit_error(err);
        *ret = t->pages[page];
        return ST_OK;
}

static enum status reserve_unpacker(struct symbol_view *view, struct error *err)
{
        return view->unpacker ? ST_OK : text_unpacker_create(&view->unpacker, err);
}

/* The entry of a number, with its text loaded. */
static enum status fetch_text(struct symbol_view *view, struct text_table *t, uint32_t number, struct text_entry **ret,
                              struct error *err)
{
        struct text_entry_page *page;
        struct text_entry *entry;
        enum status st = get_entry_page(view, t, number, &page, err);

        if (st)
                return st;
        entry = &page->entries[number % TEXTS_PER_PAGE];
        if (!entry->text) {
                st = reserve_unpacker(view, err);
                if (!st)
                        st = string_dict_get(&view->index->texts, view->txn, view->unpacker, number, &view->scratch,
                                             err);
                if (st)
                        return st;
                entry->text = arena_strndup(&view->arena, (const char *)view->scratch.data, view->scratch.size);
                if (!entry->text)
                        return set_text_limit_error(err);
        }
        *ret = entry;
        return ST_OK;
}

static enum status want_text(struct symbol_view *view, struct text_table *t, uint32_t number, struct error *err)
{
        struct text_entry_page *page;
        enum status st = number ? get_entry_page(view, t, number, &page, err) : ST_OK;

        if (!st && number)
                page->wanted |= UINT64_C(1) << number % TEXTS_PER_PAGE;
        return st;
}

enum status symbol_view_want_texts(struct symbol_view *view, const struct symbol_frame *frames, size_t count,
                                   struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count; i++) {
                st = want_text(view, &view->functions, frames[i].function, err);
                if (!st)
                        st = want_text(view, &view->files, frames[i].file, err);
        }
        return st;
}

/* Load a wanted text; *page_ret is the dictionary page read last. */
static enum status load_wanted_text(struct symbol_view *view, struct text_entry *entry, uint32_t number,
                                    struct text_page **page_ret, struct error *err)
{
        const struct text_page *page = *page_ret;
        const char *text;
        uint32_t size;

        if (!page || number > page->last || page->last - number >= page->count) {
                enum status st;

                free(steal_ptr(*page_ret));
                st = string_dict_get_page(&view->index->texts, view->txn, view->unpacker, number, page_ret, err);
                if (st)
                        return st;
                page = *page_ret;
        }
        text = text_page_get(page, page->count - 1 - (page->last - number), &size);
        entry->text = arena_strndup(&view->arena, text, size);
        return entry->text ? ST_OK : set_text_limit_error(err);
}

static enum status load_wanted_texts(struct symbol_view *view, struct text_table *t, struct error *err)
{
        _cleanup_free_ struct text_page *page = NULL;
        enum status st = reserve_unpacker(view, err);

        for (uint32_t i = 0; !st && t->pages && i < t->page_count; i++) {
                struct text_entry_page *p = t->pages[i];

                for (; !st && p && p->wanted; p->wanted &= p->wanted - 1) {
                        uint32_t at = (uint32_t)__builtin_ctzll(p->wanted);

                        if (!p->entries[at].text)
                                st = load_wanted_text(view, &p->entries[at], i * TEXTS_PER_PAGE + at, &page, err);
                }
        }
        return st;
}

enum status symbol_view_load_texts(struct symbol_view *view, struct error *err)
{
        enum status st = load_wanted_texts(view, &view->functions, err);

        return st ? st : load_wanted_texts(view, &view->files, err);
}

enum status symbol_view_get_file(struct symbol_view *view, uint32_t file, const char **path_ret, struct error *err)
{
        struct text_entry *entry;
        enum status st;

        if (file == 0) {
                *path_ret = "";
                return ST_OK;
        }
        st = fetch_text(view, &view->files, file, &entry, err);
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
        return entry->readable ? ST_OK : set_text_limit_error(err);
}

enum status symbol_view_get_function(struct symbol_view *view, uint32_t function, const char **name_ret,
                                     const char **linkage_name_ret, struct error *err)
{
        struct text_entry *entry;
        enum status st;

        if (function == 0) {
                *name_ret = *linkage_name_ret = "";
                return ST_OK;
        }
        st = fetch_text(view, &view->functions, function, &entry, err);
        if (!st && !entry->readable)
                st = make_readable(view, function, entry, err);
        if (st)
                return st;
        *name_ret = entry->readable;
        *linkage_name_ret = entry->text;
        return ST_OK;
}

static void describe_object(const struct index_object *o, struct symbol_object *ret)
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

enum status symbol_view_get_object(struct symbol_view *view, const struct build_id *id, struct symbol_object *ret,
                                   struct error *err)
{
        struct index_object o;
        enum status st = index_object_find(view->index, view->txn, id, &o, err);

        if (!st)
                describe_object(&o, ret);
        return st;
}

enum status symbol_view_get_object_unaliased(struct symbol_view *view, const struct build_id *id,
                                             struct symbol_object *ret, struct error *err)
{
        struct index_object o;
        enum status st = index_object_get(view->index, view->txn, id, &o, err);

        if (!st)
                describe_object(&o, ret);
        return st;
}

enum status symbol_view_find_objects(struct symbol_view *view, const void *prefix, size_t n, struct build_id *ids,
                                     size_t max, size_t *count_ret, struct error *err)
{
        MDB_val key = { n, (void *)(uintptr_t)prefix }, value;
        size_t count = 0;
        MDB_cursor *cursor;
        int rc = mdb_cursor_open(view->txn, view->index->objects, &cursor);

        if (rc)
                return index_set_error(err, view->index, rc, "cannot read the objects of the index");
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); !rc && count < max;
             rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
                if (key.mv_size < n || memcmp(key.mv_data, prefix, n) != 0)
                        break;
                count += build_id_from_bytes(&ids[count], key.mv_data, key.mv_size);
        }
        mdb_cursor_close(cursor);
        if (rc && rc != MDB_NOTFOUND)
                return index_set_error(err, view->index, rc, "cannot read the objects of the index");
        *count_ret = count;
        return ST_OK;
}
