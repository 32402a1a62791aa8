/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_OTLP_LAYOUT_H
#define CAIRN_PROFILE_FORMATS_OTLP_OTLP_LAYOUT_H

/**
 * @file
 * The version of OTLP profiles that a request was written in. Messages do not name it, and 1.10.0 gave the fields of
 * Sample other numbers:
 *
 *     field   1.8.0, 1.9.0             1.10.0 and later
 *     2       values                   attribute_indices
 *     3       attribute_indices        link_index
 *     4       link_index               values
 *
 * A request has one writer, so that the samples of all its profiles together are the evidence:
 *  1. A packed run in field 4 can only be values, one in field 3 only attribute indices. Protobuf libraries pack.
 *  2. Without both, each sample is read in both layouts. If only one of them has every index inside its table and no
 *     single field twice, it is the writer's (async-profiler, which does not pack values).
 *  3. A writer packs all repeated fields or none: if only one layout agrees with this, it is the writer's.
 *  4. Dictionaries have no unused entries, and samples keep the rules of the specification: values or timestamps,
 *     equal numbers of them if there are both, no attribute twice. If only one layout has all attributes and links
 *     used or only one keeps the rules, it is the writer's, unless these two contradict each other.
 *  5. Otherwise the request is refused, because a label could be taken for a value.
 *
 * Threads: no shared state.
 */
#include "profile-formats/otlp/otlp_dictionary.h"

/** Field numbers of Sample that depend on the version. */
struct otlp_sample_fields {
        uint32_t values, attributes, link;
};

/** Those of 1.10.0 and later. */
extern const struct otlp_sample_fields otlp_current_fields;

/** ST_BAD_DATA if a profile of the request has the fields of a version before 1.8.0. */
enum status otlp_check_age(const void *data, size_t n, struct error *err) MUST_CHECK;

/**
 * Find the layout of a request's samples.
 * @param d  the request's dictionary, read; its scratch memory is used.
 * @return ST_BAD_DATA: the samples could have both layouts.
 */
enum status otlp_find_layout(struct otlp_dictionary *d, const void *data, size_t n, struct otlp_sample_fields *ret,
                             struct error *err) MUST_CHECK;

#endif
