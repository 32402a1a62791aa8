/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_LABEL_GROUPS_H
#define CAIRN_QUERY_ENGINE_LABEL_GROUPS_H

/**
 * @file
 * The groups of a query with `by`: one per combination of values of these labels, shared by both sides of a diff.
 * Groups beyond a limit are merged into one without labels, the last ("rest"). Private to query/.
 *
 * Threads: belongs to one thread.
 */
#include "common/json/json_out.h"
#include "common/memory/arena.h"
#include "common/threads/work_meter.h"
#include "profile-formats/number_map.h"
#include "profile-formats/sample_count.h"
#include "profile-store/scan_groups.h"

#define LIMIT_GROUP_LABELS 8
#define LIMIT_SHOWN_GROUPS 1000
#define DEFAULT_SHOWN_GROUPS 20

/* Label names, from "a,b". */
struct label_list {
        char *text; /* owned */
        const char *names[LIMIT_GROUP_LABELS];
        size_t count;
};
/** @param text  NULL: none.  @return ST_USAGE past LIMIT_GROUP_LABELS, or for an empty name. */
enum status label_list_parse(const char *text, struct label_list *ret, struct error *err) MUST_CHECK;
void label_list_deinit(struct label_list *l);

struct label_group {
        const char **values; /* one per label, "" missing; NULL: the rest */
        int64_t total[2];    /* by side */
        struct counted_samples samples[2];
};

struct label_groups {
        const struct label_list *labels; /* borrowed */
        struct work_meter *meter;        /* NULL: unlimited; borrowed */
        struct arena arena;
        struct memory_reservation memory; /* of the members below */
        struct number_map numbers;
        struct label_group *items; /* owned */
        size_t capacity;
        uint32_t count;
        uint32_t *shown_as;        /* index in `shown` of each group, set by label_groups_rank(). Owned */
        struct label_group *shown; /* by falling sum of both totals, the rest last; owned */
        uint32_t shown_count;
};

void label_groups_init(struct label_groups *g, const struct label_list *labels, struct work_meter *meter);
void label_groups_deinit(struct label_groups *g);

/** Find or add the group with these values, one for each label. */
enum status label_groups_find_or_add(struct label_groups *g, const struct scan_group_label *values, uint32_t *ret,
                                     struct error *err) MUST_CHECK;

void label_groups_add_value(struct label_groups *g, uint32_t group, unsigned side, int64_t value,
                            struct counted_samples samples);

/** Choose the groups to show; once, after all values were added. @param limit  0: LIMIT_SHOWN_GROUPS. */
enum status label_groups_rank(struct label_groups *g, uint64_t limit, struct error *err) MUST_CHECK;

/** {"name": "value", ...}; null for the rest. */
void label_group_put_json(const struct label_groups *g, const struct label_group *group, const char *key,
                          struct json_out *j);

/** A CSV field for each label, each followed by a comma; "(other)" for the rest. */
void label_group_put_csv(const struct label_groups *g, const struct label_group *group, struct buf *ret);

/** name="value", ...; "(other)" for the rest. */
void label_group_put_text(const struct label_groups *g, const struct label_group *group, struct buf *ret);

#endif
