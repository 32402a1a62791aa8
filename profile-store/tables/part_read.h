/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_PART_READ_H
#define CAIRN_PROFILE_STORE_TABLES_PART_READ_H

/**
 * @file
 * Reads parts. They may be damaged or rewritten by another program: a missing column or one of the wrong type is
 * ST_BAD_DATA, with its name.
 *
 * Threads: a part_file may be shared by readers.
 */
#include "parquet/column_cursor.h"
#include "parquet/parquet_reader.h"
#include "profile-store/rows/key_map.h"
#include "profile-store/rows/location_rows.h"
#include "profile-store/tables/tables.h"

/* Not to be moved while it is open: the Parquet reader requires ranges of its map. */
struct part_file {
        struct storage_map map;
        struct parquet_file *file;
        const char *path; /* borrowed from the part */
};

/**
 * @param ret  part_file_close() is required, also on failure.
 * @return ST_OK; ST_OS with ENOENT when the object does not exist; other ST_OS; ST_BAD_DATA, ST_UNSUPPORTED,
 * ST_TOO_BIG; ST_NO_MEMORY.
 */
enum status part_file_open(const struct table_part *part, struct part_file *ret, struct error *err) MUST_CHECK;
/** The same, of a part that is at hand (part_fetch.h); what the cache lacks of it is not fetched, but ST_OS. */
enum status part_file_open_cached(const struct table_part *part, struct part_file *ret, struct error *err) MUST_CHECK;
void part_file_close(struct part_file *f);
#define _cleanup_part_file_ _cleanup_(part_file_close)

/**
 * Whether a failure is caused by the file itself, which is missing, damaged, or unsupported: it persists until the file
 * is restored.
 * @param err  as set by the functions of this header; not NULL.
 */
bool part_is_unreadable(enum status st, const struct error *err);

uint32_t part_file_count_groups(const struct part_file *f);
bool part_file_has_column(const struct part_file *f, const char *column);

/** Where the pages of a column of a row group are; false without the column. */
bool part_file_find_chunk(const struct part_file *f, uint32_t group, const char *column, struct file_range *ret);

/** Read a column of a row group, of exactly this kind, one slot per row (or, below a list, with offsets). */
enum status part_file_read_column(const struct part_file *f, uint32_t group, const char *column, enum parquet_kind kind,
                                  struct parquet_column *ret, struct error *err) MUST_CHECK;

/** Open a cursor on a column of a row group, of exactly this kind and outside of lists. */
enum status part_file_open_column(const struct part_file *f, uint32_t group, const char *column, enum parquet_kind kind,
                                  struct parquet_cursor *c, struct error *err) MUST_CHECK;

/** Row i of a stack_id column; false when it is null or not 16 bytes. */
bool part_read_stack_id(const struct parquet_column *c, uint64_t i, struct hash128 *ret);

/** The columns that part_read_locations() reads, location_id first; files may lack the last one. */
#define LOCATION_COLUMNS 15
extern const char *const location_columns[LOCATION_COLUMNS];

/** A growing list of rows; their texts are in the arena passed when reading. */
struct location_rows {
        struct location_row *items; /* owned */
        size_t count, capacity;
        struct memory_reservation memory; /* of items; MEMORY_BASE: not counted */
};
void location_rows_deinit(struct location_rows *r);
enum status location_rows_append(struct location_rows *rows, const struct location_row *row,
                                 struct error *err) MUST_CHECK;

/** Append the rows of a row group whose ids are in selected (NULL: all rows), and set their numbers. */
enum status part_read_locations(const struct part_file *f, uint32_t group, const struct key_map *selected,
                                struct arena *a, struct location_rows *rows, struct error *err) MUST_CHECK;
/** The same from rows in memory, which hold the texts. */
enum status location_rows_select(const struct location_rows *from, const struct key_map *selected,
                                 struct location_rows *rows, struct error *err) MUST_CHECK;

#endif
