/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_STORE_LEASE_H
#define CAIRN_PROFILE_STORE_CORE_STORE_LEASE_H

/**
 * @file
 * Leases, so that of several nodes one does work that each of them could do.
 *
 * The lease of epoch E is the object leases/NAME/E, which says who has it. It is made as a new object, so each epoch
 * has one holder. The holder puts it again to renew it; when it was last put lease_ms ago by the clock of the store,
 * any node may make E + 1. A holder renews only while E + 1 does not exist. The last LEASE_EPOCHS_KEPT epochs are kept,
 * so that a holder that was paused finds E + 1 however many others had the lease meanwhile.
 *
 * A lease saves work, and nothing else: a holder may be paused between asking for it and using it. What it does must be
 * correct though another node does the same.
 *
 * Threads: one at a time for each lease.
 */
#include "profile-store/tables/tables.h"

#define DEFAULT_LEASE_MS 60000
#define LEASE_EPOCHS_KEPT 100
#define LEASE_NAME_BYTES 48   /* including the NUL */
#define LEASE_HOLDER_BYTES 96 /* likewise */

struct store_lease {
        const char *name;
        int64_t epoch;      /* 0: not held */
        int64_t renewed_ns; /* monotonic, before the request that renewed it */
        int64_t renew_ns;   /* monotonic: no request is needed before */
        /* After ST_BUSY: who has it, "" unknown, and how long ago it was put, by the clock of the store. */
        char holder[LEASE_HOLDER_BYTES];
        int64_t age_ms;
};

/**
 * Hold the lease: take it, or renew it.
 * @param node  the identity of this node. A node that was started again takes its lease over at once.
 * @return ST_OK; ST_BUSY with the holder's name while another node has it; ST_OS; ST_NO_MEMORY.
 */
enum status store_lease_hold(struct store_lease *l, struct storage *storage, const char *node, int64_t lease_ms,
                             struct error *err) MUST_CHECK;

/**
 * The requests of store_lease_hold(), for a caller that counts the time of the lease itself.
 *
 * store_lease_take(): take it when no other has it. @param max_age_ms  of a lease that another has and does not renew;
 * INT64_MAX: take it only when it was ended. store_lease_check(): whether the next epoch does not exist, so that the
 * caller, if it has this one, had it when the call began.
 * @return as store_lease_hold().
 */
enum status store_lease_take(struct store_lease *l, struct storage *storage, const char *node, int64_t max_age_ms,
                             struct error *err) MUST_CHECK;
enum status store_lease_check(struct store_lease *l, struct storage *storage, struct error *err) MUST_CHECK;

/**
 * Whether the epoch exists and is the node's, for an epoch that somebody else names. It is removed before the next one
 * is, so when store_lease_check() before this call did not find the next one, that was never made.
 * @return ST_OK; ST_BUSY: it was not made, was ended or removed, or is another one's.
 */
enum status store_lease_verify(struct store_lease *l, struct storage *storage, const char *node,
                               struct error *err) MUST_CHECK;

/** Put it again. @param node  "" to end it. */
enum status store_lease_renew(const struct store_lease *l, struct storage *storage, const char *node,
                              struct error *err) MUST_CHECK;

/**
 * How long ago any node held a lease of this name, by the clock of the store.
 * @param age_ms_ret  INT64_MAX: none ever did
 */
enum status store_lease_get_age(const struct store_lease *l, struct storage *storage, int64_t *age_ms_ret,
                                struct error *err) MUST_CHECK;

/** Let another node take it at once. Failures are ignored: it ends by itself. */
void store_lease_end(struct store_lease *l, struct storage *storage);

/** Remove an epoch that should not have been made, when it is the only one. */
void store_lease_remove(struct store_lease *l, struct storage *storage);

void store_lease_register_metrics(void);

#endif
