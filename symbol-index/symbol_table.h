/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_SYMBOL_TABLE_H
#define CAIRN_SYMBOL_INDEX_SYMBOL_TABLE_H

/**
 * @file
 * The symbol table of one object: sorted address ranges, each with its chain of
 * frames. The confined worker writes it from an ELF file, the index loads it. In
 * memory it is the arrays below; as a file these arrays follow a checksummed
 * header
 * (docs/formats/symbol-table.md).
 *
 * Invariants, checked by symbol_table_check() on every table read from a file:
 *  1. ranges are sorted by start, do not overlap, start < end; addresses in gaps are not covered.
 *  2. a range's chain is a sequence of frames, innermost first, at least one; only the last frame of a chain is not
 *     inlined.
 *  3. every string offset and the string's end are inside `strings`.
 *  4. strings[0] is NUL: offset 0 is the empty string, "unknown". Writers store equal paths once: paths with different
 *     offsets are considered different.
 *  5. the list of unreadable parts is one line of UTF-8, shorter than SYMBOL_PARTIAL_BYTES.
 *
 * Threads: immutable once created.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/source_position.h"
#include "elf-image/quality.h"
#include "symbol-index/symbol_state.h"

struct symbol_segment { /* PT_LOAD: translates file offsets */
        uint64_t file_offset, file_size, address;
};

struct symbol_range {
        uint64_t start, end; /* object addresses, half-open */
        uint32_t chain;      /* into chains */
};

/* Ranges with equal frames from one unit share their chain. */
struct symbol_chain {
        uint32_t first_frame; /* into frames */
        uint32_t frame_count; /* at least 1 */
};

#define SYMBOL_NO_FUNCTION UINT32_MAX

struct symbol_table_frame {
        uint32_t function; /* into functions; SYMBOL_NO_FUNCTION: unknown */
        uint32_t file;     /* string offset of the path */
        uint32_t line;     /* 0: unknown; a number of positions if the table has them */
};

/* Where the code of a frame is. */
struct symbol_position {
        struct source_position place;
        uint64_t entry; /* of the function or inlined call, in code that begins with it; UINT64_MAX unknown */
};

struct symbol_function {
        uint32_t linkage_name; /* string offset; mangled, as in the object */
        uint32_t name;         /* string offset; a plain name if there is no linkage name (linkage_name is 0 then) */
        uint32_t file;         /* string offset of the path of its declaration; 0: unknown */
        uint32_t start_line;   /* of its declaration in that file; 0: unknown */
};

struct symbol_table {
        struct build_id build_id;
        enum symbol_quality quality;
        uint32_t partial;            /* string offset of the list of unreadable parts; 0: none */
        struct symbol_inputs inputs; /* stored files from which it was extracted. Not in the file */
        bool is_complete;            /* extracted without an address filter. Not in the file */
        struct symbol_segment *segments;
        uint32_t segment_count;
        struct symbol_range *ranges;
        uint32_t range_count;
        struct symbol_chain *chains;
        uint32_t chain_count;
        struct symbol_table_frame *frames;
        uint32_t frame_count;
        struct symbol_function *functions;
        uint32_t function_count;
        char *strings;
        uint32_t string_bytes;
        bool has_positions; /* of frames, with columns and discriminators. Not in the file, nor the following */
        struct symbol_position *positions;
        uint32_t position_count;
};

/** Allocate the arrays according to the counts. @return ST_NO_MEMORY; some arrays may be allocated then. */
enum status symbol_table_allocate(struct symbol_table *t, struct error *err) MUST_CHECK;
/** Frees the arrays. */
void symbol_table_deinit(struct symbol_table *t);

/** Append the table to fd (which may be a pipe) as a symbol table file. ST_TOO_BIG if it exceeds a limit of readers. */
enum status symbol_table_write(const struct symbol_table *t, int fd, struct error *err) MUST_CHECK;

/**
 * Read a symbol table from an untrusted regular file or memfd, from its start. Header, checksums and invariants are
 * verified.
 * @param name for messages.  @param ret owned, symbol_table_deinit().
 * @return ST_BAD_DATA; ST_UNSUPPORTED for another version; ST_TOO_BIG; ST_OS.
 */
enum status symbol_table_read(int fd, const char *name, struct symbol_table *ret, struct error *err) MUST_CHECK;

/** The invariants above. */
enum status symbol_table_check(const struct symbol_table *t, struct error *err) MUST_CHECK;

/** The list of unreadable parts of the object; "": none. */
const char *symbol_table_partial_text(const struct symbol_table *t);

/** Line of the declaration of a frame's function if it is in the frame's file; else 0. */
uint32_t symbol_table_start_line(const struct symbol_table *t, const struct symbol_table_frame *f);

/** SYMBOL_RESOLVED if a range covers address; else the reason. */
enum symbol_state symbol_table_gap_state(const struct symbol_table *t, uint64_t address);

/** The range that covers address, or NULL. */
const struct symbol_range *symbol_table_find(const struct symbol_table *t, uint64_t address);

#endif
