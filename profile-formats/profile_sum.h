/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_SUM_H
#define CAIRN_PROFILE_FORMATS_PROFILE_SUM_H

/**
 * @file
 * Several profiles as one: samples of the same stack, type and labels become one sample with the sum of their values,
 * which begins with the first and lasts to the end of the last. A run of any length needs as much memory as it has
 * different stacks.
 *
 * Threads: one thread at a time.
 */
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"

struct profile_sum {
        struct profile profile; /* the sum; the owner may take it and leave zeroes */
        struct number_map mappings, locations, samples;
};

/** @param max_bytes bound on the sum's own memory; its tables of numbers take about a quarter as much again. */
enum status profile_sum_init(struct profile_sum *s, size_t max_bytes, struct error *err) MUST_CHECK;
void profile_sum_deinit(struct profile_sum *s);

/**
 * Add all samples of p.
 * @param added_ret  how many of p's samples are in the sum, also on failure.
 * @return ST_TOO_BIG past a limit: the sum stays valid, and can take no more.
 */
enum status profile_sum_add(struct profile_sum *s, const struct profile *p, uint32_t *added_ret,
                            struct error *err) MUST_CHECK;

#endif
