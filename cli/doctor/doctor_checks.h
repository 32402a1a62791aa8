/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DOCTOR_DOCTOR_CHECKS_H
#define CAIRN_CLI_DOCTOR_DOCTOR_CHECKS_H

/**
 * @file
 * The checks of `cairn doctor`. A check is a function that adds one or more findings. If possible it tries the
 * operation itself. It may block, since it runs in a process of its own (check_process.h).
 *
 * Threads: one at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cli/shared/serve_settings.h"
#include "common/error.h"
#include "common/program/finding.h"

/** The inputs of the checks. Everything is borrowed. */
struct examined {
        const struct serve_settings *settings; /* of the service; NULL: its configuration is invalid or not readable */
        const char *settings_failure;          /* why it is invalid; NULL: it is valid */
        bool is_config_forbidden;              /* this user may not read it; the service's user may */
        const char *config_path;               /* --config; NULL: the default */
        const char *data;                      /* data directory; NULL: none was found */
        const char *server;                    /* URL of the service */
        bool expects_service;                  /* it is named or configured, or has its data on this machine */
        const char *token_file, *ca_file;      /* for the service; NULL: none */
        uint64_t budget_ms;                    /* time limit of the running check (run_doctor_check()) */
};

/* The checks. */
void check_configuration(const struct examined *x, struct findings *f);
void check_secret_files(const struct examined *x, struct findings *f);
void check_certificates(const struct examined *x, struct findings *f);
void check_disk_space(const struct examined *x, struct findings *f);
void check_sync_latency(const struct examined *x, struct findings *f);
void check_database_maps(const struct examined *x, struct findings *f);
void check_host_limits(const struct examined *x, struct findings *f);
void check_clock(const struct examined *x, struct findings *f);
void check_confinement(const struct examined *x, struct findings *f);
void check_running_service(const struct examined *x, struct findings *f);
void check_object_store(const struct examined *x, struct findings *f);
void check_upstreams(const struct examined *x, struct findings *f);
void check_agent(const struct examined *x, struct findings *f);

#endif
