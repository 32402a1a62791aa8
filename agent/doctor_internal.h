/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_DOCTOR_INTERNAL_H
#define CAIRN_AGENT_DOCTOR_INTERNAL_H

#include "agent/doctor.h"
#include "common/cleanup.h"
#include "common/error.h"

/** @param mend  kept, and shown unless the state is DOCTOR_OK. */
PRINTF(6, 7) void doctor_add(struct doctor *d, const char *name, enum sampler_kind needed_by, enum doctor_state state,
                             const char *mend, const char *fmt, ...);

/** The first line of a file, or "unknown". */
void doctor_first_line(const char *path, char *ret, size_t size);

/* What the host grants beside the samplers themselves: agent/doctor_host.c. */
void doctor_lockdown(struct doctor *d);
void doctor_jit(struct doctor *d);
void doctor_perf_buffers(struct doctor *d);
void doctor_mapped_files(struct doctor *d);
void doctor_unwind_tables(struct doctor *d);
void doctor_cgroups(struct doctor *d);
void doctor_spool(struct doctor *d, const char *dir, uint64_t bytes);

#endif
