/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_SAMPLES_H
#define CAIRN_PROFILE_FORMATS_OTLP_SAMPLES_H

/**
 * @file
 * The samples of an OTLP profile.
 * Private to the OTLP decoder.
 */
#include "profile-formats/label_list.h"
#include "profile-formats/otlp_dictionary.h"

extern const char otlp_too_old[]; /* what to say of messages that only old senders write */

struct otlp_decoder {
        struct otlp_dictionary dictionary;
        struct profile *p;
        struct buf values, timestamps; /* of the sample at hand, uint64_t each */
        struct reader last_attributes; /* the bytes whose label set is below: neighbours tend to share them */
        uint32_t last_first_label, last_label_count;
        bool last_valid, last_truncated;
};

/* What the samples of one Profile message have in common. */
struct otlp_context {
        struct label_list labels;
        uint32_t type;
        int64_t time_unix_ns, duration_ns;
};

/* Times past 2262 are cut. */
static inline int64_t otlp_clamp_time(uint64_t v)
{
        return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/** Set a label from an attribute, where it is one. */
enum status otlp_add_attribute(struct label_list *l, const struct otlp_attribute *a, struct error *err) MUST_CHECK;

/**
 * Set labels from a field of attribute indices.
 * @param truncated becomes true at ATTRIBUTE_STACK_TRUNCATED, which is then no label; NULL: it is one.
 */
enum status otlp_add_indexed(struct otlp_decoder *d, struct wire_field *f, const struct reader *at,
                             struct label_list *l, bool *truncated, struct error *err) MUST_CHECK;

/** Decode a Sample message into the profile. */
enum status otlp_read_sample(struct otlp_decoder *d, struct reader r, const struct otlp_context *c,
                             struct error *err) MUST_CHECK;

#endif
