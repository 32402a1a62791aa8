/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_LABEL_EXPIRY_H
#define CAIRN_PROFILE_STORE_COMPACTION_LABEL_EXPIRY_H

/**
 * @file
 * Retention by labels: removes the rows of a day that a rule selects once the whole day is older than the rule's age.
 *
 * Days are processed one at a time. The columns of the rules' labels decide about a file: without a selected row it is
 * kept; with only selected rows it is removed without reading the rest; otherwise it is rewritten without them
 * (row_removal.h). The rules applied to a file are recorded in its struct table_part, so a file is read at most once
 * per rule of the store, and rewritten at most once per rule; files that flushes add to an old day later are new files.
 * Stacks are kept until their day has no samples.
 *
 * Threads: any.
 */
#include "profile-store/core/expiry.h"

/** A pass of the compaction thread over the days; zero it before first use. */
struct label_pass {
        bool is_running;
        int64_t day;                    /* last day processed */
        unsigned failed_days, failures; /* of this pass; passes in a row that failed */
        int64_t retry_ns;
};

/** Whether the store currently has label rules. */
bool label_expiry_has_rules(struct profile_store *s);

/**
 * Apply the store's rules to the next day that is due.
 * @return false when the pass is complete or must wait.
 */
bool label_expiry_run_next(struct profile_store *s, struct label_pass *pass);

/**
 * Apply the rules of `limits` to all days, and add the removed rows to ret; with request->dry_run, those that would be
 * removed. Days that limits->age_s removes are skipped.
 * @return the first failure, after all other days are processed; ret is valid in that case too.
 */
enum status label_expiry_apply(struct profile_store *s, const struct sample_limits *limits,
                               const struct expiry_request *request, struct expiry *ret, struct error *err) MUST_CHECK;

void label_expiry_register_metrics(void);

#endif
