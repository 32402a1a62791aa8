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
#include "http/http_server.h"
#include "server/access/tokens.h"

struct admission;

/** @param tokens borrowed, NULL: none.  @param address_rate requests per second, 0: no limit. */
enum status admission_create(struct tokens *tokens, uint64_t address_rate, struct admission **ret,
                             struct error *err) MUST_CHECK;
void admission_destroy(struct admission *a); /* takes NULL */
/** Change address_rate for requests from now on. */
void admission_set_address_rate(struct admission *a, uint64_t address_rate);

enum sender_kind {
        SENDER_UNKNOWN, /* no credentials */
        SENDER_TOKEN,   /* the request carries a token, which may not be in the file */
        SENDER_SESSION, /* a browser that signed in with a token */
        SENDER_USER,    /* a user named by a trusted proxy */
};

/** The sender of a request, as identify.h determines it. */
struct request_sender {
        enum sender_kind kind;
        struct token_id token;           /* for SENDER_TOKEN and SENDER_SESSION */
        char user[HTTP_TOKEN_NAME_SIZE]; /* for SENDER_USER */
        const char *peer;                /* numeric address */
        uint64_t peer_number;
};

/** The token of the sender, NULL: none. */
const struct token_id *get_sender_token(const struct request_sender *sender);

/**
 * @param bytes  declared size of the request; 0: unknown.
 * @return 0 when admitted; else the seconds to wait before a retry, with the reason in err.
 */
uint64_t admission_admit(struct admission *a, const struct request_sender *sender, uint64_t bytes, struct error *err);
/** At the request's end: charge the bytes received in place of those admitted. */
void admission_finished(struct admission *a, const struct request_sender *sender, uint64_t admitted, uint64_t received);

#endif
