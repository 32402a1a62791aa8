/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_FRAMES_H
#define CAIRN_QUERY_ENGINE_FRAMES_H

/**
 * @file
 * Interning of frames for queries.
 *
 * Frames are equal when function, file and kind are equal; `name` is the index of
 * the pair of function and file, which is a row of a top table. One table may
 * serve several scans (a diff has two).
 *
 * Threads: one table belongs to one thread.
 */
#include "common/memory/arena.h"
#include "common/threads/work_meter.h"
#include "profile-formats/number_map.h"
#include "profile-store/scan.h"

/* FRAME_LABEL: a label value that samples are grouped by. 4 is "(other)" in flame graph data. */
enum frame_kind { FRAME_NATIVE, FRAME_INLINED, FRAME_KERNEL, FRAME_UNRESOLVED, FRAME_LABEL = 5 };
const char *frame_kind_name(enum frame_kind k); /* "native", "inlined", "kernel", "unresolved", "label" */

struct query_frame {
        const char *function; /* never ""; all texts but state live in the table's arena */
        const char *linkage_name;
        const char *short_name; /* symbol_short_name(); the pointer `function` when that is as short */
        const char *file;       /* "" unknown */
        const char *mapping;    /* path of the first object with this frame */
        const char *state;      /* symbol_state_name() */
        enum frame_kind kind;
        uint32_t name;
        uint32_t next; /* another frame with the same name, plus one; 0: none */
};

/** Whether its readable, linkage or short name equals text. */
bool query_frame_has_name(const struct query_frame *f, const char *text);

/** Which names an answer has; NAMES_DEFAULT: the default of the output format. */
enum query_names { NAMES_DEFAULT, NAMES_FULL, NAMES_SHORT };
static inline const char *query_frame_name(const struct query_frame *f, bool is_short)
{
        return is_short ? f->short_name : f->function;
}

/* Values are untrusted: a sum that does not fit is the nearest number that does, which the answer notes. */
static inline void add_saturating(int64_t *sum, int64_t v)
{
        if (__builtin_add_overflow(*sum, v, sum))
                *sum = v < 0 ? INT64_MIN : INT64_MAX;
}

/*
 * The sum of the absolute values of all that an answer adds up: below INT64_MAX, each sum of any of them is exact.
 */
typedef unsigned __int128 value_magnitude;

static inline void add_magnitude(value_magnitude *m, int64_t v)
{
        *m += v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

/* Of the values of two sides. */
static inline uint64_t get_absolute_change(const int64_t v[2])
{
        return v[1] > v[0] ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
}

/* A text of a scan and its copy in the table. */
struct copied_text {
        const char *from, *copy;
};

struct frame_table {
        struct work_meter *meter; /* NULL: unlimited; borrowed */
        struct arena arena;
        struct number_map names;
        uint32_t *name_frames;     /* first frame of each name; owned */
        struct query_frame *items; /* owned */
        uint32_t count, name_count;
        size_t capacity, name_capacity;
        /*
         * By frame, of the first replaced_count ones: the frame that replaces it in a comparison (function_matching.h),
         * or itself. NULL: none were replaced. Owned.
         */
        uint32_t *replaced_by;
        uint32_t replaced_count;
        struct copied_text file, mapping; /* cache of the last copy: the next location often has the same */
        struct memory_reservation memory; /* of items and name_frames */
};

/** The frame that stands for a frame in a comparison. */
static inline uint32_t frame_table_get_replacement(const struct frame_table *t, uint32_t frame)
{
        return t->replaced_by && frame < t->replaced_count ? t->replaced_by[frame] : frame;
}

/** @param meter  charged for work on frames, including that of top and tree; borrowed; NULL: unlimited. */
void frame_table_init(struct frame_table *t, struct work_meter *meter);
void frame_table_deinit(struct frame_table *t);
#define _cleanup_frame_table_ _cleanup_(frame_table_deinit)

/** Add a frame of kind FRAME_LABEL. */
enum status frame_table_add_label(struct frame_table *t, const char *text, uint32_t *ret, struct error *err) MUST_CHECK;

/** The hash that identifies a pair of texts. Any thread. */
struct number_key make_frame_key(const char *function, const char *file);

/**
 * @param frame  copied; name, next and short_name are ignored.
 * @param key    make_frame_key() of its function and file.
 * @param ret    its index. A new frame's short_name is its function until frame_table_set_short_names().
 */
enum status frame_table_find_or_add(struct frame_table *t, const struct query_frame *frame,
                                    const struct number_key *key, uint32_t *ret, struct error *err) MUST_CHECK;

/** Set the short names of the frames from index `first` on, those added since the last call. */
enum status frame_table_set_short_names(struct frame_table *t, uint32_t first, struct error *err) MUST_CHECK;

#endif
