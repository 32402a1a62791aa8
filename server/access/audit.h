/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_AUDIT_H
#define CAIRN_SERVER_ACCESS_AUDIT_H

/**
 * @file
 * Audit log: one line per request that modifies data, signs a browser in or out, or is refused for its token. Ingested
 * profiles are only counted. At most AUDIT_REFUSALS_PER_S refusals, and failed modifications that need no token, are
 * logged per second, so that clients cannot fill the disk.
 *
 * Threads: any.
 */
#include <stdbool.h>

#define AUDIT_REFUSALS_PER_S 10

struct audited_request {
        unsigned code; /* HTTP status */
        const char *method, *target;
        const char *token_name; /* "": none */
        const char *peer;
        bool writes;  /* it modifies data */
        bool is_open; /* it needs no token */
};

/** Log the request if the audit log covers it, and count refusals. */
void audit_request(const struct audited_request *r);

#endif
