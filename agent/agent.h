/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_AGENT_H
#define CAIRN_AGENT_AGENT_H

/**
 * @file
 * Life cycle of the agent: start, drop privileges, then drain, build and
 * send until the duration is over or a signal arrives; then a last drain, and
 * stop.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/config/configuration.h"
#include "common/error.h"
#include "relabel/relabel_rules.h"
#include "sampling/containers/pod_cache.h"
#include "sampling/processes/process_labels.h"
#include "sampling/processes/process_filter.h"
#include "sampling/samplers/sampler.h"
#include "sandbox/fork_server.h"

/** Settings that were read again at SIGHUP. */
struct agent_reread {
        char *token;                         /* owned by the caller; NULL: none */
        const struct option_change *changed; /* borrowed until the next successful reread */
        size_t changed_count;
};

struct agent_options {
        const char *server;         /* URL of the service; unused with output */
        const char *token;          /* NULL: none */
        const char *tenant;         /* tenant of the service; NULL: the token's */
        const char *ca_file;        /* NULL: the system's certificates */
        const char *spool;          /* directory for batches the server has not acknowledged; NULL: memory */
        uint64_t spool_bytes;       /* size limit of the spool */
        bool upload;                /* upload symbols that the server lacks */
        uint64_t upload_rate;       /* bytes per second; 0: no limit */
        uint64_t upload_max_bytes;  /* size limit of one file */
        const char *output;         /* file for one OTLP request of the whole run; NULL: send to the server */
        const char *metrics_file;   /* Prometheus text, replaced after each drain; NULL: none */
        const char *metrics_listen; /* "HOST:PORT" of the metrics server; NULL: none */
        enum sampler_kind sampler;
        uint64_t frequency_hz;
        uint64_t interval_s; /* between drains */
        uint64_t duration_s; /* 0: until a signal */
        const uint32_t *pids;
        size_t pid_count;
        struct label_options labels; /* checked */
        struct process_filter filter;
        bool reads_python;                      /* name the frames of Python programs */
        bool reads_v8;                          /* name the frames of Node.js */
        bool reads_hotspot;                     /* name the frames of Java */
        bool omits_context;                     /* do not read contexts of OpenTelemetry */
        bool omits_container_names;             /* do not read the state of container engines */
        uint64_t off_cpu_ns;                    /* also sample waits, one for about this time; 0: do not */
        bool latency;                           /* also measure latency */
        bool omits_files;                       /* leave out paths of their source files */
        struct pod_cache_options pods;          /* source of pod labels */
        const struct relabel_rules *rules;      /* for labels of samples; borrowed; NULL: none */
        struct fork_server *fork_server;        /* borrowed; NULL: none */
        struct fork_server *upload_fork_server; /* for upload_workers; borrowed; NULL: none */
        /* Reread configuration and token file at SIGHUP. NULL: SIGHUP ends the agent, as it does with output. */
        enum status (*reread)(void *context, struct agent_reread *ret, struct error *err);
        void *reread_context;
};

/** ST_OK after a clean stop; ST_BUSY when batches are lost because they could not be delivered. */
enum status agent_run(const struct agent_options *o, struct error *err) MUST_CHECK;

#endif
