/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_ACCEPT_H
#define CAIRN_PROFILE_FORMATS_PROFILE_ACCEPT_H

/**
 * @file
 * What a batch may hold before it is acknowledged, so that every acknowledged
 * batch can be written to the tables: label keys become columns, and each day
 * becomes two files.
 *
 * Decoders accept more: what an older version acknowledged must still be read.
 *
 * Threads: no shared state.
 */
#include "profile-formats/profile.h"

/** Times at which samples are accepted, both included. */
struct profile_window {
        int64_t oldest_unix_ns, newest_unix_ns;
};

/**
 * Take samples out that lie outside the window or have a label key longer than
 * LIMIT_LABEL_KEY_BYTES, counting them with profile_reject_sample(). Samples
 * without a time need profile_default_time() before.
 */
enum status profile_reject_unacceptable(struct profile *p, const struct profile_window *window,
                                        struct error *err) MUST_CHECK;

/**
 * Check the label keys of all samples together: each against LIMIT_LABEL_KEY_BYTES, their number against
 * LIMIT_BATCH_LABEL_KEYS and their length against LIMIT_BATCH_LABEL_KEY_BYTES.
 * @return ST_OK; ST_TOO_BIG with a text that names the key or limit; ST_NO_MEMORY.
 */
enum status profile_check_labels(const struct profile *p, struct error *err) MUST_CHECK;

#endif
