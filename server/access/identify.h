/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_IDENTIFY_H
#define CAIRN_SERVER_ACCESS_IDENTIFY_H

/**
 * @file
 * Who sends a request: the holder of the token that it carries; or, for the API of the service's pages, a user whom a
 * trusted proxy names, or a browser with the cookie of a session.
 *
 * A browser adds cookie, and a proxy its header, to whatever a page makes it send. So they count only
 *
 *  1. for what the pages ask: GET and POST of routes that need `read`, or nothing, under /api/v1/, for shared profiles
 *     and the sign-out; never for debuginfod, tables, ingest, uploads and administration;
 *  2. for requests that no page of another origin made: Sec-Fetch-Site or Origin;
 *  3. for others than GET and HEAD, with Content-Type application/json and, in X-Cairn-CSRF, a text that only pages of
 *     this origin can have read.
 *
 * They grant `read` and no other scope, whatever else the token carries that a session was begun with.
 *
 * Threads: any.
 */
#include "server/access/access.h"

/** For http_options.identify, with tokens. */
void access_identify(struct access_control *d, struct http_request *req);

/** For http_options.authorize; only when there are tokens. */
enum http_access access_authorize(const struct access_control *d, const struct request_sender *sender,
                                  enum http_scope scope, char name_ret[static HTTP_TOKEN_NAME_SIZE]);

/**
 * What the sender's token says of its tenant, as tokens_get_tenant(); of a proxy's user "", as of a token that says
 * nothing. False for a sender without the scope.
 */
bool access_get_tenant(const struct access_control *d, const struct request_sender *sender, enum http_scope scope,
                       char ret[static TENANT_NAME_SIZE]);

/** Name of the session cookie for this request: "__Host-cairn" over https, which a browser takes over https only. */
const char *get_session_cookie_name(const struct http_request *req);
/** The session id that the request carries, NULL: none. */
const char *get_session_id(const struct http_request *req);

/** The text for X-Cairn-CSRF of a sender's requests. @param secret the session id or the user's name */
void write_csrf_token(const struct access_control *d, const char *secret, char ret[static SHA256_HEX_MAX]);

#endif
