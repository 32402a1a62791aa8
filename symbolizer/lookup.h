/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_LOOKUP_H
#define CAIRN_SYMBOLIZER_LOOKUP_H

/**
 * @file
 * The lookup contract: huge batches of (build-id, address) keys in, frames out.
 *
 * The flusher, re-symbolization, the HTTP API and the command line all use
 * this and nothing else of the index. A view is one LMDB read transaction:
 * everything borrowed from it is valid until symbol_view_end(), and a batch
 * sees one consistent index. Keep a view short: never across a socket write.
 *
 * Threads: an index may be shared; a view belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "elf-image/quality.h"
#include "symbolizer/symbol_inputs.h"

struct symbol_index;
struct symbol_view;

/** Why a key has no frames; SYMBOL_RESOLVED when it has. The names are public (tables, metrics, JSON): docs/reasons.md. */
enum symbol_state {
        SYMBOL_RESOLVED = 0,       /* "resolved" */
        SYMBOL_NO_BUILD_ID,        /* "no_build_id": the mapping was not identified */
        SYMBOL_NO_DEBUGINFO,       /* "no_debuginfo": nobody uploaded this object and no upstream had it (yet) */
        SYMBOL_PENDING,            /* "pending": stored, waiting for the indexer */
        SYMBOL_FAILED,             /* "failed": its debuginfo could not be read; the objects record says why */
        SYMBOL_OUTSIDE,            /* "outside": no range covers the address, and whether it is in the object is not known */
        SYMBOL_SENDER,             /* "sender": frames were sent with the sample */
        SYMBOL_NO_ADDRESS,         /* "no_address": the sender gave an object and nothing to look up */
        SYMBOL_STRIPPED,           /* "stripped": the object is indexed and has no range at all */
        SYMBOL_UNCOVERED,          /* "uncovered": in a loaded segment of the object, but no range covers it */
        SYMBOL_NOT_IN_OBJECT,      /* "not_in_object": in none of the object's loaded segments */
        SYMBOL_TOO_LARGE,          /* "too_large": it has frames, but more than a flush has room for (LIMIT_FLUSH_FRAMES) */
        SYMBOL_STATE_COUNT,
};
const char *symbol_state_name(enum symbol_state s);

struct symbol_key {
        const struct build_id *build_id; /* borrowed; equal pointers need not mean equal ids */
        uint64_t address;
        bool is_file_offset;             /* address is an offset into the ELF file; translated by its segments. One
                                          * behind the file that they hold as an address is that: perf prints such
                                          * of programs that are not relocated. */
};

struct symbol_frame {
        uint32_t function; /* number of a function in this index, 0 unknown */
        uint32_t file;     /* number of a file in this index, 0 unknown */
        uint32_t line;     /* 0 unknown */
        bool inlined;      /* this frame was inlined into the next one */
};

struct symbol_result {
        enum symbol_state state;
        enum symbol_quality quality;
        uint64_t generation;   /* of the object's symbols; 0 when the object is unknown. Grows with each indexing. */
        uint64_t address;      /* the object address that was looked up (after translation of a file offset) */
        uint32_t first_frame;  /* into symbol_batch.frames, innermost first */
        uint32_t frame_count;
};

/** Results of one batch, in the order of the keys. Owned by the caller, zeroed before its first use, reusable. */
struct symbol_batch {
        struct symbol_result *results;
        size_t result_count, result_capacity;
        struct symbol_frame *frames; /* results whose addresses lie in one range share their frames */
        size_t frame_count, frame_capacity;
        size_t damaged_count;        /* keys whose record or block in the index is damaged; their state is failed */
        void *scratch;               /* of the lookup, kept for the next one */
        size_t scratch_bytes;
};
void symbol_batch_deinit(struct symbol_batch *b);

/**
 * Open (and create unless read_only) the index environment in dir.
 * One process writes; others may open it read-only. A process must not open
 * the same directory twice at a time (LMDB's locks do not bear it).
 * @return ST_OK; ST_NOT_FOUND when read_only and there is no index; ST_BUSY when another process writes it;
 *         ST_UNSUPPORTED for another format; ST_BAD_DATA, ST_OS.
 */
