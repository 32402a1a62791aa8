/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_SAMPLE_COUNT_H
#define CAIRN_PROFILE_FORMATS_SAMPLE_COUNT_H

/**
 * @file
 * Numbers of samples: values divided by the sampling period.
 *
 * Values need not be multiples of the period. Counts are therefore summed with their fractions, and each number that is
 * shown is rounded once, by sample_count_round(): every answer about the same samples has the same number, whether it
 * was summed by stack, group, step or span.
 */
#include <stdbool.h>
#include <stdint.h>

#include "profile-formats/profile.h"

/** How values of a type with one period become numbers of samples. */
struct sample_count_rule {
        __int128 interval; /* of a sample; 0: the type does not tell, the values may be of any number of samples */
        int64_t unit;      /* of the values, in that of the interval */
};

/** @param period  in the unit of the type's period; 0 unknown. */
struct sample_count_rule profile_type_get_count_rule(const char *id, int64_t period);

/** whole + fraction / 2^63; zeroed: none. */
struct counted_samples {
        int64_t whole; /* saturates */
        uint64_t fraction : 63;
        uint64_t are_stacks : 1; /* stacks as sent are among them, each for any number of samples */
};

/**
 * Compute the number of samples that were taken for a sum of values.
 * @param stacks  that were sent with the values; counted instead if the type does not tell.
 * @return more than none, however small the value is.
 */
struct counted_samples compute_sample_count(const struct sample_count_rule *rule, int64_t value, uint64_t stacks);

void sample_count_add(struct counted_samples *sum, struct counted_samples count);

/** 1 if the first one is greater, -1 if it is less. */
int sample_count_compare(struct counted_samples a, struct counted_samples b);

/** Round to the nearest number; to 1 for less than a sample, and to 0 only for none. */
uint64_t sample_count_round(struct counted_samples count);

/**
 * Count the samples of a profile, of which several types may count the same ones: those of the type with most.
 * @param are_stacks_ret  the number of samples is unknown; the stacks as sent were counted.
 */
uint64_t profile_count_samples(const struct profile *p, bool *are_stacks_ret);

#endif
