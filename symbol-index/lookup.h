/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_LOOKUP_H
#define CAIRN_SYMBOL_INDEX_LOOKUP_H

/**
 * @file
 * Lookup interface: huge batches of (build-id, address) keys in, frames out.
 *
 * The flusher, re-symbolization, the HTTP API and the command line use only this
 * interface of the index. A view is one LMDB read transaction: borrowed data is
 * valid until symbol_view_end(), and a batch reads one consistent state. Keep
 * views short: never across a socket write.
 *
 * Threads: an index may be shared; a view belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "elf-image/quality.h"
#include "symbol-index/symbol_state.h"

struct symbol_index;
struct symbol_view;

struct symbol_key {
        const struct build_id *build_id; /* borrowed; equal ids may have different pointers */
        uint64_t address; /* in a kernel, which is linked in the upper half, a lower address is relative to its start,
                             _text: the OpenTelemetry eBPF profiler sends those */
        bool is_file_offset; /* address is an offset into the ELF file; translated by its segments. An offset beyond the
                                file that is an address in a segment is treated as an address: perf prints those for
                                programs that are not relocated. */
};

struct symbol_frame {
        uint32_t function;        /* number of a function in this index; 0: unknown */
        uint32_t file;            /* number of a file in this index; 0: unknown */
        uint32_t line;            /* 0: unknown */
        bool inlined : 1;         /* inlined into the next frame */
        uint32_t start_line : 31; /* of the function's declaration if it is in the same file; 0: unknown */
};

struct symbol_result {
        enum symbol_state state;
        enum symbol_quality quality;
        uint64_t generation;  /* of the object's symbols; 0 if the object is unknown. Grows with each indexing. */
        uint64_t address;     /* the address in the object that was looked up (after translation of a file offset) */
        uint32_t first_frame; /* into symbol_batch.frames, innermost first */
        uint32_t frame_count;
};

/** Whether the file offset of a key has an address: the index has the segments of the file, and one has the offset. */
bool is_offset_translated(const struct symbol_result *r);

/** Results of one batch, in the order of the keys. Owned by the caller, zeroed before first use, reusable. */
struct symbol_batch {
        struct symbol_result *results;
        size_t result_count, result_capacity;
        struct symbol_frame *frames; /* results with addresses in one range share their frames */
        size_t frame_count, frame_capacity;
        size_t damaged_count; /* keys whose record or block in the index is damaged; their state is failed */
        void *scratch;        /* working memory, kept for the next lookup */
        size_t scratch_bytes;
};
void symbol_batch_deinit(struct symbol_batch *b);

/**
 * Open (and create unless read_only) the index environment in dir. One process writes; others may open it read-only. A
 * process must not have the same directory open twice (LMDB's locks break).
 * @return ST_OK; ST_NOT_FOUND if read_only and there is no index; ST_BUSY if another process writes it; ST_UNSUPPORTED
 *         for another format; ST_BAD_DATA, ST_OS.
 */
enum status symbol_index_open(const char *dir, bool read_only, struct symbol_index **ret, struct error *err) MUST_CHECK;
void symbol_index_close(struct symbol_index *index);

/**
 * Open for writing; empty an index of an older format (for which
 * symbol_index_open() returns ST_UNSUPPORTED): its content can be rebuilt from
 * the objects. Generations continue.
 */
enum status symbol_index_open_or_reset(const char *dir, struct symbol_index **ret, struct error *err) MUST_CHECK;

enum status symbol_view_begin(struct symbol_index *index, struct symbol_view **ret, struct error *err) MUST_CHECK;
void symbol_view_end(struct symbol_view *view);

/**
 * Look up all keys. An unresolved key (its result has the reason) is not an error, nor is a damaged block or record
 * (its keys fail, batch->damaged_count).
 * @param batch filled; frames are numbers, no text is read.
 * @return ST_OK; ST_TOO_BIG over UINT32_MAX keys or frames; ST_NO_MEMORY; ST_OS.
 */
enum status symbol_view_lookup(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                               struct symbol_batch *batch, struct error *err) MUST_CHECK;

/**
 * Like symbol_view_lookup(), with several threads, each with a slice of the keys; fewer threads for few keys. Only the
 * positions of frames differ.
 */
enum status symbol_view_lookup_threads(struct symbol_view *view, const struct symbol_key *keys, size_t count,
                                       unsigned threads, struct symbol_batch *batch, struct error *err) MUST_CHECK;

/**
 * Borrowed texts of a function number; both "" for 0. The name is the readable (demangled) one, cached by number; the
 * linkage name is the name in the object, so both are equal, also as pointers, if it is not mangled.
 */
enum status symbol_view_get_function(struct symbol_view *view, uint32_t function, const char **name_ret,
                                     const char **linkage_name_ret, struct error *err) MUST_CHECK;

/** Borrowed path of a file number; "" for 0. */
enum status symbol_view_get_file(struct symbol_view *view, uint32_t file, const char **path_ret,
                                 struct error *err) MUST_CHECK;

/**
 * Prefetch texts: note the texts of frames, then load all noted texts in ascending order, so that each page of the
 * index is decompressed once. Reading a single text decompresses its page, unless it is cached. Errors as for
 * symbol_view_get_function().
 */
enum status symbol_view_want_texts(struct symbol_view *view, const struct symbol_frame *frames, size_t count,
                                   struct error *err) MUST_CHECK;
enum status symbol_view_load_texts(struct symbol_view *view, struct error *err) MUST_CHECK;

/** State of one object in the index. */
enum symbol_object_state { OBJECT_ABSENT, OBJECT_PENDING, OBJECT_INDEXED, OBJECT_FAILED };
const char *symbol_object_state_name(enum symbol_object_state s);

struct symbol_object {
        enum symbol_object_state state;
        enum symbol_quality quality;
        uint64_t generation;
        uint64_t range_count, function_count, file_count;
        uint64_t chain_count;
        uint64_t index_bytes;  /* block_bytes + string_bytes */
        uint64_t block_bytes;  /* all pages of its blocks */
        uint64_t string_bytes; /* growth of the index by texts that were new with this object */
        int64_t indexed_unix_s;
        uint64_t image_base;                /* address of the first loaded segment: base of offsets "from the image" */
        char reason[160];                   /* of OBJECT_FAILED */
        char partial[SYMBOL_PARTIAL_BYTES]; /* unreadable parts of the current symbols; "": none */
        struct symbol_inputs inputs;        /* files read by the last indexing, successful or not; empty: unknown */
};
/** ST_OK also for an unknown object: state OBJECT_ABSENT. */
enum status symbol_view_get_object(struct symbol_view *view, const struct build_id *id, struct symbol_object *ret,
                                   struct error *err) MUST_CHECK;
/** Like symbol_view_get_object(), without following an alias. */
enum status symbol_view_get_object_unaliased(struct symbol_view *view, const struct build_id *id,
                                             struct symbol_object *ret, struct error *err) MUST_CHECK;

/** The objects whose build-ids begin with the n >= 1 bytes of prefix, sorted, at most max; copied into ids. */
enum status symbol_view_find_objects(struct symbol_view *view, const void *prefix, size_t n, struct build_id *ids,
                                     size_t max, size_t *count_ret, struct error *err) MUST_CHECK;

#endif
