/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_ACCEPT_H
#define CAIRN_PROFILE_FORMATS_PROFILE_ACCEPT_H

/**
 * @file
 * Admission limits for a batch, so that every acknowledged batch can be written to the tables: label keys become
 * columns, and each day becomes two files.
 *
 * Decoders do not apply these limits, because they also read batches that older versions acknowledged.
 *
 * Threads: no shared state.
 */
#include "profile-formats/profile.h"

/** Times at which samples are accepted, both included. */
struct profile_window {
        int64_t oldest_unix_ns, newest_unix_ns;
};

/** Rejected samples by reason. */
struct profile_rejections {
        uint64_t too_old, too_far_ahead, long_label_key;
};

/**
 * Remove samples outside the window or with a label key longer than LIMIT_LABEL_KEY_BYTES, and count them with
 * profile_reject_sample() and in ret. Call profile_set_missing_times() before.
 */
enum status profile_reject_unacceptable(struct profile *p, const struct profile_window *window,
                                        struct profile_rejections *ret, struct error *err) MUST_CHECK;

/**
 * Check the label keys of all samples together: each against LIMIT_LABEL_KEY_BYTES, their number against
 * LIMIT_BATCH_LABEL_KEYS and their length against LIMIT_BATCH_LABEL_KEY_BYTES.
 * @return ST_OK; ST_TOO_BIG with a text that names the key or limit; ST_NO_MEMORY.
 */
enum status profile_check_labels(const struct profile *p, struct error *err) MUST_CHECK;

#endif
