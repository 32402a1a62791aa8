/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_STABLE_CLOCK_H
#define CAIRN_COMMON_STABLE_CLOCK_H

/**
 * @file
 * Wall-clock time for decisions that delete something because it is old.
 *
 * The wall clock can be set while the process runs; ages computed from times
 * that were stored before are then wrong by the step. This clock follows the
 * wall clock, but a step forward (measured against CLOCK_BOOTTIME, so that a
 * suspend is none) counts only after it has stood for STABLE_CLOCK_HOLD_S:
 * nothing is deleted early because of a wrong time that is corrected within a
 * day. A step back counts at once: it only makes things look younger.
 *
 * At the start of a process the wall clock is believed.
 *
 * Times that others send are compared with a range instead: for
 * STABLE_CLOCK_HOLD_S after a step it spans the times before and after the step,
 * because either may be the right one.
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

#define STABLE_CLOCK_STEP_S 60 /* a smaller change is a correction, and followed at once */
#define STABLE_CLOCK_HOLD_S 86400

struct stable_clock {
        bool is_set;
        int64_t offset_ns;                     /* wall clock minus CLOCK_BOOTTIME, as it counts */
        int64_t last_offset_ns;                /* at the last reading */
        int64_t held_offset_ns;                /* a step forward that does not count yet, */
        int64_t held_since_ns;                 /* of CLOCK_BOOTTIME; 0: no step is held */
        int64_t low_offset_ns, high_offset_ns; /* of the clock now, and around the steps of the last day */
        int64_t stepped_ns;                    /* of CLOCK_BOOTTIME: the last step; 0: none within a day */
        uint64_t steps;                        /* in both directions */
        int64_t last_step_ns;
};

/** Update c with readings of both clocks. Returns the time that counts, nanoseconds since 1970. */
int64_t stable_clock_read(struct stable_clock *c, int64_t wall_ns, int64_t boot_ns);

/** Seconds and milliseconds since 1970, of the process's one stable clock. */
int64_t stable_unix_s(void);
int64_t stable_unix_ms(void);

/**
 * The range of times that may be the right one, nanoseconds since 1970: equal but for a day after a step in either
 * direction.
 */
void stable_clock_get_range(int64_t *earliest_ret, int64_t *latest_ret);

/**
 * Whether the wall clock stepped forward and the step does not count yet.
 * @param held_s_ret size of the step in seconds; @param left_s_ret seconds until it counts.
 * @param steps_ret steps in both directions since the process began.
 */
bool stable_clock_is_held(int64_t *held_s_ret, int64_t *left_s_ret, uint64_t *steps_ret);

#endif
