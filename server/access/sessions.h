/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_SESSIONS_H
#define CAIRN_SERVER_ACCESS_SESSIONS_H

/**
 * @file
 * Sessions of browsers that signed in with a token, in memory: SHA-256 of the session id, the token that began it,
 * and its expiry. The scopes of a session are looked up in the token file at each request.
 *
 * At most LIMIT_SESSIONS are kept, and at most LIMIT_SESSIONS_PER_TOKEN per token, with LRU eviction.
 *
 * Threads: any, except create and destroy.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/access/tokens.h"

/** Text of a session id: 256 random bits in hexadecimal, and a NUL. */
#define SESSION_ID_SIZE SHA256_HEX_MAX

struct sessions;

/** @param max_age_s  lifetime of a session. */
enum status sessions_create(uint64_t max_age_s, struct sessions **ret, struct error *err) MUST_CHECK;
void sessions_destroy(struct sessions *s); /* takes NULL */

enum status sessions_begin(struct sessions *s, const struct token_id *token, int64_t now_ns,
                           char id_ret[static SESSION_ID_SIZE], struct error *err) MUST_CHECK;

struct session {
        struct token_id token;
        uint64_t left_s; /* until it ends */
};

/** False, and ret untouched, when the session does not exist or has expired. */
bool sessions_find(struct sessions *s, const char *id, int64_t now_ns, struct session *ret);
/** False when the session does not exist. */
bool sessions_end(struct sessions *s, const char *id);
/** End the sessions whose token is no longer in the token file. */
void sessions_end_revoked(struct sessions *s, struct tokens *tokens);

#endif
