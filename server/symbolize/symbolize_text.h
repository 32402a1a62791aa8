/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SYMBOLIZE_SYMBOLIZE_TEXT_H
#define CAIRN_SERVER_SYMBOLIZE_SYMBOLIZE_TEXT_H

/**
 * @file
 * Cache of rendered names: function names and file paths by their numbers in the index, fetched, demangled and escaped
 * once and kept between requests. The text of a number never changes, so entries never become stale.
 *
 * Problem: rendering a name costs a microsecond or more, looking up an address about a tenth of that.
 *
 * Model: the cache is a table that only grows and is cleared when full. It is not modified while a reader is open: a
 * reader renders missing names for itself and adds them to the cache when it is closed. So reading takes no lock.
 *
 * Threads: a cache any; a reader belongs to one thread. Writing to the cache waits for open readers: keep them as short
 * as the view they read.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-index/lookup.h"

struct text_cache;

struct rendered_text {
        uint32_t number;
        const char *json;    /* of a function: "function":"NAME","linkage_name":"LINKAGE"; of a file: "PATH" */
        const char *name;    /* of a function the readable name, of a file the path */
        const char *linkage; /* of a function whose name was mangled, else "" */
        uint32_t json_size, name_size, linkage_size; /* none of them ends with NUL */
};

struct text_cache *text_cache_create(void); /* owned, text_cache_destroy(); NULL without memory */
void text_cache_destroy(struct text_cache *c);

struct text_reader;

/** @param view borrowed until text_reader_close(). */
enum status text_reader_open(struct text_cache *c, struct symbol_view *view, struct text_reader **ret,
                             struct error *err) MUST_CHECK;
/** Takes NULL. */
void text_reader_close(struct text_reader *r);

/**
 * Prefetch the texts of these frames. They are scattered in memory: one by one each access waits for memory three
 * times, prefetched together they wait at the same time. Frames past PREFETCH_MAX are ignored.
 */
#define PREFETCH_MAX 64
void text_reader_prefetch(const struct text_reader *r, const struct symbol_frame *const *frames, size_t count);

/** Borrowed until text_reader_close(). Number 0 is the unknown text. */
enum status text_reader_get_function(struct text_reader *r, uint32_t function, const struct rendered_text **ret,
                                     struct error *err) MUST_CHECK;
enum status text_reader_get_file(struct text_reader *r, uint32_t file, const struct rendered_text **ret,
                                 struct error *err) MUST_CHECK;

#endif
