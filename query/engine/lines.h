/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_LINES_H
#define CAIRN_QUERY_ENGINE_LINES_H

/**
 * @file
 * The table of the operation "lines": the cost of each line of functions or files, the calls inlined there, and the
 * text if the source file is stored. Private to query/.
 */
#include "query/engine/loaded_sides.h"
#include "query/engine/line_alignment.h"

#define NO_LOCATION UINT32_MAX

/* A line of a function. Arrays of two are by side: in a diff before and after, else only the first is used. */
struct line_row {
        uint32_t frame;       /* a frame with the function and file */
        uint32_t location[2]; /* a location with that frame, which identifies the object; NO_LOCATION: no samples */
        uint32_t number;      /* sequence number, which call sites refer to */
        int64_t line;         /* 0 unknown */
        int64_t line_before;  /* in an aligned file: of the text before; 0: none */
        bool is_removed;      /* in an aligned file: `line` is of the text before, and not in that after */
        int64_t place;        /* by which rows of a file are sorted */
        int64_t flat[2], cumulative[2];
        size_t seen; /* position of the last entry that contains it, plus one; the sides are numbered consecutively */
};

/* A call inlined at a line. */
struct call_site {
        uint32_t row;    /* line_row.number of the caller's line */
        uint32_t frame;  /* a frame with the inlined function */
        int64_t flat[2]; /* spent in the inlined call, including calls inlined into it */
        int64_t cumulative[2];
        size_t seen;
};

struct line_file {
        const char *file;
        size_t first, end;    /* its range of the sorted rows */
        uint32_t location[2]; /* of the row with the greatest cost on that side; NO_LOCATION: none */
        int64_t flat[2], cumulative[2];
        size_t seen;
        bool has_text;              /* the whole text is in the answer */
        struct source_lines source; /* of the object after, or before if only that has samples */
        bool has_base_source;       /* the object before is another one */
        bool is_aligned;            /* rows before are at the lines after to which they correspond */
        struct line_alignment alignment;
        struct source_lines base_source;
};

/* What the answer has of source files. */
enum source_form { SOURCE_NONE, SOURCE_LINE, SOURCE_FILE };

struct line_table {
        struct query_call *q;
        struct loaded_sides *l;
        struct function_targets targets;
        enum source_form form;
        const char *server;        /* shown in upload commands; NULL: none */
        struct number_map numbers; /* row numbers by name and line */
        struct line_row *rows;     /* owned */
        size_t count, capacity;
        struct number_map site_numbers; /* call sites by row and name */
        struct call_site *sites;        /* owned */
        size_t site_count, site_capacity;
        uint32_t *file_of_frame; /* owned; index in files, of target frames */
        struct line_file *files; /* owned */
        size_t file_count;
        int64_t flat[2], cumulative[2];   /* of all targets */
        struct memory_reservation memory; /* of the owned arrays */
};

/** Writer of one row. */
typedef void put_line_row(struct line_table *t, struct line_file *f, const struct line_row *r, void *context);

/** Call put for each row by file and line, with the text of its file loaded. */
enum status line_table_visit_rows(struct line_table *t, put_line_row *put, void *context) MUST_CHECK;

/** A location that identifies the object of the file's text. */
const struct scan_location *line_table_find_location(const struct line_table *t, const struct line_file *f);

/** The text of a row's line, from the side after if that has the line. NULL: none. As source_lines_get(). */
const char *line_file_get_row_text(const struct line_file *f, const struct line_row *r, size_t *n_ret);

/** The first call site of a row in t->sites, or of the next row that has one. */
size_t line_table_find_first_site(const struct line_table *t, uint32_t row);

/** Write the answer in the format of the request. */
enum status line_table_put_answer(struct line_table *t) MUST_CHECK;

#endif
