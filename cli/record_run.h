/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_RECORD_RUN_H
#define CAIRN_CLI_RECORD_RUN_H

/**
 * @file
 * Sampling for a while: from the start to the end of a recording, all of it summed up in one profile.
 *
 * Threads: one at a time. Signals that end programs are blocked from record_begin() on.
 */
#include "agent/sampler.h"
#include "cli/held_files.h"
#include "cli/record_child.h"
#include "profile-formats/profile.h"

struct record_target {
        enum sampler_kind sampler;
        uint64_t frequency_hz, duration_s; /* 0: until something else ends it */
        const uint32_t *pids;              /* borrowed; none: the whole system */
        size_t pid_count;
        struct record_child *child;        /* borrowed; the one of pids that is to begin; NULL none */
        struct held_files *held;           /* borrowed; filled */
};

enum record_end { RECORD_TIME, RECORD_SIGNAL, RECORD_ENDED, RECORD_FULL };

/** What there is to say of a recording. */
struct record_counts {
        enum record_end end;
        uint64_t duration_ns;
        uint64_t sampler[SAMPLER_STAT_COUNT];
        uint64_t stacks;      /* user stacks, once an interval each; the next two of them */
        uint64_t cut_no_code, exited;
        uint64_t unreadable;  /* processes that ended before they were read */
        uint64_t unmapped;    /* processes whose unwind tables found no room */
        uint64_t unwind_full; /* files whose unwind table did */
        uint64_t dropped;     /* samples past LIMIT_RECORD_PROFILE_BYTES */
        char name[8];         /* of the sampler */
        char gaps[160], why[240], kernel_gap[240];
        unsigned cpu_count;
};

struct recording; /* in progress */

/** Block signals, and start the sampler. @param ret owned, record_destroy() */
enum status record_begin(const struct record_target *t, struct recording **ret, struct error *err) MUST_CHECK;
void record_destroy(struct recording *r);

/**
 * Let the child begin, and sample until the end.
 * @param ret         initialised here; profile_deinit() it on success only.
 * @param counts_ret  set on success.
 * @return ST_NOT_FOUND, ST_OS: the child cannot begin, see record_child_go(); others when sampling failed.
 */
enum status record_run(struct recording *r, struct profile *ret, struct record_counts *counts_ret,
                       struct error *err) MUST_CHECK;

/**
 * Wait until the child has ended, and pass on signals that only came here. They are blocked.
 * @param signal  one of them that came before; 0 none.
 */
void record_await_child(struct recording *r, int signal);

#endif
