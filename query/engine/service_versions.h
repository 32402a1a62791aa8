/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_SERVICE_VERSIONS_H
#define CAIRN_QUERY_ENGINE_SERVICE_VERSIONS_H

/**
 * @file
 * The versions of services, and when each had samples: the values of the first of some well-known labels that a sample
 * has; and the builds of their programs, where these tell more: of samples without a version, or if a program had
 * several with one version. A service is a combination of values of labels. Private to query/.
 *
 * Threads: belongs to one thread.
 */
#include "query/engine/label_groups.h"
#include "query/engine/request.h"
#include "query/engine/type_plan.h"

struct service_version {
        uint32_t service;               /* index in `services`, or what the caller replaced it by */
        const char *label, *value;      /* borrowed from the scan, like the next two */
        const char *program;            /* of a build, else NULL: the program's name; "" unknown */
        const char *version;            /* of a build: its version; "" without one */
        int64_t first_unix_ns, last_ns; /* start of the step with its first sample; end of that with the last one */
};

struct service_versions {
        struct label_groups services;
        struct service_version *items; /* after service_versions_merge() by service and first appearance; owned */
        size_t count, capacity;
        struct memory_reservation memory; /* of items */
};

/** @param labels  whose values are a service; borrowed. */
void service_versions_init(struct service_versions *v, const struct label_list *labels, struct work_meter *meter);
void service_versions_deinit(struct service_versions *v);
#define _cleanup_service_versions_ _cleanup_(service_versions_deinit)

/** Add the versions of a selection, without frame filters. @param step_ns  the resolution; longer for long ranges. */
enum status service_versions_add(struct service_versions *v, struct store_scan *scan, const struct query_selection *s,
                                 const struct type_plan *plan, int64_t step_ns, struct error *err) MUST_CHECK;

/**
 * Make one of equal items, leave out builds that tell no more than their version, and sort the rest; once, after all
 * were added.
 */
enum status service_versions_merge(struct service_versions *v, struct error *err) MUST_CHECK;

/** Find the items of a service by first appearance, at most the 20 that appeared last. */
const struct service_version *service_versions_find(const struct service_versions *v, uint32_t service,
                                                    size_t *count_ret);

/**
 * The version before items[i], or of a build that of the same program and version.
 * @return NULL: none, or both appeared at the same time.
 */
const struct service_version *service_version_get_previous(const struct service_version *items, size_t i);

/**
 * The one that tells what runs now: that of the last change, with the one before; without a change the last version, or
 * the only build. @param previous_ret  NULL: nothing changed. @return NULL: none does.
 */
const struct service_version *service_versions_get_current(const struct service_version *items, size_t count,
                                                           const struct service_version **previous_ret);

/** The value of a version, of a build its first 12 digits. Returns out. */
const char *service_version_format(const struct service_version *v, char *out, size_t size);

/** Write the members label, value, first_ms and last_ms, and of a build program and version. */
void service_version_put_json(const struct service_version *v, struct json_out *j);

#endif
