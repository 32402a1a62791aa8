/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_SCAN_INTERNAL_H
#define CAIRN_PROFILE_STORE_SCAN_SCAN_INTERNAL_H

/*
 * A scan visits chunks: each batch of the head and each row group of a samples
 * part, with the rows that a filter selects.
 */
#include "common/threads/work_threads.h"
#include "profile-store/tables/part_read.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/peer_heads.h"
#include "profile-store/scan.h"

struct store_scan {
        struct profile_store *store;  /* NULL: none; borrowed */
        struct symbol_index *symbols; /* for locations of the head; NULL: none */
        struct arena arena;           /* holds results */
        struct batch **head;
        size_t head_count;
        struct missing_nodes missing;
        struct tables *tables;
        struct stack_cache *stack_cache; /* the store's; NULL: none */
        struct work_meter *meter;        /* NULL: unlimited; borrowed */
};

/* ---- rows ---- */

/* Rows of a row group, or indexes of samples of a batch: [first, first + count). */
struct row_range {
        uint32_t first, count;
};

/* Ascending ranges that do not touch. */
struct row_ranges {
        struct row_range *items; /* owned */
        size_t count, capacity;
        uint64_t rows; /* total of all ranges */
};
enum status row_ranges_add(struct row_ranges *r, uint32_t first, uint32_t count, struct error *err) MUST_CHECK;
void row_ranges_clear(struct row_ranges *r);
void row_ranges_deinit(struct row_ranges *r);

/* The rows of ranges one by one: struct row_walk w = { .rows = rows }; then row_walk_next() until it returns false. */
struct row_walk {
        const struct row_ranges *rows;
        size_t range;    /* index of the current one */
        uint32_t offset; /* of the next row in it */
};
static inline bool row_walk_next(struct row_walk *w, uint32_t *row_ret)
{
        for (; w->range < w->rows->count; w->range++, w->offset = 0) {
                const struct row_range *range = &w->rows->items[w->range];

                if (w->offset < range->count) {
                        *row_ret = range->first + w->offset++;
                        return true;
                }
        }
        return false;
}

/* ---- filter ---- */

/* A filter with its bounds in the tables' unit: time_us in [from_us, to_us). */
struct row_filter {
        const struct scan_filter *filter;
        int64_t from_us, to_us;
        char **names;   /* label of each matcher, in column spelling */
        char **columns; /* name of the column of each matcher's label */
        bool any_id;    /* some matcher is of trace_id or span_id */
};
enum status row_filter_init(struct row_filter *r, const struct scan_filter *filter, struct error *err) MUST_CHECK;
void row_filter_deinit(struct row_filter *r);

/* A label whose value is an id of the sample in hexadecimal, if the sample has one. */
struct id_key {
        const char *name;
        size_t size; /* bytes of an id, at most ID_BYTES_MAX */
};
#define ID_KEYS 2
#define ID_BYTES_MAX 16
extern const struct id_key scan_id_keys[ID_KEYS]; /* trace_id, span_id */
/* By name in column spelling; NULL for other labels. */
const struct id_key *scan_find_id_key(const char *name);
/* The id of a sample; NULL if it has none. */
const uint8_t *scan_get_sample_id(const struct batch_sample *s, const struct id_key *key);
/* Whether a row group has ids of this kind. */
bool group_has_ids(const struct part_file *f, uint32_t group, const struct id_key *key);

/* Whether a part can have rows of the time range. */
bool part_may_match(const struct row_filter *r, const struct table_part *part);

/*
 * Value of a label in a row's map, or "". Of several values the last non-null one counts, as the Parquet format
 * specifies for maps. Used by filters, groups and lists.
 */
struct parquet_bytes scan_find_rest_value(const struct parquet_column *keys, const struct parquet_column *values,
                                          uint32_t row, const char *name);

struct scan_thread;

/* Whether a row group can have selected rows, by its statistics. @param all_times_ret  all are in the time range. */
bool group_may_match(const struct row_filter *r, const struct part_file *f, uint32_t group, bool *all_times_ret);

/* Select the rows of a row group or samples of a batch, in thread->selected. */
enum status select_group_rows(struct scan_thread *t, const struct row_filter *r, const struct part_file *f,
                              uint32_t group, struct error *err) MUST_CHECK;
enum status select_batch_samples(struct scan_thread *t, const struct row_filter *r, const struct batch *b,
                                 struct error *err) MUST_CHECK;

/* ---- threads ---- */

/* Cursors of a thread; each is for one column at a time. */
enum scan_cursor { CURSOR_FILTER, CURSOR_KEY, CURSOR_TIME, CURSOR_STACK, CURSOR_VALUE, SCAN_CURSORS };

/* State of one thread of a scan. */
struct scan_thread {
        struct work_thread *work; /* NULL: a single thread outside of a scan */
        struct scan_run *run;
        struct work_meter *meter;                     /* of the thread */
        struct parquet_cursor *cursors[SCAN_CURSORS]; /* created on first use */
        struct row_ranges selected, narrowed;
        uint8_t *verdicts;
        size_t verdict_capacity;
        struct memory_reservation memory; /* of the cursors */
        size_t uncounted;                 /* bytes that the cursors may still allocate without a reservation */
        void *context;                    /* of the visitor */
};

