/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_FORMATS_SYMCACHE_H
#define CAIRN_SYMBOLIZER_FORMATS_SYMCACHE_H

/**
 * @file
 * A symcache: the symbols of one object laid out for lookup, with demangled
 * names (docs/formats/symcache.md). It is mapped and used in place, so opening
 * one costs nothing; it takes a few times the space of the same symbols in the
 * index.
 *
 * A worker writes one, `cairn symbolize` reads it and caches it as a file.
 * Neither is trusted, since the worker parsed an untrusted file: each chunk is
 * checksummed at its first access, and every number is bounds-checked when it is
 * used. A damaged or crafted symcache yields ST_BAD_DATA or wrong names, nothing
 * worse.
 *
 * Threads: a symcache belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/files/file.h"
#include "symbol-index/symbol_table.h"

/**
 * Write the symcache of a table into an empty regular file or memfd.
 * @return ST_TOO_BIG; ST_NO_MEMORY; ST_OS.
 */
enum status symcache_write(const struct symbol_table *t, int fd, struct error *err) MUST_CHECK;

struct symcache_layout { /* from the header: counts, and offsets from the body's start */
        uint64_t body;   /* offset in the file */
        uint64_t body_size;
        uint64_t starts, nodes_of, buckets, nodes, details, texts;
        uint64_t range_count, bucket_count, node_count, detail_count, text_bytes;
        uint64_t base;
        uint32_t shift;
};

struct symcache {
        struct file_map map;
        struct symcache_layout at;
        const uint8_t *body;
        const uint8_t *checksums; /* of chunks, unaligned */
        const uint8_t *segments;  /* unaligned */
        uint32_t segment_count;
        uint8_t *seen;  /* owned; by chunk: its checksum was right */
        uint8_t *plain; /* owned; one bit by text: it was found to be plain */
        struct build_id build_id;
        enum symbol_quality quality;
        bool is_complete;    /* as in struct symbol_table */
        const char *partial; /* unreadable parts of the object, borrowed from the map; "" none */
};

/** @param ret symcache_close(). @return ST_BAD_DATA; ST_UNSUPPORTED for another version or byte order; ST_OS. */
enum status symcache_open(int fd, const char *name, struct symcache *ret, struct error *err) MUST_CHECK;
void symcache_close(struct symcache *b);

#define SYMCACHE_LOOKUP_BATCH 64 /* addresses looked up together, to overlap cache misses */

/** Number of the innermost frame of each address, 0 none. ST_BAD_DATA. */
enum status symcache_find(struct symcache *b, const uint64_t *addresses, size_t count, uint32_t *frames_ret,
                          struct error *err) MUST_CHECK;

/** The reason why an address has no frame: as symbol_table_gap_state(). */
enum symbol_state symcache_gap_state(const struct symcache *b, uint64_t address);

struct symcache_text {    /* borrowed until the symcache is closed */
        const char *data; /* NUL-terminated */
        uint32_t size;    /* without the NUL */
        bool is_plain;    /* utf8_count_plain() is its size */
};

struct symcache_frame {
        uint32_t function, file; /* for symcache_get_names(), symcache_get_path() */
        uint32_t line;           /* 0 unknown */
        uint32_t caller;         /* the frame it is inlined into, 0 none; always less than its own number */
};

/** A frame by its number, which is not 0. Prefetches its texts. */
enum status symcache_get_frame(struct symcache *b, uint32_t frame, struct symcache_frame *ret,
                               struct error *err) MUST_CHECK;

struct symcache_frame_detail {           /* 0 unknown, and without details */
        uint32_t column, discriminator;  /* with the frame's line */
        uint32_t start_file, start_line; /* declaration of the function */
        uint64_t entry; /* of the function or inlined call, as in struct symbol_position; UINT64_MAX unknown */
};

/** The detail of a frame by its number. */
enum status symcache_get_detail(struct symcache *b, uint32_t frame, struct symcache_frame_detail *ret,
                                struct error *err) MUST_CHECK;

/** The two names of a function, and a path; empty ones are unknown. */
enum status symcache_get_names(struct symcache *b, uint32_t function, struct symcache_text *readable_ret,
                               struct symcache_text *linkage_ret, struct error *err) MUST_CHECK;
enum status symcache_get_path(struct symcache *b, uint32_t file, struct symcache_text *ret,
                              struct error *err) MUST_CHECK;

#endif
