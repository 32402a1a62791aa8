/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_INTERNAL_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_INTERNAL_H

#include "debuginfo-store/federation/fetch.h"

/*
 * Messages that the worker writes to its pipe: any number of FETCH_PROGRESS, then one of another type. A message is
 * smaller than PIPE_BUF, so writes are atomic.
 */
enum fetch_message_type { FETCH_PROGRESS, FETCH_FOUND, FETCH_MISSING, FETCH_TOO_BIG, FETCH_FAILED };

struct fetch_message {
        uint32_t type;
        struct fetch_response response;
        char text[200]; /* of FETCH_FAILED and FETCH_TOO_BIG */
};

/**
 * Sanitize a message in place. The worker may be compromised by the response: terminate texts, replace control
 * characters, clamp numbers to their limits, and turn an unknown type into FETCH_FAILED.
 * @param max_bytes limit of the file's size.
 */
void fetch_message_sanitize(struct fetch_message *m, uint64_t max_bytes);

#endif
