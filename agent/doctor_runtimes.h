/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_DOCTOR_RUNTIMES_H
#define CAIRN_AGENT_DOCTOR_RUNTIMES_H

/**
 * @file
 * Finds the runtimes and contexts of all running processes, as the agent would, and names those that are not read, with
 * the reason.
 * Nothing is sampled.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "sandbox/fork_server.h"

#define REFUSED_RUNTIMES_MAX 16

struct refused_runtime {
        uint32_t pid;
        char process[16];
        const char *runtime, *reason; /* static */
};

struct wanted_runtimes {
        bool python, v8, hotspot, context; /* which to find */
};

struct found_runtimes {
        size_t process_context_count, thread_context_count; /* processes with these contexts of OpenTelemetry */
        size_t go_labels_count;                             /* Go programs whose labels are read */
        size_t read_count;                                  /* processes whose runtime would be read */
        size_t refused_count;                               /* others; the first of them: */
        struct refused_runtime refused[REFUSED_RUNTIMES_MAX];
};

/**
 * @param workers  of the workers that read executables; borrowed.
 */
enum status doctor_find_runtimes(struct fork_server *workers, const struct wanted_runtimes *wanted,
                                 struct found_runtimes *ret, struct error *err) MUST_CHECK;

#endif
