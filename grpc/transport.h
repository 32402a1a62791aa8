/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_GRPC_TRANSPORT_H
#define CAIRN_GRPC_TRANSPORT_H

/*
 * Bytes of a non-blocking socket, with TLS (GnuTLS; ALPN "h2") or without.
 *
 * Threads: one at a time. Source: RFC 9113, 3.2, 9.2; RFC 7301.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct tls;
struct tls_pair;
struct gnutls_session_int;

enum transport_result { TRANSPORT_DONE, TRANSPORT_WAIT, TRANSPORT_ENDED };

struct transport {
        int fd;                         /* owned */
        struct gnutls_session_int *tls; /* NULL: without TLS */
        struct tls_pair *pair;
        bool is_open;     /* the handshake is complete */
        bool wants_write; /* WAIT means for space in the socket buffer, else for input */
};

/** Takes fd, also on failure.  @param tls NULL: without TLS. */
enum status transport_open(struct transport *t, int fd, struct tls *tls, struct error *err) MUST_CHECK;
void transport_close(struct transport *t);
/** Continue the handshake; DONE when is_open. */
enum transport_result transport_handshake(struct transport *t);
/** DONE: *n_ret bytes, at least one. */
enum transport_result transport_read(struct transport *t, void *to, size_t n, size_t *n_ret);
/** DONE: *n_ret bytes were accepted. After WAIT, call it again with the same bytes. */
enum transport_result transport_write(struct transport *t, const void *data, size_t n, size_t *n_ret);
/** Whether input is buffered, which poll does not report. */
bool transport_has_input(const struct transport *t);

#endif
