/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_RANDOM_DRAW_H
#define CAIRN_TESTS_SUPPORT_RANDOM_DRAW_H

/** @file Random draws of simulated services. Equal states give equal draws. Threads: one state for all. */
#include <stdint.h>

extern uint64_t random_state;

double draw_uniform(void); /* in (0, 1) */
double draw_normal(void);  /* mean 0, variance 1 */
int64_t draw_poisson(double mean);

#endif
