/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_TOKENS_H
#define CAIRN_SERVER_ACCESS_TOKENS_H

/**
 * @file
 * Token file: lines "TOKEN scope[,scope...] [name=NAME] [rate=N] [bytes=N] [tenant=NAME]", where scope is read, ingest,
 * upload, history, node or admin (which includes the others); '#' starts a comment. Instead of TOKEN, "sha256:" and 64
 * hexadecimal digits give its digest, so that the file contains no secret. name identifies the token in logs and stored
 * objects. rate limits its requests per second, bytes its uploaded data per day (K, M, G, T). tenant binds it to a
 * tenant of the tenants file; "*" lets each request name its tenant.
 *
 * Tokens are kept as SHA-256 digests and compared in constant time.
 *
 * Threads: any, except load and destroy.
 */
#include "common/error.h"
#include "common/hash/sha256.h"
#include "http/http_server.h"
#include "server/access/rate_limit.h"
#include "server/access/tenant_config.h"

struct tokens;

/**
 * ST_BAD_DATA names the line. A file without a token is ST_BAD_DATA too.
 * @param tenants  tenants that a token may name; borrowed. NULL: none, and a token that names one is ST_BAD_DATA.
 */
enum status tokens_load(const char *path, const struct tenant_configs *tenants, struct tokens **ret,
                        struct error *err) MUST_CHECK;
/**
 * Read the file again; on failure the previous tokens stay in use. One thread at a time.
 * @param path  file to use from now on, copied; NULL: the same as before.
 */
enum status tokens_reload(struct tokens *t, const char *path, size_t *count_ret, struct error *err) MUST_CHECK;
void tokens_destroy(struct tokens *t);

/**
 * Count the tokens without the setting `tenant` in a service with tenants: they act as the default tenant and for the
 * whole service, which may be meant or forgotten.
 * @param line_ret  line of the first one; untouched when there is none
 */
size_t tokens_count_unbound(struct tokens *t, unsigned *line_ret);

/** Identifies a token without its secret: its SHA-256 digest. */
struct token_id {
        uint8_t digest[SHA256_BYTES];
};

/** False when token is NULL, or when out of memory. */
bool token_identify(const char *token, struct token_id *ret);

/** Whether the token is in the file. */
bool tokens_has(struct tokens *t, const struct token_id *token);

/** @param token NULL: none.  @param name_ret the token's name, "" if it has none or is unknown. */
enum http_access tokens_check(struct tokens *t, const struct token_id *token, enum http_scope scope,
                              char name_ret[static HTTP_TOKEN_NAME_SIZE]);

/**
 * The tenant setting of a token's line.
 * @param scope  required of the token; checked again because the file may have been reloaded after tokens_check().
 * @param ret    a name, TOKEN_ANY_TENANT, or "" without the setting.
 * @return false for a token that is unknown (NULL: none) or lacks the scope.
 */
bool tokens_get_tenant(struct tokens *t, const struct token_id *token, enum http_scope scope,
                       char ret[static TENANT_NAME_SIZE]);
#define TOKEN_ANY_TENANT "*"

struct token_limits {
        uint64_t key; /* key for rate_limit_take() */
        struct rate_limit_config limits;
        char name[HTTP_TOKEN_NAME_SIZE];
};

/** False, and ret untouched, for an unknown token (NULL: none). */
bool tokens_get_limits(struct tokens *t, const struct token_id *token, struct token_limits *ret);

#endif
