/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_SERVICE_VERSIONS_H
#define CAIRN_QUERY_ENGINE_SERVICE_VERSIONS_H

/**
 * @file
 * The versions of services, and when each had samples: the values of the first of some well-known labels that a sample
 * has. A service is a combination of values of labels. Private to query/.
 *
 * Threads: belongs to one thread.
 */
#include "query/engine/label_groups.h"
#include "query/engine/request.h"
#include "query/engine/type_plan.h"

struct service_version {
        uint32_t service;               /* index in `services`, or what the caller replaced it by */
        const char *label, *value;      /* borrowed from the scan */
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

/** Make one of the items with equal service, label and value, and sort them; once, after all were added. */
enum status service_versions_merge(struct service_versions *v, struct error *err) MUST_CHECK;

/** Find the items of a service, at most the 20 that appeared last. */
const struct service_version *service_versions_find(const struct service_versions *v, uint32_t service,
                                                    size_t *count_ret);

/** Write the members label, value, first_ms and last_ms. */
void service_version_put_json(const struct service_version *v, struct json_out *j);

#endif
