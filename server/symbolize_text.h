/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SYMBOLIZE_TEXT_H
#define CAIRN_SERVER_SYMBOLIZE_TEXT_H

/**
 * @file
 * Names of functions and paths of files by their numbers in the index, ready
 * to be written: fetched, demangled and escaped once, and kept between
 * requests. A number never changes its text, so nothing is ever stale.
 *
 * Problem: the text work of one name costs a microsecond or more, an address
 * may cost a tenth of that. Model: a cache holds a table that only grows and
 * its texts; when it is full it begins anew. While a reader is open the cache
 * is not changed: what the reader misses it makes for itself, and adds it to
 * the cache at its end. So reading takes no lock.
 *
 * Threads: a cache any; a reader belongs to one thread. Writing to the cache
 * waits for open readers: keep them as short as the view they read.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "symbolizer/lookup.h"

struct text_cache;

struct rendered {
        uint32_t number;
        const char *json;       /* of a function: "function":"NAME","linkage_name":"LINKAGE"; of a file: "PATH" */
        const char *name;       /* of a function the readable name, of a file the path */
        const char *linkage;    /* of a function whose name was mangled, else "" */
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
 * A hint that the texts of these frames are asked for next. They lie far apart:
 * asked for one by one, each waits for memory three times, together they wait
 * at the same time. What goes past EXPECT_MAX is left out.
 */
#define EXPECT_MAX 64
void text_reader_expect(const struct text_reader *r, const struct symbol_frame *const *frames, size_t count);

/** Borrowed until text_reader_close(). 0 is a text of its own: the unknown one. */
enum status text_reader_function(struct text_reader *r, uint32_t function, const struct rendered **ret,
                                 struct error *err) MUST_CHECK;
enum status text_reader_file(struct text_reader *r, uint32_t file, const struct rendered **ret,
                             struct error *err) MUST_CHECK;

#endif
