/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_PEERS_H
#define CAIRN_SERVER_CORE_PEERS_H

/**
 * @file
 * The other nodes on the same object store, whose heads each scan asks for (profile-store/peer_heads.h):
 * GET /api/v1/node/head with a token of scope `node`.
 *
 * Each peer has a thread with one connection. A scan waits until all peers have answered a request that began after the
 * scan did, for at most --peer-timeout; scans that wait at the same time share it. A peer whose last request failed is
 * asked again each second, and scans do not wait for it: they lack what it acknowledged since its last answer.
 *
 * Threads: any, except create, start, stop and destroy.
 */
#include "profile-store/peer_heads.h"
#include "server/core/readiness.h"
#include "server/core/tenants.h"
#include "server/server_options.h"

struct peers;

/**
 * Without threads yet.
 * @param store_count  stores of tenants, with indexes below.
 * @return ST_USAGE for a token file without a token.
 */
enum status peers_create(const struct server_options *o, size_t store_count, struct peers **ret,
                         struct error *err) MUST_CHECK;
/** Set the members of options for peers. Asking before peers_start() does nothing. @param store  index of the store */
void peers_set_store_options(struct peers *p, size_t store, struct profile_store_options *options);
/** @param tenants  with store_count stores, borrowed until peers_stop() */
enum status peers_start(struct peers *p, const struct tenants *tenants, struct error *err) MUST_CHECK;
/** Scans that wait end at once. NULL is allowed, as below. */
void peers_stop(struct peers *p);
void peers_destroy(struct peers *p);

/** Report READY_PEER_MISSING. */
void peers_report(struct peers *p, struct readiness *r);

#endif
