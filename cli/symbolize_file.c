/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers from an ELF file: from its symbol book, which a confined worker makes
 * or the cache has.
 *
 * Reading a whole file takes as long as some hundred thousand answers from its
 * book. So the first few who ask for a few addresses get a book of these alone;
 * from then on, and for many addresses, the whole is read and kept.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/symbol_cache.h"
#include "cli/symbolize.h"
#include "common/limits.h"
#include "symbolizer/extract_find.h"
#include "symbolizer/extract_worker.h"

#define FEW_ADDRESSES 4096
#define FEW_TIMES 3
#define SHARE_PERCENT 25 /* of the units: when those that cover the addresses are more, it is all read, and kept */
#define FRAMES_MAX (SYMBOL_BOOK_TOGETHER * (LIMIT_INLINE_DEPTH + 1ul))

struct file_source {
        char *path; /* owned; the inputs borrow it as their name */
        struct extract_inputs inputs;
        struct symbol_cache cache;
        struct symbol_book book;
        bool has_book, is_from_cache;
        unsigned few_count; /* how often a few were read */
        uint64_t few[FEW_ADDRESSES];
        struct answer_frame *frames; /* owned; of the addresses that are looked up together */
};

static void drop_book(struct file_source *s)
{
        if (s->has_book)
                symbol_book_close(&s->book);
        s->has_book = s->is_from_cache = false;
}

static void file_source_close(void *context)
{
        struct file_source *s = context;

        drop_book(s);
        symbol_cache_close(&s->cache);
        extract_inputs_close(&s->inputs);
        free(s->frames);
        free(s->path);
        free(s);
}

/* ---- the book ---- */

