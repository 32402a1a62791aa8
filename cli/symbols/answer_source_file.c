/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves addresses of an ELF file with its symcache, which comes from the cache or from a confined worker.
 *
 * Reading a whole file takes as long as some hundred thousand lookups. So the first few calls with few addresses read
 * only the units that cover them; later calls, and calls with many addresses, read the whole file and cache the result.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/symbols/answer_source.h"
#include "cli/symbols/embedded_texts.h"
#include "cli/symbols/named_file.h"
#include "cli/symbols/symbol_cache.h"
#include "common/limits.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/workers/extract_worker.h"

#define FEW_ADDRESSES 4096
#define FEW_TIMES 3
#define SHARE_PERCENT 25 /* of the units; if more cover the addresses, the whole file is read and cached */
#define FRAMES_MAX (SYMCACHE_LOOKUP_BATCH * (LIMIT_INLINE_DEPTH + 1ul))

struct file_source {
        char *path; /* owned; borrowed by inputs */
        struct extract_inputs inputs;
        struct symbol_cache cache;
        struct symcache symcache;
        bool has_book, is_from_cache;
        unsigned few_count; /* partial reads so far */
        uint64_t few[FEW_ADDRESSES];
        struct answer_frame *frames;   /* owned; of one batch of lookups */
        struct answer_detail *details; /* owned; of the same; NULL: not wanted */
        struct embedded_texts texts;
};

static void drop_symcache(struct file_source *s)
{
        if (s->has_book)
                symcache_close(&s->symcache);
        s->has_book = s->is_from_cache = false;
}

static void file_source_close(void *context)
{
        struct file_source *s = context;

        drop_symcache(s);
        symbol_cache_close(&s->cache);
        extract_inputs_close(&s->inputs);
        embedded_texts_deinit(&s->texts);
        free(s->frames);
        free(s->details);
        free(s->path);
        free(s);
}

/* ---- the symcache ---- */

static int compare_addresses(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static struct address_filter sort_addresses(struct file_source *s, const uint64_t *addresses, size_t count)
{
        struct address_filter w = { .addresses = s->few,
                                    .max_percent = s->cache.directory_fd < 0 ? 100 : SHARE_PERCENT };

        if (count)
                memcpy(s->few, addresses, count * sizeof *addresses);
        qsort(s->few, count, sizeof *s->few, compare_addresses);
        for (size_t i = 0; i < count; i++)
                if (!w.count || s->few[w.count - 1] != s->few[i])
                        s->few[w.count++] = s->few[i];
        return w;
}

static enum status read_symcache(struct file_source *s, const uint64_t *addresses, size_t count, struct error *err)
{
        bool other_files = false;
        struct address_filter filter;
        enum status st;

        s->inputs.filter = NULL;
        if (count <= FEW_ADDRESSES && s->few_count < FEW_TIMES) {
                filter = sort_addresses(s, addresses, count);
                s->inputs.filter = &filter;
                s->few_count++;
        }
        st = symcache_extract_confined(&s->inputs, &other_files, &s->symcache, err);
        s->inputs.filter = NULL;
        s->has_book = !st;
        if (!st && s->symcache.is_complete && !other_files)
                symbol_cache_put(&s->cache, &s->symcache, LIMIT_SYMBOL_CACHE_BYTES);
        return st;
}

/* Ensure that a symcache with these addresses is open. */
static enum status ensure_symcache(struct file_source *s, const uint64_t *addresses, size_t count, struct error *err)
{
        if (s->has_book && s->symcache.is_complete)
                return ST_OK;
        if (!s->has_book) {
                s->has_book = s->is_from_cache = symbol_cache_get(&s->cache, &s->symcache);
                if (s->has_book)
                        return ST_OK;
        }
        drop_symcache(s);
        return read_symcache(s, addresses, count, err);
}

/* ---- answers ---- */

static struct answer_text answer_text_of(const struct symcache_text *t)
{
        return (struct answer_text){ t->data, t->size, t->is_plain };
}

static enum status fill_answer_frame(struct file_source *s, const struct symcache_frame *f, struct answer_frame *ret,
                                     struct error *err)
{
        struct symcache_text readable, linkage, path;
        enum status st = symcache_get_names(&s->symcache, f->function, &readable, &linkage, err);

        if (!st)
                st = symcache_get_path(&s->symcache, f->file, &path, err);
        if (!st)
                *ret = (struct answer_frame){ .function = answer_text_of(&readable),
                                              .linkage_name = answer_text_of(&linkage),
                                              .file = answer_text_of(&path),
                                              .line = f->line,
                                              .inlined = f->caller != 0 };
        return st;
}

static enum status fill_answer_detail(struct file_source *s, uint32_t frame, struct answer_detail *ret,
                                      struct error *err)
{
        struct symcache_text start = { .data = "", .is_plain = true };
        struct symcache_frame_detail d;
        enum status st = symcache_get_detail(&s->symcache, frame, &d, err);

        if (!st && d.start_file)
                st = symcache_get_path(&s->symcache, d.start_file, &start, err);
        if (!st)
                *ret = (struct answer_detail){ .column = d.column,
                                               .discriminator = d.discriminator,
                                               .start_file = answer_text_of(&start),
                                               .start_line = d.start_line,
                                               .entry = d.entry };
        return st;
}

/* Two passes: the first prefetches the texts that the second reads. */
struct looked_up {
        struct symcache_frame *frames;
        size_t counts[SYMCACHE_LOOKUP_BATCH];
};

static enum status look_up_addresses(struct file_source *s, const uint64_t *addresses, size_t count,
                                     struct looked_up *ret, struct error *err)
{
        uint32_t first[SYMCACHE_LOOKUP_BATCH];
        enum status st = symcache_find(&s->symcache, addresses, count, first, err);
        size_t n = 0;

        assert(count <= SYMCACHE_LOOKUP_BATCH);
        for (size_t i = 0; !st && i < count; i++) {
                ret->counts[i] = 0;
                for (uint32_t frame = first[i]; !st && frame && ret->counts[i] <= LIMIT_INLINE_DEPTH; n++) {
                        st = symcache_get_frame(&s->symcache, frame, &ret->frames[n], err);
                        if (!st && s->details)
                                st = fill_answer_detail(s, frame, &s->details[n], err);
                        if (!st)
                                frame = ret->frames[n].caller;
                        ret->counts[i]++;
                }
        }
        for (size_t i = 0; !st && i < n; i++)
                st = fill_answer_frame(s, &ret->frames[i], &s->frames[i], err);
        return st;
}

/* The cached symcache was damaged: read the file. @param left  unanswered addresses, of which count are looked up now
 */
static enum status look_up_after_damage(struct file_source *s, const uint64_t *addresses, size_t left, size_t count,
                                        struct looked_up *ret, struct error *err)
{
        enum status st;

        symbol_cache_drop(&s->cache);
        drop_symcache(s);
        st = read_symcache(s, addresses, left, err);
        return st ? st : look_up_addresses(s, addresses, count, ret, err);
}

static enum status file_source_ask(void *context, const uint64_t *addresses, size_t count,
                                   void (*give)(void *printer, const struct answer *), void *printer, struct error *err)
{
        struct file_source *s = context;
        _cleanup_free_ struct symcache_frame *frames = calloc(FRAMES_MAX, sizeof *frames);
        const char *resolved = symbol_state_name(SYMBOL_RESOLVED);
        struct looked_up found = { .frames = frames };
        enum status st = frames ? ensure_symcache(s, addresses, count, err) : error_no_memory(err);

        for (size_t done = 0; !st && done < count; done += SYMCACHE_LOOKUP_BATCH) {
                size_t n = count - done < SYMCACHE_LOOKUP_BATCH ? count - done : SYMCACHE_LOOKUP_BATCH;
                const struct answer_frame *f = s->frames;

                st = look_up_addresses(s, addresses + done, n, &found, err);
                if (st == ST_BAD_DATA && s->is_from_cache)
                        st = look_up_after_damage(s, addresses + done, count - done, n, &found, err);
                for (size_t i = 0; !st && i < n; f += found.counts[i++]) {
                        const struct answer a = {
                                .address = addresses[done + i],
                                .frames = f,
                                .details = s->details ? s->details + (f - s->frames) : NULL,
                                .frame_count = found.counts[i],
                                .state = found.counts[i] ? resolved
                                                         : symbol_state_name(symcache_gap_state(&s->symcache,
                                                                                                addresses[done + i])),
                        };

                        give(printer, &a);
                }
        }
        return st;
}

static enum status file_source_list_variables(void *context, uint64_t address, struct buf *report, struct error *err)
{
        struct file_source *s = context;
        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };
        enum status st;

        s->inputs.filter = &filter;
        st = variables_extract_confined(&s->inputs, report, err);
        s->inputs.filter = NULL;
        return st;
}

