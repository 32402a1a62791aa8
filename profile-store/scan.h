/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_H
#define CAIRN_PROFILE_STORE_SCAN_H

/**
 * @file
 * The read path: a consistent snapshot of parts and head. It has every batch acknowledged before store_scan_begin(), by
 * this node and, if the store asks its peers, by those that answer.
 *
 * Threads: one scan belongs to one thread; scans are independent of each other.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/threads/work_meter.h"
#include "profile-formats/sample_count.h"
#include "profile-store/profile_store.h"

struct store_scan;
struct missing_nodes;

enum label_match { LABEL_EQUAL, LABEL_NOT_EQUAL, LABEL_REGEX, LABEL_NOT_REGEX };

struct label_matcher {
        /*
         * As sent, "service.name", or the column spelling "service_name". "trace_id" and "span_id" are the ids of a
         * sample in lower-case hexadecimal, or the label of that name if the sample has no such id. "__profile_type__"
         * is the sample's profile type id, "__name__", "__type__", "__unit__", "__period_type__" and "__period_unit__"
         * are its parts.
         */
        const char *key;
        enum label_match op;
        const char *value; /* a missing label matches like the empty string (Prometheus) */
        /* For regex operators: match of the whole of value; borrowed from the caller. */
        bool (*match)(void *context, const char *text, size_t n);
        void *context;
};

struct scan_filter {
        int64_t from_unix_ns, to_unix_ns; /* half-open */
        const char *type;                 /* profile type id, or NULL for any */
        const struct label_matcher *matchers;
        size_t matcher_count;
};

/** Begin: takes a snapshot of the tables and the head. */
enum status store_scan_begin(struct profile_store *store, struct store_scan **ret, struct error *err) MUST_CHECK;
void store_scan_end(struct store_scan *scan);

/** The nodes of which the scan may lack samples; borrowed from the scan. */
const struct missing_nodes *store_scan_get_missing_nodes(const struct store_scan *scan);

/** Whether the scan has only queued batches, since the object store has been away from the start (TABLES_MAY_BE_AWAY).
 */
bool store_scan_lacks_tables(const struct store_scan *scan);

/**
 * Charge all further work of the scan to a meter, which may end the scan.
 * @param meter  borrowed; NULL: unlimited, the default.
 */
void store_scan_set_meter(struct store_scan *scan, struct work_meter *meter);

/** Begin a scan of profiles outside of a store, with the frames that they contain. */
enum status store_scan_begin_profiles(const struct profile *const *profiles, size_t count, struct store_scan **ret,
                                      struct error *err) MUST_CHECK;

typedef uint8_t stack_id[16];

/** Sum of the values of all matching samples, one entry per stack. */
struct stack_sum {
        stack_id id;
        int64_t value;
        uint64_t samples;
};

struct stack_sums {
        struct stack_sum *items; /* owned */
        size_t count;
        struct memory_reservation memory; /* of items */
        char unit[32];                    /* of value; "" when nothing matched; different units are ST_USAGE */
        char type[256];                   /* "" when nothing matched, or several types with the same unit did */
        int64_t period;                   /* of all samples; 0: unknown */
        bool several_periods;             /* of the samples; `period` is one of them */
};

void stack_sums_deinit(struct stack_sums *s); /* also fine on a zeroed one */

enum status store_scan_sum(struct store_scan *scan, const struct scan_filter *filter, struct stack_sums *ret,
                           struct error *err) MUST_CHECK;

/** Called for each matching sample; any status but ST_OK stops the visit. For series and exports. */
typedef enum status store_scan_sample(void *context, int64_t time_unix_ns, int64_t value, const stack_id id);
enum status store_scan_visit(struct store_scan *scan, const struct scan_filter *filter, store_scan_sample *each,
                             void *context, struct error *err) MUST_CHECK;

/* One resolved location; texts are borrowed from the scan. */
struct scan_frame {
        const char *function; /* readable; "" unknown */
        const char *linkage_name;
        const char *file;   /* "" unknown */
        int64_t line;       /* 0 unknown */
        int64_t start_line; /* of the function; 0 unknown */
        bool inlined;
};
struct scan_location {
        uint64_t location_id;
        const struct build_id *build_id; /* never NULL; size 0: unknown; locations of an object may share it */
        uint64_t address;
        const char *mapping;         /* path of the object, "" unknown */
        const char *state;           /* symbol_state_name() */
        enum symbol_quality quality; /* of the object's symbols at the time of the lookup */
        bool is_kernel;
        bool is_file_offset;             /* what address is; else an address in the object */
        const struct scan_frame *frames; /* innermost first */
        uint32_t frame_count;
};

/**
 * The stacks of a sum and their locations.
 * @param stacks_ret[i] for sums->items[i]: indexes into locations, leaf first.
 */
