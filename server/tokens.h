/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_TOKENS_H
#define CAIRN_SERVER_TOKENS_H

/**
 * @file
 * Who may do what: a file of lines "TOKEN scope[,scope...] [name=NAME] [rate=N]
 * [bytes=N]", where scope is read, ingest, upload or admin (which includes the
 * others), and a '#' begins a comment. In place of TOKEN, "sha256:" and 64 hexadecimal digits
 * are its digest, so that the file holds no secret. The name is what logs and
 * stored objects say in place of the token. rate bounds its requests a second,
 * bytes what it sends in a day (K, M, G, T).
 *
 * Tokens are kept as SHA-256 digests, and a token that is sent is compared
 * with all of them in constant time.
 *
 * Threads: any, except load and destroy.
 */
#include "common/error.h"
#include "http/server.h"
#include "server/rates.h"

struct tokens;

/** ST_BAD_DATA names the line. A file without a token is ST_BAD_DATA too. */
enum status tokens_load(const char *path, struct tokens **ret, struct error *err) MUST_CHECK;
/** Read the file again; what was loaded before stays when it is not right. */
enum status tokens_reload(struct tokens *t, size_t *count_ret, struct error *err) MUST_CHECK;
void tokens_destroy(struct tokens *t);

/** name_ret: the name of the token that was sent, "" when it has none or is not known. */
enum http_access tokens_check(struct tokens *t, const char *token, enum http_scope scope,
                              char name_ret[static HTTP_TOKEN_NAME_SIZE]);

struct token_limits {
        uint64_t who; /* for rates_take() */
        struct rate_limits limits;
        char name[HTTP_TOKEN_NAME_SIZE];
};

/** False, and ret untouched, for a token (NULL: none) that is not known. */
bool tokens_limits(struct tokens *t, const char *token, struct token_limits *ret);

#endif
