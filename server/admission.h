/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ADMISSION_H
#define CAIRN_SERVER_ADMISSION_H

/**
 * @file
 * Whether a request may come now: a token has the limits of its line in the
 * token file, who has no token that is known has those of his address
 * (of IPv6, of its /64).
 *
 * Threads: any, except create and destroy.
 */
#include "http/server.h"
#include "server/tokens.h"

struct admission;

/** tokens: borrowed, NULL for none. address_rate: requests a second, 0: no limit. */
enum status admission_create(struct tokens *tokens, uint64_t address_rate, struct admission **ret, struct error *err) MUST_CHECK;
void admission_destroy(struct admission *a); /* takes NULL */

/** For http_options: 0, or in how many seconds to come again; err then says why. */
uint64_t admission_admit(struct admission *a, const struct http_request *req, uint64_t bytes, struct error *err);
void admission_finished(struct admission *a, const struct http_request *req);

#endif
