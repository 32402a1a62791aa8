/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SYMBOL_BOOK_H
#define CAIRN_SYMBOLIZER_SYMBOL_BOOK_H

/**
 * @file
 * A symbol book: the symbols of one object laid out for looking up, names
 * readable already (docs/formats/symbol-book.md). It is mapped and used in
 * place, so opening one costs nothing; it takes a few times the room that the
 * same symbols take in the index.
 *
 * A worker writes one, `cairn symbolize` reads it and keeps it as a file.
 * Neither the worker, which read a stranger's file, nor the file is trusted: what
 * is looked at is checksummed by the chunk when it is first looked at, and every
 * number is held to its bounds when it is used. So a book that is damaged, or
 * made to be, gives ST_BAD_DATA or wrong names, and nothing worse.
 *
 * Threads: a book belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/file.h"
#include "symbolizer/symbol_table.h"

/**
 * Write the book of a table into an empty regular file or memfd.
 * @return ST_TOO_BIG; ST_NO_MEMORY; ST_OS.
 */
enum status symbol_book_write(const struct symbol_table *t, int fd, struct error *err) MUST_CHECK;

struct symbol_book_layout { /* what the header says: counts, and offsets from the body's start */
        uint64_t body; /* offset in the file */
        uint64_t body_size;
        uint64_t starts, nodes_of, buckets, nodes, texts;
        uint64_t range_count, bucket_count, node_count, text_bytes;
        uint64_t base;
        uint32_t shift;
};

struct symbol_book {
        struct file_map map;
        struct symbol_book_layout at;
        const uint8_t *body;
        const uint8_t *checksums; /* of chunks, unaligned */
        const uint8_t *segments;  /* unaligned */
        uint32_t segment_count;
        uint8_t *seen;            /* owned; by chunk: its checksum was right */
        struct build_id build_id;
        enum symbol_quality quality;
        bool is_complete;         /* as in struct symbol_table */
        const char *partial;      /* what of the object could not be read, borrowed from the map; "" nothing */
};

/** @param ret symbol_book_close(). @return ST_BAD_DATA; ST_UNSUPPORTED for another version or byte order; ST_OS. */
enum status symbol_book_open(int fd, const char *name, struct symbol_book *ret, struct error *err) MUST_CHECK;
void symbol_book_close(struct symbol_book *b);

#define SYMBOL_BOOK_TOGETHER 64 /* addresses looked up at once: they wait for memory together */

/** For each address its innermost frame, 0 where there is none. ST_BAD_DATA. */
enum status symbol_book_find(struct symbol_book *b, const uint64_t *addresses, size_t count, uint32_t *frames_ret,
                             struct error *err) MUST_CHECK;

/** Why no frame covers an address: as symbol_table_state(). */
enum symbol_state symbol_book_missing(const struct symbol_book *b, uint64_t address);

struct symbol_book_text { /* borrowed until the book is closed */
        const char *data; /* NUL-terminated */
        uint32_t size;    /* without the NUL */
};

struct symbol_book_frame {
        uint32_t function, file; /* for symbol_book_names(), symbol_book_path() */
        uint32_t line;           /* 0 unknown */
        uint32_t caller;         /* the frame it is inlined into, 0 none; always less than its own number */
};

/** A frame by its number, which is not 0. Begins to fetch its texts. */
enum status symbol_book_frame(struct symbol_book *b, uint32_t frame, struct symbol_book_frame *ret,
                              struct error *err) MUST_CHECK;

/** The two names of a function, and a path; empty ones are unknown. */
enum status symbol_book_names(struct symbol_book *b, uint32_t function, struct symbol_book_text *readable_ret,
                              struct symbol_book_text *linkage_ret, struct error *err) MUST_CHECK;
enum status symbol_book_path(struct symbol_book *b, uint32_t file, struct symbol_book_text *ret,
                             struct error *err) MUST_CHECK;

#endif
