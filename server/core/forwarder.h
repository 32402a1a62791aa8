/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_FORWARDER_H
#define CAIRN_SERVER_CORE_FORWARDER_H

/**
 * @file
 * The other side of a gateway (--role gateway): sends pages of its batches to a node with the role `ingest`,
 * POST /api/v1/node/batches with a token of the scope `node`, for each tenant with its name.
 *
 * Of several URLs, one is used until it fails, and then the next one; which one is the first is random, so that the
 * senders of many gateways are spread. An answer that is lost does not matter: batches have ids.
 *
 * Threads: forwarder_create(), forwarder_set_store_options() and forwarder_destroy() from one; each store calls its
 * function from one thread at a time.
 */
#include "profile-store/profile_store.h"
#include "server/access/tenant_config.h"
#include "server/server_options.h"

struct forwarder;

/**
 * @param tenants  NULL: one store without a tenant.
 * @param stop     ends requests; borrowed.
 * @return ST_USAGE for a token file without a token.
 */
enum status forwarder_create(const struct server_options *o, const struct tenant_configs *tenants,
                             const atomic_bool *stop, struct forwarder **ret, struct error *err) MUST_CHECK;
/** Set the members of options for a gateway. @param store  index: 0 is the default tenant, then those of the file */
void forwarder_set_store_options(struct forwarder *f, size_t store, struct profile_store_options *options);
void forwarder_destroy(struct forwarder *f); /* takes NULL */

#endif
