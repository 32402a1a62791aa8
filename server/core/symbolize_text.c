/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/symbolize_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash/number_table.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
#include "common/text/utf8.h"

#define CACHE_LINE 64
#define PREFETCH_BYTES 192 /* covers struct rendered_text and most texts that follow it */

struct rendered_table {
        struct number_table places; /* number -> index in items */
        const struct rendered_text **items;
        size_t count, capacity;
        struct arena arena; /* holds the items and their texts */
};

struct text_cache {
        pthread_rwlock_t lock;
        struct rendered_table functions, files;
};

struct text_reader {
        struct text_cache *cache;
        struct symbol_view *view;
        struct rendered_table functions, files; /* texts missing from the cache */
        struct buf json, name, linkage;
};

static const struct rendered_text no_function = {
        .json = "\"function\":\"\",\"linkage_name\":\"\"", .json_size = 31, .name = "", .linkage = ""
};
static const struct rendered_text no_file = { .json = "\"\"", .json_size = 2, .name = "", .linkage = "" };

static void rendered_table_init(struct rendered_table *t)
{
        *t = (struct rendered_table){ 0 };
        arena_init_budget(&t->arena, LIMIT_SYMBOLIZE_TEXT_BYTES, MEMORY_CACHES);
}

static void rendered_table_deinit(struct rendered_table *t)
{
        number_table_deinit(&t->places);
        free(t->items);
        arena_deinit(&t->arena);
}

static inline const struct rendered_text *rendered_table_find(const struct rendered_table *t, uint32_t number)
{
        uint32_t place;

        return number_table_get(&t->places, number, &place) ? t->items[place] : NULL;
}

/* Add a deep copy of a text; NULL when the table is full or out of memory. */
static const struct rendered_text *rendered_table_add(struct rendered_table *t, const struct rendered_text *from)
{
        struct rendered_text *to;
        char *bytes;

        if (!array_reserve(&t->items, &t->capacity, t->count))
                return NULL;
        to = arena_alloc(&t->arena, sizeof *to + from->json_size + from->name_size + from->linkage_size);
        if (!to || !number_table_add(&t->places, from->number, (uint32_t)t->count))
                return NULL;
        bytes = (char *)(to + 1);
        *to = *from;
        to->json = memcpy(bytes, from->json, from->json_size);
        to->name = memcpy(bytes + from->json_size, from->name, from->name_size);
        to->linkage = memcpy(bytes + from->json_size + from->name_size, from->linkage, from->linkage_size);
        return t->items[t->count++] = to;
}

struct text_cache *text_cache_create(void)
{
        struct text_cache *c = calloc(1, sizeof *c);
        pthread_rwlockattr_t attr;

        if (!c)
                return NULL;
        pthread_rwlockattr_init(&attr);
        pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        pthread_rwlock_init(&c->lock, &attr);
        pthread_rwlockattr_destroy(&attr);
        rendered_table_init(&c->functions);
        rendered_table_init(&c->files);
        return c;
}

void text_cache_destroy(struct text_cache *c)
{
        if (!c)
                return;
        rendered_table_deinit(&c->functions);
        rendered_table_deinit(&c->files);
        pthread_rwlock_destroy(&c->lock);
        free(c);
}

enum status text_reader_open(struct text_cache *c, struct symbol_view *view, struct text_reader **ret,
                             struct error *err)
{
        struct text_reader *r = calloc(1, sizeof *r);

        if (!r)
                return error_no_memory(err);
        r->cache = c;
        r->view = view;
        rendered_table_init(&r->functions);
        rendered_table_init(&r->files);
        buf_init(&r->json, 8 * (LIMIT_NAME_BYTES + LIMIT_DEMANGLED_BYTES));
        buf_init(&r->name, 3 * (LIMIT_NAME_BYTES + LIMIT_DEMANGLED_BYTES) + 1);
        buf_init(&r->linkage, 3 * LIMIT_NAME_BYTES + 1);
        pthread_rwlock_rdlock(&c->lock);
        *ret = r;
        return ST_OK;
}

/* A full cache is cleared, which is cheap: frequent texts are soon cached again. */
static void merge_texts(struct rendered_table *to, const struct rendered_table *from)
{
        for (size_t i = 0; i < from->count; i++) {
                if (rendered_table_find(to, from->items[i]->number) || rendered_table_add(to, from->items[i]))
                        continue;
                rendered_table_deinit(to);
                rendered_table_init(to);
        }
}