static enum status file_source_find_text(void *context, uint64_t address, const char *path, struct answer_text *ret,
                                         struct error *err)
{
        struct file_source *s = context;

        return embedded_texts_find(&s->texts, &s->inputs, address, path, ret, err);
}

static void file_source_describe(void *context, struct answer_source *source)
{
        struct file_source *s = context;

        source->quality = symbol_quality_name(s->symcache.quality);
        source->partial = s->symcache.partial[0] ? s->symcache.partial : NULL;
        source->origin = s->is_from_cache          ? "the cache"
                         : s->symcache.is_complete ? "the whole file"
                                                   : "the units that cover the addresses";
        if (s->symcache.build_id.size)
                build_id_hex(&s->symcache.build_id, source->build_id);
}

enum status answer_source_file(const char *path, const struct debug_file_search *search, bool use_cache,
                               enum answer_content content, struct answer_source *ret, struct error *err)
{
        const bool with_details = content != ANSWER_LINES;
        struct file_source *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->inputs = (struct extract_inputs){ .debuginfo_fd = -1, .executable_fd = -1, .altlink_fd = -1 };
        s->cache.directory_fd = -1;
        s->frames = calloc(FRAMES_MAX, sizeof *s->frames);
        s->details = with_details ? calloc(FRAMES_MAX, sizeof *s->details) : NULL;
        s->path = strdup(path);
        st = s->frames && s->path && (s->details || !with_details) ? named_file_search(s->path, search, &s->inputs, err)
                                                                   : error_no_memory(err);
        if (st) {
                file_source_close(s);
                return st;
        }
        s->inputs.with_positions = with_details;
        s->inputs.has_relative_paths = content == ANSWER_RELATIVE_DETAILS;
        if (use_cache)
                symbol_cache_open(&s->inputs, &s->cache);
        *ret = (struct answer_source){ .context = s,
                                       .ask = file_source_ask,
                                       .list_variables = file_source_list_variables,
                                       .find_text = file_source_find_text,
                                       .describe = file_source_describe,
                                       .close = file_source_close,
                                       .is_read_late = true };
        return ST_OK;
}
