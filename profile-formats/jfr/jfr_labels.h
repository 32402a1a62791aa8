/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_JFR_JFR_LABELS_H
#define CAIRN_PROFILE_FORMATS_JFR_JFR_LABELS_H

/**
 * @file
 * Labels that Pyroscope's Java agent sends beside a recording: a protobuf message with strings by id, and sets of
 * labels by the context id that events name (profile-formats/proto/jfr_labels.proto).
 *
 * Threads: no shared state.
 * Source: grafana/jfr-parser, pprof/jfr_labels.pb.go.
 */
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"

/* A range of the profile's label table. */
struct jfr_label_set {
        uint32_t first, count;
};

struct jfr_labels {
        struct number_map contexts; /* number of a context by its id; both owned */
        struct jfr_label_set *sets; /* by number */
        size_t set_capacity;
        struct number_map strings;
        uint32_t *string_numbers; /* in the profile, by number */
        size_t string_capacity;
        bool is_given; /* labels were sent */
};

/** Read the message, add its strings and label sets to the profile. @param ret jfr_labels_deinit() it in every case. */
enum status jfr_labels_read(const void *data, size_t n, struct profile *p, struct jfr_labels *ret,
                            struct error *err) MUST_CHECK;
void jfr_labels_deinit(struct jfr_labels *l);

/** The labels of a context; none when it is not known. */
struct jfr_label_set jfr_labels_find(const struct jfr_labels *l, uint64_t context_id);

/** The profile's string with this id; 0 when it is not known. */
uint32_t jfr_labels_find_string(const struct jfr_labels *l, uint64_t string_id);

#endif
