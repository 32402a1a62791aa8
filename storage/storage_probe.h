/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_STORAGE_PROBE_H
#define CAIRN_STORAGE_STORAGE_PROBE_H

/**
 * @file
 * Whether a storage keeps the promises of storage.h that several writers and readers need. Object stores differ: some
 * let two racing creates of one key succeed, or ignore the condition.
 *
 * The probe writes, reads, lists and removes objects in the folder "probe/"; it takes about 50 requests.
 */
#include "storage/storage.h"

#define STORAGE_PROBE_RACERS 32

struct storage_probe {
        unsigned created, refused, failed; /* of STORAGE_PROBE_RACERS racing creates of one key: 1, the rest, 0 */
        bool reads_own_writes;             /* an object is there after its write, and gone after its removal */
        bool lists_own_writes;
        bool has_ranges;
        int64_t ahead_ms; /* the storage's clock minus this host's */
};

/** @return a failure when it is unknown whether the promises hold: the storage cannot be reached, or refuses. */
enum status storage_run_probe(struct storage *s, struct storage_probe *ret, struct error *err) MUST_CHECK;

/** Whether more than one of the racing creates succeeded: several writers may not use it. */
bool storage_lacks_conditional_put(const struct storage_probe *p);

#endif
