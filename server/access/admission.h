/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_ADMISSION_H
#define CAIRN_SERVER_ACCESS_ADMISSION_H

/**
 * @file
 * Admission control: rate limits per token, from its line in the token file, and per address (IPv6: its /64) for
 * requests without a known token.
 *
 * Threads: any, except create and destroy.
 */
#include "http/server.h"
#include "server/access/tokens.h"

struct admission;

/** @param tokens borrowed, NULL: none.  @param address_rate requests per second, 0: no limit. */
enum status admission_create(struct tokens *tokens, uint64_t address_rate, struct admission **ret,
                             struct error *err) MUST_CHECK;
void admission_destroy(struct admission *a); /* takes NULL */

/** For http_options: 0, or the seconds to wait before a retry; err then has the reason. */
uint64_t admission_admit(struct admission *a, const struct http_request *req, uint64_t bytes, struct error *err);
void admission_finished(struct admission *a, const struct http_request *req);

#endif
