/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_GROUP_TABLE_H
#define CAIRN_PROFILE_STORE_SCAN_GROUP_TABLE_H

/*
 * Groups of samples, and their sums by stack or step, as found by one thread of store_scan_sum_groups(). To look up a
 * group, collect its labels first:
 *
 *     group_table_clear_labels(t);
 *     group_table_add_label(t, name, value, err);          one of by->labels, in their order
 *     group_table_collect_label(t, name, value, err);      one of all labels, in any order
 *     group_table_find_or_add(t, &kind, &group, err);
 */
#include "common/memory/arena.h"
#include "common/memory/buf.h"
#include "profile-store/rows/key_map.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan_groups.h"

struct collected_label {
        struct parquet_bytes name, value; /* borrowed */
};

struct group_table {
        const struct scan_group_by *by;
        struct arena *arena;       /* of texts; borrowed */
        struct key_map group_keys; /* identity of a group to its index */
        struct key_map stack_keys; /* stack id to its number */
        struct key_map sum_keys;   /* (group, item) to the index of the sum */
        struct scan_group_sums sums;
        size_t group_capacity, sum_capacity, stack_capacity;
        struct buf identity; /* of the group being looked up */
        struct collected_label *labels;
        size_t label_count, label_capacity;
        uint64_t series[2]; /* hash of all collected labels */
};

void group_table_init(struct group_table *t, const struct scan_group_by *by, struct arena *arena);
void group_table_deinit(struct group_table *t);

/* Whether groups depend on every label of a sample. */
bool group_by_needs_all_labels(const struct scan_group_by *by);
/* Whether a label is one of all labels of a sample. */
bool group_by_collects_label(const struct scan_group_by *by, const char *name, size_t n);
bool group_by_sums_stacks(const struct scan_group_by *by);
bool group_by_numbers_items(const struct scan_group_by *by); /* items are stacks or times, numbered as found */
/* Add a value at a time, of sums by time. */
enum status group_table_add_at_time(struct group_table *t, uint32_t group, int64_t time_us, int64_t value,
                                    struct error *err) MUST_CHECK;
bool group_by_selects_type(const struct scan_group_by *by, struct parquet_bytes type);

void group_table_clear_labels(struct group_table *t);
enum status group_table_add_label(struct group_table *t, struct parquet_bytes name, struct parquet_bytes value,
                                  struct error *err) MUST_CHECK;
/* Adds the label to the series; with by->all_labels it is also a label of the group. */
enum status group_table_collect_label(struct group_table *t, struct parquet_bytes name, struct parquet_bytes value,
                                      struct error *err) MUST_CHECK;

struct group_kind {
        struct parquet_bytes type, unit;
        int64_t period;
};
enum status group_table_find_or_add(struct group_table *t, const struct group_kind *kind, uint32_t *ret,
                                    struct error *err) MUST_CHECK;

enum status group_table_number_stack(struct group_table *t, const struct hash128 *id, uint32_t *ret,
                                     struct error *err) MUST_CHECK;

/* Saturates. */
enum status group_table_add_value(struct group_table *t, uint32_t group, uint32_t item, int64_t value, uint64_t samples,
                                  struct error *err) MUST_CHECK;

/* Add all sums of `from`; texts are copied. */
enum status group_table_merge(struct group_table *into, const struct group_table *from, struct work_meter *meter,
                              struct error *err) MUST_CHECK;

/*
 * Sort groups by kind and labels, stacks by id and sums by both, so that the result does not depend on threads. The
 * caller owns the result; the table is left empty.
 */
enum status group_table_finish(struct group_table *t, struct work_meter *meter, struct scan_group_sums *ret,
                               struct error *err) MUST_CHECK;

static inline struct parquet_bytes as_text_bytes(const char *text)
{
        return (struct parquet_bytes){ (const uint8_t *)text, __builtin_strlen(text) };
}

#endif
