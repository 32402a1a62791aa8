/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_COMMIT_HANDER_H
#define CAIRN_SERVER_CORE_COMMIT_HANDER_H

/**
 * @file
 * Hands commits of samples to the peer that makes them for several nodes (profile-store/handed_commits.h):
 * POST /api/v1/node/commits with a token of the scope `node`.
 *
 * The lease names the identity of that node, not its address, so that nobody who can write the object store chooses to
 * whom the token goes: the peers of --peer are asked in turn, beginning with the one that answered last, and each but
 * the holder says at once that it is not.
 *
 * Threads: commit_hander_create(), commit_hander_set_store_options() and commit_hander_destroy() from one; each store
 * calls its function from one thread at a time.
 */
#include "profile-store/handed_commits.h"
#include "server/access/tenant_config.h"
#include "server/server_options.h"

struct commit_hander;

/**
 * @param tenants  NULL: one store without a tenant.
 * @param stop     ends requests; borrowed.
 * @return ST_USAGE for a token file without a token.
 */
enum status commit_hander_create(const struct server_options *o, const struct tenant_configs *tenants,
                                 const atomic_bool *stop, struct commit_hander **ret, struct error *err) MUST_CHECK;
/** Set the members of options for handing. @param store  index: 0 is the default tenant, then those of the file */
void commit_hander_set_store_options(struct commit_hander *h, size_t store, struct profile_store_options *options);
void commit_hander_destroy(struct commit_hander *h); /* takes NULL */

#endif
