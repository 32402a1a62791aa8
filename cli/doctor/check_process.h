/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DOCTOR_CHECK_PROCESS_H
#define CAIRN_CLI_DOCTOR_CHECK_PROCESS_H

/**
 * @file
 * Runs a check of `cairn doctor` in a process of its own, so that a disk or a network that hangs ends neither the other
 * checks nor the command, and a check may confine itself or crash.
 *
 * Threads: call while the process has one.
 */
#include "cli/doctor/findings.h"

struct doctor_check {
        const char *area; /* configuration, certificates, data, host, service, upstreams, agent */
        const char *name; /* of the finding when the check does not end */
        void (*run)(const struct examined *x, struct findings *ret);
        const char *hang_fix; /* what to do when it does not end in time */
        unsigned timeout_factor;
};

/**
 * Run it, for at most timeout_s times the check's factor: then, or when its process crashes, that is an error among
 * what it found so far. Its process and those that it started are killed; one that the kernel does not let go is left
 * behind.
 * @param took_ms_ret  how long it took.
 */
enum status run_doctor_check(const struct doctor_check *check, const struct examined *x, unsigned timeout_s,
                             struct findings *ret, uint64_t *took_ms_ret, struct error *err) MUST_CHECK;

#endif
