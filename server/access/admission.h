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

/** Who sends a request. */
struct request_sender {
        const char *token; /* NULL: none */
        const char *peer;  /* numeric address */
        uint64_t peer_number;
};

/** 0, or the seconds to wait before a retry; err then has the reason. @param bytes of the request, as far as known. */
uint64_t admission_admit(struct admission *a, const struct request_sender *sender, uint64_t bytes, struct error *err);
/** At the request's end: charge the bytes received in place of those admitted. */
void admission_finished(struct admission *a, const struct request_sender *sender, uint64_t admitted, uint64_t received);

#endif
