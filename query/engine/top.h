/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_TOP_H
#define CAIRN_QUERY_ENGINE_TOP_H

/**
 * @file
 * Cost per function: flat counts stacks where it is the leaf, cumulative those that contain it anywhere. A function
 * that occurs several times in a stack (recursion) counts once. Private to query/.
 */
#include "common/json/json_out.h"
#include "query/engine/merged_profile.h"

struct top_row {
        uint32_t frame; /* a frame with that name */
        uint32_t seen;  /* while a side is added: index of the last entry that contains it, plus one */
        int64_t flat[2], cumulative[2];
        int64_t line; /* of the leaf with the greatest value, else of the stack with the greatest value; 0 unknown */
        int64_t line_value;
        bool line_of_leaf;
};

struct top {
        struct top_row *rows; /* owned; in the order of top_build() */
        size_t count;
        struct memory_reservation memory; /* of rows */
};

/** The entries [first, end) of a profile: those of one group. */
struct top_side {
        const struct merged_profile *m; /* NULL: no such side */
        size_t first, end;
};
static inline struct top_side top_side_of_all(const struct merged_profile *m)
{
        return (struct top_side){ m, 0, m->count };
}

/** Order of the rows. */
struct top_order {
        enum row_order by;     /* ties are resolved by the other cost, then by name */
        const int64_t *totals; /* of the sides of a diff, which is sorted by the change of shares; NULL: of values */
};

/** By falling absolute change of a cost between two sides, for sorting. @param totals  as in struct top_order. */
int compare_changes(const int64_t a[2], const int64_t b[2], const int64_t *totals);

/** @param sides  the second has m NULL except in a diff, which is sorted by the absolute change of the cost. */
enum status top_build(const struct frame_table *frames, const struct top_side sides[2], const struct top_order *order,
                      struct top *ret, struct error *err) MUST_CHECK;
void top_deinit(struct top *t);
#define _cleanup_top_ _cleanup_(top_deinit)

struct top_form {
        uint64_t limit; /* of rows; 0: all */
        bool diff;
        bool by_value; /* text of a diff: values, else shares of the totals of the sides */
        bool is_short; /* short names */
};

/** The rows as objects inside an array. @param groups  NULL: without the group's labels. */
void top_put_rows(const struct top *t, const struct frame_table *frames, const struct top_form *form,
                  const struct label_groups *groups, const struct label_group *group, struct json_out *j);

/** One line per selection: its total, samples, time range and selector. @param b  NULL without a diff. */
void top_put_text_header(const struct merged_profile *a, const struct merged_profile *b, struct buf *ret);

/** The table. @param totals  of the sides, to which percentages refer. */
void top_put_text(const struct top *t, const struct frame_table *frames, const char *unit, const int64_t totals[2],
                  const struct top_form *form, struct buf *ret);

/** The column names of top_put_csv(), after those of `groups`. */
void top_put_csv_header(const struct label_groups *groups, const struct top_form *form, struct buf *ret);
/** Rows, each preceded by the values of the group's labels. RFC 4180. */
void top_put_csv(const struct top *t, const struct frame_table *frames, const struct top_form *form,
                 const struct label_groups *groups, const struct label_group *group, struct buf *ret);

#endif
