/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_IDENTIFY_H
#define CAIRN_SERVER_ACCESS_IDENTIFY_H

/**
 * @file
 * Identification of a request's sender: the holder of the token that the request carries; or, for the API of the
 * service's pages, a user named by a trusted proxy, or a browser with a session cookie.
 *
 * A browser adds the cookie, and a proxy its header, to every request that any page causes. So they are accepted only
 *
 *  1. for routes that the service's pages use: those under /api/v1/ that need `read` or no scope, shared profiles, and
 *     the sign-out; never for debuginfod, tables, ingest, uploads and administration;
 *  2. for requests that are not cross-origin according to Sec-Fetch-Site or Origin;
 *  3. with methods other than GET and HEAD: if these headers prove the same origin, Content-Type is application/json,
 *     and X-Cairn-CSRF has a token that only pages of this origin can read.
 *
 * They grant only the scope `read`, whatever scopes the session's token has.
 *
 * Threads: any.
 */
#include "server/access/access.h"

/** Callback for http_options.identify; only when there are tokens. */
void access_identify(struct access_control *control, struct http_request *req);

/** Callback for http_options.authorize; only when there are tokens. */
enum http_access access_authorize(const struct access_control *control, const struct request_sender *sender,
                                  enum http_scope scope, char name_ret[static HTTP_TOKEN_NAME_SIZE]);

/**
 * The tenant setting of the sender's token, as tokens_get_tenant(); "", as for a token without the setting, for a
 * proxy's user. False for a sender without the scope.
 */
bool access_get_tenant(const struct access_control *control, const struct request_sender *sender, enum http_scope scope,
                       char ret[static TENANT_NAME_SIZE]);

/** Name of the session cookie for this request: "__Host-cairn" over https, which browsers accept over https only. */
const char *get_session_cookie_name(const struct http_request *req);
/** The session id that the request carries, NULL: none. */
const char *get_session_id(const struct http_request *req);

#endif
