/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DOCTOR_CHECK_PROCESS_H
#define CAIRN_CLI_DOCTOR_CHECK_PROCESS_H

/**
 * @file
 * Runs a check of `cairn doctor` in a child process, so that a hanging disk or network blocks neither the other checks
 * nor the command, and a check may confine itself or crash.
 *
 * Threads: forks; call while the process has only one thread.
 */
#include "cli/doctor/doctor_checks.h"

struct doctor_check {
        const char *area; /* configuration, certificates, data, host, service, upstreams, agent */
        const char *name; /* name of the finding that reports a timeout or crash */
        void (*run)(const struct examined *x, struct findings *ret);
        const char *hang_fix; /* fix for a timeout */
        unsigned timeout_factor;
};

/**
 * Run the check for at most timeout_s times its factor. A timeout or crash adds an error to the findings so far. At a
 * timeout its process group is killed; a process in uninterruptible sleep is left running.
 * @param took_ms_ret  its duration.
 */
enum status run_doctor_check(const struct doctor_check *check, const struct examined *x, unsigned timeout_s,
                             struct findings *ret, uint64_t *took_ms_ret, struct error *err) MUST_CHECK;

#endif