static int by_value(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static struct wanted sorted(struct file_source *s, const uint64_t *addresses, size_t count)
{
        struct wanted w = { .addresses = s->few, .max_percent = s->cache.directory_fd < 0 ? 100 : SHARE_PERCENT };

        if (count)
                memcpy(s->few, addresses, count * sizeof *addresses);
        qsort(s->few, count, sizeof *s->few, by_value);
        for (size_t i = 0; i < count; i++)
                if (!w.count || s->few[w.count - 1] != s->few[i])
                        s->few[w.count++] = s->few[i];
        return w;
}

static enum status read_file(struct file_source *s, const uint64_t *addresses, size_t count, struct error *err)
{
        bool other_files = false;
        struct wanted wanted;
        enum status st;

        s->inputs.wanted = NULL;
        if (count <= FEW_ADDRESSES && s->few_count < FEW_TIMES) {
                wanted = sorted(s, addresses, count);
                s->inputs.wanted = &wanted;
                s->few_count++;
        }
        st = symbol_book_extract_confined(&s->inputs, &other_files, &s->book, err);
        s->inputs.wanted = NULL;
        s->has_book = !st;
        if (!st && s->book.is_complete && !other_files)
                symbol_cache_put(&s->cache, &s->book, LIMIT_SYMBOL_CACHE_BYTES);
        return st;
}

/* A book that has the addresses. */
static enum status prepare(struct file_source *s, const uint64_t *addresses, size_t count, struct error *err)
{
        if (s->has_book && s->book.is_complete)
                return ST_OK;
        if (!s->has_book) {
                s->has_book = s->is_from_cache = symbol_cache_get(&s->cache, &s->book);
                if (s->has_book)
                        return ST_OK;
        }
        drop_book(s);
        return read_file(s, addresses, count, err);
}

/* ---- answers ---- */

static struct answer_text text(const struct symbol_book_text *t)
{
        return (struct answer_text){ t->data, t->size };
}

static enum status fill_frame(struct file_source *s, const struct symbol_book_frame *f, struct answer_frame *ret,
                              struct error *err)
{
        struct symbol_book_text readable, linkage, path;
        enum status st = symbol_book_names(&s->book, f->function, &readable, &linkage, err);

        if (!st)
                st = symbol_book_path(&s->book, f->file, &path, err);
        if (!st)
                *ret = (struct answer_frame){ .function = text(&readable), .linkage_name = text(&linkage),
                                              .file = text(&path), .line = f->line, .inlined = f->caller != 0 };
        return st;
}

/* The numbers of all frames first: their texts are then on their way from memory together. */
struct looked_up {
        struct symbol_book_frame *frames;
        size_t counts[SYMBOL_BOOK_TOGETHER];
};

static enum status look_up(struct file_source *s, const uint64_t *addresses, size_t count, struct looked_up *ret,
                           struct error *err)
{
        uint32_t first[SYMBOL_BOOK_TOGETHER];
        enum status st = symbol_book_find(&s->book, addresses, count, first, err);
        size_t n = 0;

        for (size_t i = 0; !st && i < count; i++) {
                ret->counts[i] = 0;
                for (uint32_t frame = first[i]; !st && frame && ret->counts[i] <= LIMIT_INLINE_DEPTH; n++) {
                        st = symbol_book_frame(&s->book, frame, &ret->frames[n], err);
                        if (!st)
                                frame = ret->frames[n].caller;
                        ret->counts[i]++;
                }
        }
        for (size_t i = 0; !st && i < n; i++)
                st = fill_frame(s, &ret->frames[i], &s->frames[i], err);
        return st;
}

/* The book from the cache was damaged. @param left addresses that are still to be answered, count of them now */
static enum status look_up_again(struct file_source *s, const uint64_t *addresses, size_t left, size_t count,
                                 struct looked_up *ret, struct error *err)
{
        enum status st;

        symbol_cache_drop(&s->cache);
        drop_book(s);
        st = read_file(s, addresses, left, err);
        return st ? st : look_up(s, addresses, count, ret, err);
}

static enum status file_source_ask(void *context, const uint64_t *addresses, size_t count,
                                   void (*give)(void *printer, const struct answer *), void *printer,
                                   struct error *err)
{
        struct file_source *s = context;
        _cleanup_free_ struct symbol_book_frame *frames = calloc(FRAMES_MAX, sizeof *frames);
        const char *resolved = symbol_state_name(SYMBOL_RESOLVED);
        struct looked_up found = { .frames = frames };
        enum status st = frames ? prepare(s, addresses, count, err) : error_no_memory(err);

        for (size_t done = 0; !st && done < count; done += SYMBOL_BOOK_TOGETHER) {
                size_t n = count - done < SYMBOL_BOOK_TOGETHER ? count - done : SYMBOL_BOOK_TOGETHER;
                const struct answer_frame *f = s->frames;

                st = look_up(s, addresses + done, n, &found, err);
                if (st == ST_BAD_DATA && s->is_from_cache)
                        st = look_up_again(s, addresses + done, count - done, n, &found, err);
                for (size_t i = 0; !st && i < n; f += found.counts[i++]) {
                        const struct answer a = {
                                .address = addresses[done + i], .frames = f, .frame_count = found.counts[i],
                                .state = found.counts[i] ? resolved :
                                                 symbol_state_name(symbol_book_missing(&s->book, addresses[done + i])),
                        };

                        give(printer, &a);
                }
        }
        return st;
}

static void file_source_describe(void *context, struct answer_source *source)
{
        struct file_source *s = context;

        source->quality = symbol_quality_name(s->book.quality);
        source->partial = s->book.partial[0] ? s->book.partial : NULL;
        source->origin = s->is_from_cache ? "the cache" : s->book.is_complete ? "the whole file" :
                                                              "what covers the addresses";
        if (s->book.build_id.size)
                build_id_hex(&s->book.build_id, source->build_id);
}

enum status answer_source_file(const char *path, const char *debug_directory, bool use_cache, struct answer_source *ret,
                               struct error *err)
{
        struct file_source *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->inputs = (struct extract_inputs){ .debuginfo_fd = -1, .executable_fd = -1, .altlink_fd = -1 };
        s->cache.directory_fd = -1;
        s->frames = calloc(FRAMES_MAX, sizeof *s->frames);
        s->path = strdup(path);
        st = s->frames && s->path ? extract_inputs_find(s->path, debug_directory, &s->inputs, err) : error_no_memory(err);
        if (st) {
                file_source_close(s);
                return st;
        }
        if (use_cache)
                symbol_cache_open(&s->inputs, &s->cache);
        *ret = (struct answer_source){ .context = s, .ask = file_source_ask, .describe = file_source_describe,
                                       .close = file_source_close, .is_read_late = true };
        return ST_OK;
}
