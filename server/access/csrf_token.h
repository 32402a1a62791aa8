/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_CSRF_TOKEN_H
#define CAIRN_SERVER_ACCESS_CSRF_TOKEN_H

/**
 * @file
 * Protection from cross-site request forgery: rule 3 of server/access/identify.h. The token is an HMAC of the session
 * id or the user's name, so nothing is stored.
 *
 * Threads: any.
 */
#include "server/access/access.h"

/** The text for X-Cairn-CSRF of a sender's requests. @param secret  the session id or the user's name. */
void csrf_write_token(const struct access_control *control, const char *secret, char ret[static SHA256_HEX_MAX]);

/** False, and responds with 403, when a page of another origin may have made the request. */
bool csrf_check(const struct access_control *control, struct http_request *req, const char *secret) MUST_CHECK;

#endif
