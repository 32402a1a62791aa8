/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CLIENT_LEASES_H
#define CAIRN_PROFILE_STORE_CLIENT_LEASES_H

/**
 * @file
 * Leases of programs that send to this store, so that of several which scrape the same targets one does
 * (scrape/scrape_lease.h): core/store_lease.h for a holder that is not a node. They are beside those of the nodes, as
 * leases/scrape-NAME, in local tables, too.
 *
 * Nothing about a lease is kept in memory: a client may ask another node each time. It counts the time of its lease
 * itself, and says which epoch it has.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/files/tenant_name.h"
#include "profile-store/profile_store.h"

#define CLIENT_HOLDER_BYTES 96  /* including the NUL */
#define CLIENT_LEASE_REQUESTS 2 /* at the same time, of a store: no tenant keeps the others from asking */

struct client_lease_request {
        const char *name;   /* has the form of a tenant's name */
        const char *holder; /* client_holder_is_valid() */
        int64_t epoch;      /* that the client has; 0: none */
        enum {
                CLIENT_LEASE_CHECK, /* whether the client still has it; without an epoch, take it if it was ended */
                CLIENT_LEASE_RENEW, /* and let it last anew; without an epoch, take it also if nobody renews it */
                CLIENT_LEASE_END,   /* let another client take it at once */
        } action;
};

struct client_lease_state {
        bool is_held;  /* by the client, when the request was answered; with CLIENT_LEASE_END, before */
        int64_t epoch; /* when it is held */
        char holder[CLIENT_HOLDER_BYTES]; /* otherwise: who has it; "" unknown */
        bool is_expired;                  /* otherwise: nobody renewed it for lease_ms */
        int64_t lease_ms;
};

/** Whether a name consists of 1 to CLIENT_HOLDER_BYTES - 1 letters, digits, '.', '_' and '-'. */
bool client_holder_is_valid(const char *name);

/**
 * Take, check, renew or end a lease.
 * @return ST_OK, also when another client has it; ST_TOO_BIG beyond LIMIT_SCRAPE_LEASES names; ST_OS when the tables do
 * not answer, or ST_BUSY when CLIENT_LEASE_REQUESTS others wait for them already.
 */
enum status profile_store_ask_client_lease(struct profile_store *store, const struct client_lease_request *r,
                                           struct client_lease_state *ret, struct error *err) MUST_CHECK;

#endif
