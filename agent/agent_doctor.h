/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_AGENT_DOCTOR_H
#define CAIRN_AGENT_AGENT_DOCTOR_H

/**
 * @file
 * `cairn-agent --doctor`: checks what the kernel and the process's
 * privileges allow, and suggests fixes. Each check tries the operation where
 * possible.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/memory/buf.h"
#include "common/program/finding.h"
#include "sampling/samplers/sampler.h"
#include "sandbox/fork_server.h"

/*
 * FINDING_ERROR: a sampler does not work without this. FINDING_WARNING: it works, but profiles are incomplete.
 */
struct doctor {
        struct findings findings;
        enum sampler_kind needed_by[FINDINGS_MAX]; /* of each finding; SAMPLER_AUTO: both */
};

/** As the agent would be started. */
struct doctor_options {
        struct fork_server *fork_server;        /* of the workers that build unwind tables */
        struct fork_server *upload_fork_server; /* of those that inspect files */
        bool uploads;                           /* symbols would be uploaded */
        bool reads_python;                      /* name the frames of Python programs */
        bool reads_v8;                          /* name the frames of Node.js */
        bool reads_hotspot;                     /* name the frames of Java */
        bool reads_context;                     /* label samples by contexts of OpenTelemetry */
        bool off_cpu;                           /* waits would be sampled */
        bool latency;                           /* latency would be measured */
        const char *spool;                      /* directory; NULL: none */
        uint64_t spool_bytes;                   /* its size limit */
};

/** Run all checks. Both samplers and the workers are started briefly. */
void doctor_examine(struct doctor *d, const struct doctor_options *o);

/** Check whether the service accepts symbols from this host. @param ca_file, token  NULL: none. */
void doctor_check_service(struct doctor *d, const char *server, const char *ca_file, const char *token);

/** Whether that sampler can run; with SAMPLER_AUTO, either of them. */
bool doctor_can_profile(const struct doctor *d, enum sampler_kind kind);

/**
 * Print the items as text, or as one JSON object {"can_profile":...,
 * "sampler":"bpf"|"perf"|null, "items":[{sampler,name,state,found,fix}]}.
 * @param kind  the requested sampler: decides can_profile and the sampler that would run.
 */
void doctor_write(const struct doctor *d, enum sampler_kind kind, bool json, struct buf *out);

#endif
