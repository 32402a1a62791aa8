/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DOCTOR_FINDINGS_H
#define CAIRN_CLI_DOCTOR_FINDINGS_H

/**
 * @file
 * Findings of the checks of `cairn doctor`. A check is a function that adds one or more findings. If possible it tries
 * the operation itself. It may block, since it runs in a process of its own (check_process.h).
 *
 * Threads: one at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/shared/serve_settings.h"
#include "common/error.h"

enum finding_state {
        FINDING_OK,
        FINDING_SKIPPED, /* not checked: does not apply, or not with this user's rights */
        FINDING_WARNING, /* works, but slowly, incompletely, or not for long */
        FINDING_ERROR,   /* does not work */
        FINDING_STATE_COUNT
};

struct finding {
        enum finding_state state;
        char name[40];
        char found[300];
        char fix[300]; /* "" when there is nothing to do */
};

#define FINDINGS_MAX 64 /* per check */

struct findings {
        struct finding items[FINDINGS_MAX];
        size_t count;
};

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

/** @param fix  kept only for a warning or an error. Past FINDINGS_MAX nothing is added. */
void report_finding(struct findings *f, enum finding_state state, const char *name, const char *fix, const char *fmt,
                    ...) PRINTF(5, 6);

const char *finding_state_name(enum finding_state state); /* "ok", "skipped", "warning", "error" */

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
void check_upstreams(const struct examined *x, struct findings *f);
void check_agent(const struct examined *x, struct findings *f);

#endif
