/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_STATUS_REPORT_H
#define CAIRN_SERVER_ROUTES_STATUS_REPORT_H

/**
 * @file
 * How the service does, as JSON: docs/formats/status.md.
 */
#include "server/server_internal.h"

/** What concerns one tenant. @param may_see_service  whether the caller may read the status of the whole service. */
enum status write_tenant_status(struct server *s, struct tenant *t, bool may_see_service, struct buf *ret,
                                struct error *err) MUST_CHECK;

/** Who sends the tenant's samples, the latest first; at most `limit`. */
enum status write_tenant_senders(struct tenant *t, size_t limit, struct buf *ret, struct error *err) MUST_CHECK;

/** What concerns all tenants. Metrics are written as they are: set those that need it first. */
void write_service_status(struct server *s, struct buf *ret);

#endif
