/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_OTLP_SERVICE_H
#define CAIRN_PROFILE_FORMATS_OTLP_OTLP_SERVICE_H

/**
 * @file
 * The service of samples whose sender gives none, as with the OpenTelemetry eBPF profiler: `unknown_service:PROGRAM`.
 *
 * PROGRAM is process.executable.name, else the base name of process.executable.path, else that of the main mapping of
 * the stack: the one nearest to its root that is neither in the kernel nor a library. Without any of them the service
 * is `unknown_service`.
 *
 * Source: OpenTelemetry resource semantic conventions, service.name; Pyroscope does the same with the first of these.
 */
#include "profile-formats/sample_labels.h"

/** Whether the labels have a service of their own, which may be named as in a column of the tables. */
bool has_service_name(const struct profile *p, const struct sample_labels *l) MUST_CHECK;

/** Whether the labels name the program, so that the stack does not matter. */
bool has_program_name(const struct profile *p, const struct sample_labels *l) MUST_CHECK;

/** The string of the main mapping's file; 0 without one. Looks at a bounded number of frames. */
uint32_t find_main_file(const struct profile *p, uint32_t stack) MUST_CHECK;

/** Set service.name. main_file: by find_main_file(), for labels that do not name the program. */
enum status set_unknown_service(struct profile *p, uint32_t main_file, struct sample_labels *l,
                                struct error *err) MUST_CHECK;

#endif
