/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_OPERATION_STATUS_REPORT_H
#define CAIRN_SERVER_API_OPERATION_STATUS_REPORT_H

/**
 * @file
 * Status of the service as JSON: docs/formats/status.md.
 */
#include "server/core/server_internal.h"

/** Status of one tenant. @param may_see_service  whether the caller may read the status of the whole service. */
enum status write_tenant_status(struct server *s, struct tenant *t, bool may_see_service, struct buf *ret,
                                struct error *err) MUST_CHECK;

/** Senders of the tenant's samples, the most recent first; at most `limit`. */
enum status write_tenant_senders(struct tenant *t, size_t limit, struct buf *ret, struct error *err) MUST_CHECK;

/** Status of the whole service. Writes current values of metrics: the caller updates gauges first. */
void write_service_status(struct server *s, struct buf *ret);

#endif
