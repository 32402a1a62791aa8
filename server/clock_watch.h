/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CLOCK_WATCH_H
#define CAIRN_SERVER_CLOCK_WATCH_H

/**
 * @file
 * Steps of the wall clock while the service runs (common/stable_clock.h): logged and counted.
 * Threads: one.
 */
#include <stdint.h>

struct clock_watch {
        uint64_t steps; /* that were logged */
};

/** Look at the clocks; to be called every second or so. */
void clock_watch_look(struct clock_watch *w);

#endif