enum status symbol_index_open(const char *dir, bool read_only, struct symbol_index **ret, struct error *err) MUST_CHECK;
void symbol_index_close(struct symbol_index *index);

/**
 * Open for writing, and begin with an empty index where it has an older format
 * (symbol_index_open() says ST_UNSUPPORTED): what it held can be made again
 * from the objects. Generations go on from where they were.
 */
enum status symbol_index_open_anew(const char *dir, struct symbol_index **ret, struct error *err) MUST_CHECK;

enum status symbol_view_begin(struct symbol_index *index, struct symbol_view **ret, struct error *err) MUST_CHECK;
void symbol_view_end(struct symbol_view *view);

/**
 * Look up all keys. An unresolved key is no error: its result says why. Nor is
 * a damaged block or record: it costs its keys alone (batch->damaged_count).
 * @param batch filled; frames are numbers, no text is touched.
 * @return ST_OK; ST_TOO_BIG over UINT32_MAX keys or frames; ST_NO_MEMORY; ST_OS.
 */
enum status symbol_view_lookup(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                               struct symbol_batch *batch, struct error *err) MUST_CHECK;

/**
 * The same with several threads, each of which takes a slice of the keys; few
 * keys get fewer threads. Results are the same but for where frames lie.
 */
enum status symbol_view_lookup_threads(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                                       unsigned threads, struct symbol_batch *batch, struct error *err) MUST_CHECK;

/**
 * Borrowed texts of a function number; both "" for 0. The name is the readable
 * (demangled) one, cached by number; the linkage name is the name as the object
 * has it, so the two are equal, as pointers too, where nothing was mangled.
 */
enum status symbol_view_function(struct symbol_view *view, uint32_t function, const char **name_ret,
                                 const char **linkage_name_ret, struct error *err) MUST_CHECK;

/** Borrowed path of a file number; "" for 0. */
enum status symbol_view_file(struct symbol_view *view, uint32_t file, const char **path_ret, struct error *err) MUST_CHECK;

/** What is known of one object. */
enum symbol_object_state { OBJECT_ABSENT, OBJECT_PENDING, OBJECT_INDEXED, OBJECT_FAILED };
const char *symbol_object_state_name(enum symbol_object_state s);

/** Room for what of an object could not be read, with its NUL. */
#define SYMBOL_PARTIAL_BYTES 160

struct symbol_object {
        enum symbol_object_state state;
        enum symbol_quality quality;
        uint64_t generation;
        uint64_t range_count, function_count, file_count;
        uint64_t chain_count;
        uint64_t index_bytes;  /* block_bytes + string_bytes */
        uint64_t block_bytes;  /* every page of its blocks */
        uint64_t string_bytes; /* pages that the index grew by for texts it did not have before this object */
        int64_t indexed_unix_s;
        uint64_t image_base;   /* address of the first loaded segment: what offsets "from the image" are counted from */
        char reason[160];      /* of OBJECT_FAILED */
        char partial[SYMBOL_PARTIAL_BYTES]; /* what is missing from the symbols in use; "" nothing */
        struct symbol_inputs inputs; /* what was read last, for these symbols or in vain; none: not known */
};
/** ST_OK also for an object never heard of: state OBJECT_ABSENT. */
enum status symbol_view_object(struct symbol_view *view, const struct build_id *id, struct symbol_object *ret,
                               struct error *err) MUST_CHECK;
/** The same of this very build-id, though it be an alias of another that has symbols. */
enum status symbol_view_object_itself(struct symbol_view *view, const struct build_id *id, struct symbol_object *ret,
                                      struct error *err) MUST_CHECK;

/** The objects whose build-ids begin with the n (one at least) bytes of prefix, in order, max at most; copied into ids. */
enum status symbol_view_find(struct symbol_view *view, const void *prefix, size_t n, struct build_id *ids, size_t max,
                             size_t *count_ret, struct error *err) MUST_CHECK;

#endif
