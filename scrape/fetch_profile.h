/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_FETCH_PROFILE_H
#define CAIRN_SCRAPE_FETCH_PROFILE_H

/**
 * @file
 * Fetch one profile of a target.
 *
 * A target is not trusted: time, redirects, the body's size before and after decompression, and the profile's content
 * are bounded; labels of the target replace labels of samples with the same name, and the profile's time is ignored.
 *
 * Threads: any.
 */
#include <stdatomic.h>

#include "profile-formats/profile.h"
#include "scrape/target.h"

enum fetch_failure {
        FETCH_UNREACHABLE, /* connection or TLS failure, invalid response */
        FETCH_TIMEOUT,
        FETCH_HTTP_STATUS, /* status other than 2xx, redirects included */
        FETCH_TOO_BIG,     /* the body, compressed or not, or the profile */
        FETCH_BAD_PROFILE, /* not pprof, or damaged */
        FETCH_BUSY,        /* out of memory or memory budget */
        FETCH_CONFIG,      /* a file with a secret or certificate cannot be read */
        FETCH_FAILURES
};

struct fetched_profile {
        struct profile profile;
        uint64_t body_bytes;
};

/**
 * @param stop         cancels the request when true.
 * @param ret          its profile is owned; untouched on failure.
 * @param failure_ret  set on failure.
 * @return ST_OK, or a failure; the message does not name the target.
 */
enum status fetch_profile(const struct scrape_target *t, const struct scrape_profile *p, const atomic_bool *stop,
                          struct fetched_profile *ret, enum fetch_failure *failure_ret, struct error *err) MUST_CHECK;

/**
 * Set the target's labels on all samples. A sample's label with the same name, or with a name that maps to the same
 * column (service.name and service_name), is removed.
 */
enum status profile_apply_target_labels(struct profile *p, const struct label_set *labels,
                                        struct error *err) MUST_CHECK;

#endif
