/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_FRAMES_H
#define CAIRN_QUERY_FRAMES_H

/**
 * @file
 * Interning of frames for queries.
 *
 * Frames are equal when function, file and kind are equal; `name` numbers the
 * distinct pairs of function and file, which are the rows of a top table. One
 * table serves several scans (a diff has two).
 *
 * Threads: one table belongs to one thread.
 */
#include "common/arena.h"
#include "common/work_meter.h"
#include "profile-formats/number_map.h"
#include "profile-store/scan.h"

/* FRAME_LABEL: not of a stack, but a value that samples are grouped by. 4 is "(other)" in flame graph data. */
enum frame_kind { FRAME_NATIVE, FRAME_INLINED, FRAME_KERNEL, FRAME_UNRESOLVED, FRAME_LABEL = 5 };
const char *frame_kind_name(enum frame_kind k); /* "native", "inlined", "kernel", "unresolved", "label" */

struct query_frame {
        const char *function; /* never ""; all texts but state live in the table's arena */
        const char *linkage_name;
        const char *short_name; /* symbol_short_name() of it; the pointer of function when that is as short */
        const char *file;       /* "" unknown */
        const char *mapping;    /* path of the first object with this frame */
        const char *state;      /* symbol_state_name() */
        enum frame_kind kind;
        uint32_t name;
        uint32_t next; /* number of another frame with that name, plus one; 0: none */
};

/** Whether one of its names, readable, linkage or short, equals text. */
bool query_frame_has_name(const struct query_frame *f, const char *text);

/** The name that is written; NAMES_DEFAULT: the default of the output format. */
enum query_names { NAMES_DEFAULT, NAMES_FULL, NAMES_SHORT };
static inline const char *query_frame_name(const struct query_frame *f, bool is_short)
{
        return is_short ? f->short_name : f->function;
}

/* Sums wrap rather than trap: values come from outside, and 64 bits hold centuries of nanoseconds. */
static inline void add_wrapping(int64_t *sum, int64_t v)
{
        *sum = (int64_t)((uint64_t)*sum + (uint64_t)v);
}

/* A text of a scan and its copy in the table. */
struct copied_text {
        const char *from, *copy;
};

struct frame_table {
        struct work_meter *meter; /* NULL: unlimited; borrowed */
        struct arena arena;
        struct number_map names;
        uint32_t *name_frames;     /* of each name: its first frame; owned */
        struct query_frame *items; /* owned */
        uint32_t count, name_count;
        size_t capacity, name_capacity;
        struct copied_text file, mapping; /* the last of each: the next location often has the same */
        struct memory_reservation memory; /* of items and names */
};

/** @param meter  counts the work on frames, also of top and tree; borrowed; NULL: unlimited. */
void frame_table_init(struct frame_table *t, struct work_meter *meter);
void frame_table_deinit(struct frame_table *t);
#define _cleanup_frame_table_ _cleanup_(frame_table_deinit)

/** A frame of kind FRAME_LABEL. */
enum status frame_table_add_label(struct frame_table *t, const char *text, uint32_t *ret, struct error *err) MUST_CHECK;

/** The identity of a pair of texts, under which a frame is found. Any thread. */
struct number_key make_frame_key(const char *function, const char *file);

/**
 * @param frame  copied; name, next and short_name are ignored.
 * @param key    that of its function and file.
 * @param ret    its number. A new frame's short_name is its function until frame_table_set_short_names().
 */
enum status frame_table_find_or_add(struct frame_table *t, const struct query_frame *frame,
                                    const struct number_key *key, uint32_t *ret, struct error *err) MUST_CHECK;

/** Set the short names of the frames from number `first` on, which were added since it was last called. */
enum status frame_table_set_short_names(struct frame_table *t, uint32_t first, struct error *err) MUST_CHECK;

#endif
