/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_RECORD_RUN_H
#define CAIRN_CLI_COMMANDS_RECORD_RUN_H

/**
 * @file
 * Sample from the start to the end of a recording, and merge all samples into one profile.
 *
 * Threads: one at a time. Signals that end programs are blocked from record_begin() on.
 */
#include "cli/symbols/held_files.h"
#include "profile-formats/profile.h"
#include "sampling/samplers/sampler.h"

struct record_child {
        const char *name; /* borrowed */
        pid_t pid;        /* 0: none */
        int pidfd;        /* readable once the process has ended */
        int go, failure;  /* pipes: go releases the child, failure returns the errno of a failed exec */
        bool ended;
        int status;     /* of waitpid(), once it has ended */
        int exec_errno; /* errno of a failed exec; 0 none */
};

/**
 * Fork a child that waits for record_child_go(). It is never killed; signals of the terminal reach it directly.
 * @param argv  NULL-terminated; borrowed until record_child_go().
 */
enum status record_child_start(struct record_child *c, char **argv, struct error *err) MUST_CHECK;

/**
 * Let the child execute its command.
 * @return ST_NOT_FOUND: no such command; ST_OS: it cannot be run. The child has ended in both cases.
 */
enum status record_child_go(struct record_child *c, struct error *err) MUST_CHECK;

/** The exit status that a shell would report: the child's own, 128 and its signal, or 126 or 127 after a failed exec.
 */
int record_child_exit_code(const struct record_child *c);

/** A child that has not begun exits; a running one continues. */
void record_child_deinit(struct record_child *c);

#define EXIT_NOT_RUNNABLE 126 /* as in POSIX shells */
#define EXIT_NO_COMMAND 127

struct record_target;

/** Told about the progress of a recording. May be called several times a second. */
typedef void record_progress(const struct record_target *t, bool is_preparing, uint64_t elapsed_s);

struct record_target {
        enum sampler_kind sampler;
        uint64_t frequency_hz, duration_s; /* 0: no limit */
        const uint32_t *pids;              /* borrowed; none: all processes */
        size_t pid_count;
        bool latency;               /* also measure latency; with BPF only */
        struct record_child *child; /* borrowed; the member of pids that is to be released; NULL none */
        struct held_files *held;    /* borrowed; filled */
        record_progress *progress;  /* NULL: not called */
};

#define RECORD_PREPARE_S 20

enum record_end { RECORD_TIME, RECORD_SIGNAL, RECORD_ENDED, RECORD_FULL };

/** The outcome of a recording. */
struct record_counts {
        enum record_end end;
        uint64_t duration_ns;
        uint64_t sampler[SAMPLER_STAT_COUNT];
        uint64_t stacks; /* distinct user stacks per interval, summed; cut_no_code and exited count subsets */
        uint64_t cut_no_code, exited;
        uint64_t unreadable;  /* processes that ended before they were read */
        uint64_t unmapped;    /* processes without room for their unwind tables */
        uint64_t unwind_full; /* files without room for their unwind table */
        uint64_t dropped;     /* samples past LIMIT_RECORD_PROFILE_BYTES */
        char name[8];         /* of the sampler in use */
        char gaps[160], why[240], kernel_gap[240];
        unsigned cpu_count;
};

struct recording; /* in progress */

/** Block signals, and start the sampler. @param ret owned, record_destroy() */
enum status record_begin(const struct record_target *t, struct recording **ret, struct error *err) MUST_CHECK;
void record_destroy(struct recording *r);

/**
 * Release the child, and sample until the end. Without a child, the unwind tables of the running processes are built
 * first, for at most RECORD_PREPARE_S; samples of that time do not count.
 * @param ret         initialised here; profile_deinit() on success only.
 * @param counts_ret  set on success.
 * @return ST_NOT_FOUND, ST_OS: the child cannot be run, see record_child_go(); others: sampling failed.
 */
enum status record_run(struct recording *r, struct profile *ret, struct record_counts *counts_ret,
                       struct error *err) MUST_CHECK;

/**
 * Wait for the end of the child, and pass on signals that only this process received. They are blocked.
 * @param signal  one that arrived before; 0 none.
 */
void record_await_child(struct recording *r, int signal);

#endif
