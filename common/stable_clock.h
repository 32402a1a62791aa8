/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_STABLE_CLOCK_H
#define CAIRN_COMMON_STABLE_CLOCK_H

/**
 * @file
 * Wall-clock time for decisions that delete data by age.
 *
 * The wall clock can be set while the process runs; ages computed from previously stored times are then wrong by the
 * step. This clock follows the wall clock, but a step forward (measured against CLOCK_BOOTTIME, so a suspend is not a
 * step) takes effect only after it has persisted for STABLE_CLOCK_HOLD_S: a wrong time that is corrected within a day
 * does not delete anything early. A step back takes effect at once: it only makes data look younger.
 *
 * At process start the wall clock is trusted.
 *
 * Received timestamps are compared with a range instead: for STABLE_CLOCK_HOLD_S after a step it spans the times before
 * and after the step, because either may be correct.
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

#define STABLE_CLOCK_STEP_S 60 /* a smaller change is a correction and takes effect at once */
#define STABLE_CLOCK_HOLD_S 86400

struct stable_clock {
        bool is_set;
        int64_t offset_ns;                     /* wall clock minus CLOCK_BOOTTIME, in effect */
        int64_t last_offset_ns;                /* at the last reading */
        int64_t held_offset_ns;                /* offset after a step forward that is not in effect yet */
        int64_t held_since_ns;                 /* CLOCK_BOOTTIME of that step; 0: none */
        int64_t low_offset_ns, high_offset_ns; /* current offset, and those before the steps of the last day */
        int64_t stepped_ns;                    /* CLOCK_BOOTTIME of the last step; 0: none within a day */
        uint64_t steps;                        /* in both directions */
        int64_t last_step_ns;
};

/** Update c with readings of both clocks. Returns the time in effect, nanoseconds since 1970. */
int64_t stable_clock_read(struct stable_clock *c, int64_t wall_ns, int64_t boot_ns);

/** Seconds and milliseconds since 1970 of the process-wide stable clock. */
int64_t stable_unix_s(void);
int64_t stable_unix_ms(void);

/**
 * The range of possibly correct times, nanoseconds since 1970: both equal, except for a day after a step in either
 * direction.
 */
void stable_clock_get_range(int64_t *earliest_ret, int64_t *latest_ret);

/**
 * Whether the wall clock stepped forward and the step is not in effect yet.
 * @param held_s_ret size of the step in seconds; @param left_s_ret seconds until it takes effect.
 * @param steps_ret steps in both directions since the process began.
 */
bool stable_clock_is_held(int64_t *held_s_ret, int64_t *left_s_ret, uint64_t *steps_ret);

#endif
