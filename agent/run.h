/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_RUN_H
#define CAIRN_AGENT_RUN_H

/**
 * @file
 * The agent's life: set up, give up rights, then drain, build and send until
 * the time is over or a signal comes; then once more, and end.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/labels.h"
#include "agent/sampler.h"
#include "agent/selection.h"
#include "common/error.h"
#include "sandbox/nursery.h"

struct run_options {
        const char *server;         /* unless output is set */
        const char *token;          /* NULL: none */
        const char *ca_file;        /* NULL: the system's certificates */
        const char *spool;          /* directory of batches that wait for the server; NULL: they wait in memory */
        uint64_t spool_bytes;       /* its bound */
        bool upload;                /* symbols that the server lacks */
        uint64_t upload_rate;       /* bytes a second; 0: no limit */
        uint64_t upload_max_bytes;  /* of one file */
        const char *output;         /* one OTLP request of the whole run goes to this file; NULL: to the server */
        const char *metrics_file;   /* Prometheus text, replaced after each drain; NULL: none */
        const char *metrics_listen; /* "HOST:PORT" where they are served too; NULL: nowhere */
        enum sampler_kind sampler;
        uint64_t frequency_hz;
        uint64_t interval_s;        /* between drains */
        uint64_t duration_s;        /* 0: until a signal */
        const uint32_t *pids;
        size_t pid_count;
        struct label_choice labels; /* checked */
        struct selection selection;
        struct nursery *nursery;    /* borrowed; NULL none */
        struct nursery *upload_nursery; /* of upload_workers; borrowed; NULL none */
};

/** ST_OK after a clean end; ST_BUSY when batches are lost since they could not be delivered. */
enum status agent_run(const struct run_options *o, struct error *err) MUST_CHECK;

#endif
