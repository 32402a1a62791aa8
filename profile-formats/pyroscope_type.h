/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PYROSCOPE_TYPE_H
#define CAIRN_PROFILE_FORMATS_PYROSCOPE_TYPE_H

/**
 * @file
 * Profile types of Pyroscope's /ingest, with the names that Pyroscope gives them. Go's mutex and block profiles can be
 * distinguished only by the form part sample_type_config, stacks without types only by the suffix of the application's
 * name, their unit and their sample rate.
 *
 * Threads: no shared state.
 * Source: grafana/pyroscope pkg/og/convert/pprof/profile.go, pkg/ingester/pyroscope/ingest_adapter.go.
 */
#include "common/json/json_value.h"
#include "profile-formats/profile.h"

/**
 * Give all types of a decoded pprof file the name (first part of the id) that Pyroscope gives them, unless the file
 * states their names.
 * @param config  the object of sample_type_config by sample type; NULL: the usual names.
 */
enum status pyroscope_name_types(struct profile *p, const struct json_value *config, struct error *err) MUST_CHECK;

/**
 * Subtract the previous profile's values of cumulative types (totals since the start of the process; by config, else
 * the usual types) from those of p. Results that are not positive are left out.
 * @param previous  its samples are unspecified afterwards.
 */
enum status pyroscope_subtract_previous(struct profile *p, struct profile *previous, const struct json_value *config,
                                        struct error *err) MUST_CHECK;

/** The type of samples in formats without types. */
struct pyroscope_stack_type {
        const char *id;       /* static; five parts */
        const char *timed_id; /* of samples at a known rate, whose values become nanoseconds; NULL: none */
};

/**
 * Find the type by the suffix of an application's name ("shop.alloc_space").
 * @param prefix_size_ret  length of the name without the suffix.
 * @return false: the name has no suffix that names a type.
 */
bool pyroscope_find_suffix_type(const char *name, struct pyroscope_stack_type *ret, size_t *prefix_size_ret);

/** Find the type by the parameter units; false when it is unknown. */
bool pyroscope_find_unit_type(const char *units, struct pyroscope_stack_type *ret);

#endif
