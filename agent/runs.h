/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_RUNS_H
#define CAIRN_AGENT_RUNS_H

/**
 * @file
 * Runs of numbers out of a fixed space, for what lies in BPF maps.
 *
 * A run that was given back may still be read by a program, so it can be taken
 * again only after runs_settle(), which is called when every program that ran
 * before has ended. Runs never cross a multiple of the boundary.
 *
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_of_numbers {
        uint32_t first, count;
};

struct runs {
        struct run_of_numbers *free; /* owned; ascending, apart */
        size_t free_count, free_capacity;
        struct run_of_numbers *given_back; /* owned */
        size_t given_back_count, given_back_capacity;
        uint32_t boundary;
        uint64_t in_use; /* numbers, those given back included */
};

/** All numbers below count are free. @param boundary 0: none. False without memory. */
bool runs_init(struct runs *r, uint32_t count, uint32_t boundary);
void runs_deinit(struct runs *r);

/** The lowest run of count numbers; false when there is none. */
bool runs_take(struct runs *r, uint32_t count, struct run_of_numbers *ret);

/** Without memory to remember it, the run is lost until the end. */
void runs_give_back(struct runs *r, struct run_of_numbers run);

/** What was given back is free. */
void runs_settle(struct runs *r);

#endif