struct scan_stacks {
        struct scan_location *locations;
        size_t location_count;
        uint32_t *indexes; /* indexes of all stacks, one after another */
        size_t *first;     /* count + 1 entries: stack i is indexes[first[i] .. first[i+1]) */
        size_t count;
};
/** Owned by the scan, valid until store_scan_end(). */
enum status store_scan_resolve(struct store_scan *scan, const struct stack_sums *sums, const struct scan_stacks **ret,
                               struct error *err) MUST_CHECK;

/** When samples were taken: from the start of the first to the end of the last. */
struct scan_span {
        int64_t first_unix_ns, end_unix_ns; /* the end includes the durations of the samples */
        bool is_empty;                      /* no sample was selected; the times are 0 */
};
enum status store_scan_find_span(struct store_scan *scan, const struct scan_filter *filter, struct scan_span *ret,
                                 struct error *err) MUST_CHECK;

/**
 * Sorted lists, owned by the scan, of samples that the filter selects. Label names are in column spelling, without
 * those of profile-formats/hidden_label.h.
 */
struct scan_names {
        const char *const *items;
        size_t count;
};
enum status store_scan_list_types(struct store_scan *scan, const struct scan_filter *filter, struct scan_names *ret,
                                  struct error *err) MUST_CHECK;
enum status store_scan_list_label_names(struct store_scan *scan, const struct scan_filter *filter,
                                        struct scan_names *ret, struct error *err) MUST_CHECK;
enum status store_scan_list_label_values(struct store_scan *scan, const char *key, const struct scan_filter *filter,
                                         struct scan_names *ret, struct error *err) MUST_CHECK;

struct scan_label_count {
        const char *name; /* in column spelling */
        uint32_t values;  /* LIMIT_LABEL_VALUES_COUNTED + 1: more than LIMIT_LABEL_VALUES_COUNTED */
};
/**
 * Count the values of all labels in one pass, sorted by name, without hidden labels and those without values. Owned by
 * the scan.
 */
enum status store_scan_count_label_values(struct store_scan *scan, const struct scan_filter *filter,
                                          struct scan_label_count **ret, size_t *count_ret,
                                          struct error *err) MUST_CHECK;

/** Bounds of the times of all samples, from statistics only: [*from_ret, *to_ret]. False without samples. */
bool store_scan_get_time_range(const struct store_scan *scan, int64_t *from_ret, int64_t *to_ret);

/**
 * Unresolved locations per object and reason, with the number of samples whose stack has one. Objects without a
 * build-id are distinguished by path. Most samples first; owned by the scan.
 */
struct scan_missing {
        struct build_id build_id;
        const char *mapping;
        const char *state;
        uint64_t locations;
        struct counted_samples samples;
};
enum status store_scan_list_missing(struct store_scan *scan, const struct scan_filter *filter,
                                    struct scan_missing **ret, size_t *count_ret, struct error *err) MUST_CHECK;

/**
 * Count samples with an unresolved location in their stack, by reason; a sample with several reasons counts for each.
 */
enum status store_scan_count_unresolved(struct store_scan *scan, const struct scan_filter *filter,
                                        uint64_t samples_ret[static SYMBOL_STATE_COUNT], struct error *err) MUST_CHECK;

/**
 * Visit the build-id of each location, of samples of any age; equal ones may come several times. A file that cannot be
 * read is a failure.
 */
enum status store_scan_visit_objects(struct store_scan *scan, void (*visit)(void *context, const struct build_id *id),
                                     void *context, struct error *err) MUST_CHECK;

/** An object with locations that an upload of debuginfo would resolve or improve. */
struct scan_upload {
        struct build_id build_id;
        const char *mapping;
        enum symbol_state state;     /* why its locations are unresolved: the reason with the most samples */
        enum symbol_quality quality; /* best quality of any lookup */
        uint64_t locations;
        struct counted_samples samples; /* with one of these locations in the stack */
        int64_t value;                  /* of those samples; meaningful only if they have one unit */
};

/** Both lists are sorted by samples, most first, with each build-id once; owned by the scan. */
struct scan_uploads {
        struct scan_upload *missing; /* locations without frames that debuginfo would resolve */
        size_t missing_count;
        struct scan_upload *poor; /* locations with symbol names only; debuginfo would add lines and inlined frames */
        size_t poor_count;
        struct counted_samples samples; /* all that the filter selects */
        char unit[32];                  /* of values; "" when nothing matched, units differ or a type is a gauge */
};

/** @param types  only samples of these; NULL: all that the filter selects. */
enum status store_scan_rank_uploads(struct store_scan *scan, const struct scan_filter *filter,
                                    const struct scan_names *types, struct scan_uploads *ret,
                                    struct error *err) MUST_CHECK;

#endif
