/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_SUM_H
#define CAIRN_PROFILE_FORMATS_PROFILE_SUM_H

/**
 * @file
 * Sum of profiles: samples with the same stack, type and labels become one with the sum of their values, from the start
 * of the first to the end of the last. Memory depends on the number of distinct stacks, not on the length of a run.
 *
 * Threads: one thread at a time.
 */
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"

struct profile_sum {
        struct profile profile; /* the sum; may be moved out and replaced by zeroes */
        struct number_map mappings, locations, samples;
};

/** @param max_bytes limit on the memory of the profile; the maps take about a quarter as much in addition. */
enum status profile_sum_init(struct profile_sum *s, size_t max_bytes, struct error *err) MUST_CHECK;
void profile_sum_deinit(struct profile_sum *s);

/**
 * Add all samples of p.
 * @param added_ret  how many of p's samples are in the sum, also on failure.
 * @return ST_TOO_BIG past a limit: the sum stays valid, but nothing more can be added.
 */
enum status profile_sum_add(struct profile_sum *s, const struct profile *p, uint32_t *added_ret,
                            struct error *err) MUST_CHECK;

#endif
