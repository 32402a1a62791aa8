/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_OFFERED_COMMIT_H
#define CAIRN_PROFILE_STORE_CORE_OFFERED_COMMIT_H

/**
 * @file
 * A commit of samples of another node: parsed, and checked as far as its text tells.
 *
 * It has one transaction, of the queue of that node; at least one batch; and files of the names that a flush gives to
 * those of the positions after `after` up to that of the transaction. So a commit that passes can add no file that was
 * in the table before, whoever sent it: its positions are in none.
 *
 * Threads: no shared state.
 */
#include "profile-store/delta/delta_actions.h"
#include "profile-store/handed_commits.h"
#include "profile-store/tables/tables.h"

enum offer_state { OFFER_WAITS, OFFER_TAKEN, OFFER_ENDED };

struct offered_commit {
        struct handed_commit base;
        char node[NODE_ID_SIZE]; /* that handed it */
        struct delta_actions actions;
        /* Below: protected by the lock of the commit group. */
        enum offer_state state;
        bool is_abandoned; /* nobody waits: whoever ends it frees it */
        bool is_refused;
        enum status result;
        uint64_t version;
        struct error why;
};

/**
 * @param ret  in OFFER_WAITS; owned by the caller, offered_commit_destroy().
 * @return ST_OK; ST_BAD_DATA; ST_TOO_BIG; ST_UNSUPPORTED; ST_NO_MEMORY.
 */
enum status offered_commit_parse(const struct handed_commit *base, const void *text, size_t n,
                                 struct offered_commit **ret, struct error *err) MUST_CHECK;
void offered_commit_destroy(struct offered_commit *o); /* takes NULL */

#endif