void text_reader_close(struct text_reader *r)
{
        if (!r)
                return;
        pthread_rwlock_unlock(&r->cache->lock);
        if (r->functions.count || r->files.count) {
                pthread_rwlock_wrlock(&r->cache->lock);
                merge_texts(&r->cache->functions, &r->functions);
                merge_texts(&r->cache->files, &r->files);
                pthread_rwlock_unlock(&r->cache->lock);
        }
        rendered_table_deinit(&r->functions);
        rendered_table_deinit(&r->files);
        buf_deinit(&r->json);
        buf_deinit(&r->name);
        buf_deinit(&r->linkage);
        free(r);
}

/* Prefetch in three passes (slots, items, texts): one memory latency per pass instead of per number. */
static void prefetch_texts(const struct rendered_table *t, const uint32_t *numbers, size_t count)
{
        uint32_t places[PREFETCH_MAX];
        size_t known = 0;

        if (!t->count)
                return;
        for (size_t i = 0; i < count; i++)
                number_table_expect(&t->places, numbers[i]);
        for (size_t i = 0; i < count; i++)
                if (number_table_get(&t->places, numbers[i], &places[known]))
                        __builtin_prefetch(&t->items[places[known++]]);
        for (size_t i = 0; i < known; i++)
                for (size_t line = 0; line < PREFETCH_BYTES; line += CACHE_LINE)
                        __builtin_prefetch((const char *)t->items[places[i]] + line);
}

void text_reader_prefetch(const struct text_reader *r, const struct symbol_frame *const *frames, size_t count)
{
        uint32_t functions[PREFETCH_MAX], files[PREFETCH_MAX];

        count = count < PREFETCH_MAX ? count : PREFETCH_MAX;
        for (size_t i = 0; i < count; i++) {
                functions[i] = frames[i]->function;
                files[i] = frames[i]->file;
        }
        prefetch_texts(&r->cache->functions, functions, count);
        prefetch_texts(&r->cache->files, files, count);
}

static enum status add_rendered_text(struct text_reader *r, struct rendered_table *to, struct rendered_text *text,
                                     const struct rendered_text **ret, struct error *err)
{
        enum status st = buf_status(&r->json, err, "a name in JSON");

        if (st)
                return st;
        text->json = (const char *)r->json.data;
        text->json_size = (uint32_t)r->json.size;
        *ret = rendered_table_add(to, text);
        return *ret ? ST_OK
                    : error_set(err, ST_TOO_BIG, "the names in one piece of the answer exceed %zu bytes",
                                LIMIT_SYMBOLIZE_TEXT_BYTES);
}

enum status text_reader_get_function(struct text_reader *r, uint32_t function, const struct rendered_text **ret,
                                     struct error *err)
{
        struct rendered_text text = { .number = function };
        enum status st;

        *ret = function ? rendered_table_find(&r->cache->functions, function) : &no_function;
        if (!*ret)
                *ret = rendered_table_find(&r->functions, function);
        if (*ret)
                return ST_OK;
        st = symbol_view_get_function(r->view, function, &text.name, &text.linkage, err);
        if (st)
                return st;
        text.linkage = text.linkage == text.name ? "" : utf8_replace_invalid(text.linkage, &r->linkage);
        text.name = utf8_replace_invalid(text.name, &r->name);
        text.name_size = (uint32_t)strlen(text.name);
        text.linkage_size = (uint32_t)strlen(text.linkage);
        buf_clear(&r->json);
        buf_append_str(&r->json, "\"function\":");
        json_out_quote(&r->json, text.name, text.name_size);
        buf_append_str(&r->json, ",\"linkage_name\":");
        json_out_quote(&r->json, text.linkage, text.linkage_size);
        return add_rendered_text(r, &r->functions, &text, ret, err);
}

enum status text_reader_get_file(struct text_reader *r, uint32_t file, const struct rendered_text **ret,
                                 struct error *err)
{
        struct rendered_text text = { .number = file, .linkage = "" };
        enum status st;

        *ret = file ? rendered_table_find(&r->cache->files, file) : &no_file;
        if (!*ret)
                *ret = rendered_table_find(&r->files, file);
        if (*ret)
                return ST_OK;
        st = symbol_view_get_file(r->view, file, &text.name, err);
        if (st)
                return st;
        text.name = utf8_replace_invalid(text.name, &r->name);
        text.name_size = (uint32_t)strlen(text.name);
        buf_clear(&r->json);
        json_out_quote(&r->json, text.name, text.name_size);
        return add_rendered_text(r, &r->files, &text, ret, err);
}
