/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_TOP_H
#define CAIRN_QUERY_TOP_H

/**
 * @file
 * Cost per function: flat at the leaf, cumulative anywhere in the stack. A function that occurs several times in a
 * stack (recursion) counts once. Private to query/.
 */
#include "common/json_out.h"
#include "query/merged_profile.h"

struct top_row {
        uint32_t frame; /* one frame of that name */
        int64_t flat[2], cumulative[2];
        int64_t line; /* of the most expensive leaf, else of the most expensive stack; 0 unknown */
        int64_t line_value;
        bool line_of_leaf;
};

struct top {
        struct top_row *rows; /* owned; by falling flat, then cumulative */
        size_t count;
};

/** @param b  the second selection of a diff, or NULL. A diff is sorted by the change of flat. */
enum status top_build(const struct frame_table *frames, const struct merged_profile *a, const struct merged_profile *b,
                      struct top *ret, struct error *err) MUST_CHECK;
void top_deinit(struct top *t);
#define _cleanup_top_ _cleanup_(top_deinit)

/** Keep the rows whose readable, short or linkage name matches. */
enum status top_filter(struct top *t, const struct frame_table *frames,
                       bool (*matches)(void *context, const char *text, size_t n), void *context,
                       struct error *err) MUST_CHECK;

struct top_form {
        uint64_t limit; /* rows; 0: all */
        bool diff;
        bool is_short; /* names */
};

void top_put_rows(const struct top *t, const struct frame_table *frames, const struct top_form *form, const char *key,
                  struct json_out *j);
void top_put_text(const struct top *t, const struct frame_table *frames, const struct merged_profile *a,
                  const struct merged_profile *b, const struct top_form *form, struct buf *ret);

#endif