/*
 * Evaluate a matcher. Takes a lock, since regular expressions and the scan's meter are used by one thread at a time:
 * call once per dictionary entry.
 */
bool scan_match_label(struct scan_thread *t, const struct label_matcher *m, const char *text, size_t n);

/* A row group or a batch, with its selected rows; exactly one of batch and file is set. */
struct scan_chunk {
        struct scan_thread *thread;
        const struct batch *batch;
        const struct part_file *file;
        uint32_t group;
        const struct row_ranges *rows;
};
struct chunk_visitor {
        enum status (*visit)(void *context, const struct scan_chunk *chunk, struct error *err);
        /* Whether a row group can be skipped before its rows are selected; NULL: none can. */
        bool (*can_skip)(const void *context, const struct part_file *f, uint32_t group);
};

/*
 * Visit every chunk with selected rows, on up to context_count threads, each with its own context, in any order. With
 * one context: on the calling thread, in the order of the parts. A failure ends the visit.
 */
enum status scan_visit_chunks(struct store_scan *scan, const struct scan_filter *filter,
                              const struct chunk_visitor *visitor, void *const *contexts, size_t context_count,
                              struct error *err) MUST_CHECK;

/* ---- columns ---- */

/* A column of a row group, outside of lists. */
struct scan_column {
        const struct part_file *file;
        uint32_t group;
        const char *name;
        enum parquet_kind kind;
};

/* Open a cursor of the thread on a column. ST_BAD_DATA when the column is missing, in a list or of another kind. */
enum status scan_open_column(struct scan_thread *t, enum scan_cursor which, const struct scan_column *column,
                             struct parquet_cursor **ret, struct error *err) MUST_CHECK;
/* The same for a column of the chunk's row group. */
enum status scan_open_chunk_column(const struct scan_chunk *chunk, enum scan_cursor which, const char *name,
                                   enum parquet_kind kind, struct parquet_cursor **ret, struct error *err) MUST_CHECK;

/* A row group, and the memory reserved for columns that are read whole. */
struct column_source {
        const struct part_file *file;
        uint32_t group;
        struct memory_reservation memory; /* its `use` determines the budget */
};
void column_source_deinit(struct column_source *s); /* call after freeing the columns */
#define _cleanup_column_source_ _cleanup_(column_source_deinit)

/* As part_file_read_column(), charged to the source. */
enum status scan_read_column(struct column_source *from, const char *column, enum parquet_kind kind,
                             struct parquet_column *ret, struct error *err) MUST_CHECK;

/* Reserve one byte per entry of the current dictionary, zero at first: at least count bytes. */
enum status scan_reserve_verdicts(struct scan_thread *t, size_t count, struct error *err) MUST_CHECK;
void scan_clear_verdicts(struct scan_thread *t);

/* Called for the pieces of the selected rows, in order; row is the first of the piece->count rows. */
typedef enum status visit_piece(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err);
enum status scan_visit_pieces(struct scan_thread *t, struct parquet_cursor *c, const struct row_ranges *rows,
                              visit_piece *visit, void *context, struct error *err) MUST_CHECK;

/* Called for each distinct text of the selected rows of a column, "" for null. Equal texts may be repeated. */
typedef enum status visit_text(void *context, const char *text, size_t n, struct error *err);
enum status scan_visit_texts(const struct scan_chunk *chunk, const char *column, visit_text *visit, void *context,
                             struct error *err) MUST_CHECK;

/* The text that, by statistics, all rows of a row group have in a column outside of lists; false if there is none. */
bool group_has_one_text(const struct part_file *f, uint32_t group, const char *column, struct parquet_bytes *ret);

/* Whether, by statistics, all rows of a row group have this integer in a column outside of lists. */
bool group_has_only_int(const struct part_file *f, uint32_t group, const char *column, int64_t value);

/* Whether no row of the row group has a label without a column. */
/* Whether the statistics of a text column say that it has no value in the chunk's row group. */
bool group_lacks_column(const struct scan_chunk *chunk, const char *column);

/* The labels without a column of a row group. */
struct rest_labels {
        struct column_source from;
        struct parquet_column keys, values;
};
enum status open_rest_labels(const struct scan_chunk *chunk, struct rest_labels *ret, struct error *err) MUST_CHECK;
void rest_labels_deinit(struct rest_labels *r);
#define _cleanup_rest_labels_ _cleanup_(rest_labels_deinit)

bool group_lacks_rest_labels(const struct part_file *f, uint32_t group);

enum status set_scan_too_big(struct error *err);

#if defined(__clang_analyzer__) && !defined(ERROR_BODIES) /* common/error.h */
#define set_scan_too_big(err) (set_scan_too_big(err), ST_TOO_BIG)
#endif

#endif
