/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_FETCH_PROFILE_H
#define CAIRN_SCRAPE_FETCH_PROFILE_H

/**
 * @file
 * One request for a profile of a target, and the profile in the answer.
 *
 * A target is not trusted: time, redirections, the body's size before and after unpacking, and what the profile has are
 * bounded; labels of the target replace those of samples that have the same name, and the profile's clock is not used.
 *
 * Threads: any.
 */
#include <stdatomic.h>

#include "profile-formats/profile.h"
#include "scrape/target.h"

enum fetch_failure {
        FETCH_UNREACHABLE, /* no connection, TLS, a broken answer */
        FETCH_TIMEOUT,
        FETCH_HTTP_STATUS, /* another status than 2xx, a redirection included */
        FETCH_TOO_BIG,     /* the body, unpacked or not, or the profile */
        FETCH_BAD_PROFILE, /* not pprof, or damaged */
        FETCH_BUSY,        /* out of memory, or of the budget for it */
        FETCH_CONFIG,      /* a file with a secret or certificate cannot be read */
        FETCH_FAILURES
};

struct fetched_profile {
        struct profile profile;
        uint64_t body_bytes;
};

/**
 * @param stop         ends the request when true.
 * @param ret          its profile is owned; untouched on failure.
 * @param failure_ret  set on failure.
 * @return ST_OK, or the failure's status with a text that does not name the target.
 */
enum status fetch_profile(const struct scrape_target *t, const struct scrape_profile *p, const atomic_bool *stop,
                          struct fetched_profile *ret, enum fetch_failure *failure_ret, struct error *err) MUST_CHECK;

/**
 * Give all samples the target's labels. A label of a sample that has the name of one of them, or would share its column
 * (service.name and service_name), is removed.
 */
enum status profile_apply_target_labels(struct profile *p, const struct label_set *labels,
                                        struct error *err) MUST_CHECK;

#endif
