/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_SYMBOLIZE_TEXT_H
#define CAIRN_SERVER_CORE_SYMBOLIZE_TEXT_H

/**
 * @file
 * Cache of rendered names: function names and file paths by their numbers in the index. They are fetched, demangled and
 * escaped once and kept between requests. The text of a number never changes, so entries never become stale.
 *
 * Problem: rendering a name costs a microsecond or more, looking up an address about a tenth of that.
 *
 * Model: the cache is a table that only grows and is cleared when full. An open reader holds the read lock, so lookups
 * need no locking of their own; it renders missing names into its own table, and adds them to the cache when closed.
 *
 * Threads: any for a cache; a reader belongs to one thread. Closing a reader with new names waits for other open
 * readers: close a reader together with its view.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-index/lookup.h"

struct text_cache;

struct rendered_text {
        uint32_t number;
        const char *json;    /* for a function "function":"NAME","linkage_name":"LINKAGE"; for a file "PATH" */
        const char *name;    /* readable name of a function, or path of a file */
        const char *linkage; /* mangled name of a function, else "" */
        uint32_t json_size, name_size, linkage_size; /* without a NUL, which the texts do not have */
};

struct text_cache *text_cache_create(void); /* owned, text_cache_destroy(); NULL when out of memory */
void text_cache_destroy(struct text_cache *c);

struct text_reader;

/** @param view borrowed until text_reader_close(). */
enum status text_reader_open(struct text_cache *c, struct symbol_view *view, struct text_reader **ret,
                             struct error *err) MUST_CHECK;
/** Takes NULL. */
void text_reader_close(struct text_reader *r);

/**
 * Prefetch the texts of these frames. A text takes three dependent memory accesses; prefetching many texts overlaps
 * their latencies. Frames beyond PREFETCH_MAX are ignored.
 */
#define PREFETCH_MAX 64
void text_reader_prefetch(const struct text_reader *r, const struct symbol_frame *const *frames, size_t count);

/** Render or find a text. @param ret  borrowed until text_reader_close(); empty for number 0, the unknown text */
enum status text_reader_get_function(struct text_reader *r, uint32_t function, const struct rendered_text **ret,
                                     struct error *err) MUST_CHECK;
enum status text_reader_get_file(struct text_reader *r, uint32_t file, const struct rendered_text **ret,
                                 struct error *err) MUST_CHECK;

#endif
