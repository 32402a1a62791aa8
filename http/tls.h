/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_TLS_H
#define CAIRN_HTTP_TLS_H

/**
 * @file
 * TLS certificate and key of a server: two PEM files that can be reloaded at run time. A connection keeps the pair it
 * started with.
 *
 * Threads: any, except load and destroy.
 * Source: RFC 8446, RFC 5246; RFC 7468 for the files.
 */
#include <stdint.h>

#include "common/error.h"

struct tls;
struct tls_pair; /* a certificate with its chain, and its key */

/**
 * @param cert_path the certificate, then its chain. Both paths are copied.
 * @return ST_BAD_DATA, ST_NOT_FOUND, ST_OS: the text names the file and the remedy.
 */
enum status tls_load(const char *cert_path, const char *key_path, struct tls **ret, struct error *err) MUST_CHECK;
/**
 * Reload both files; on failure the previous pair stays in use. One thread at a time.
 * @param cert_path, key_path  new paths, copied; NULL: unchanged.
 */
enum status tls_reload(struct tls *t, const char *cert_path, const char *key_path, struct error *err) MUST_CHECK;
void tls_destroy(struct tls *t); /* takes NULL */

/** Expiry of the certificate, in seconds since 1970. */
int64_t tls_get_expiry(struct tls *t);

/* ---- for the HTTP server ---- */

/** GnuTLS priorities: TLS 1.2 and 1.3 only, with forward secrecy and authenticated encryption (RFC 9325, 4.2). */
#define TLS_PRIORITIES                                                                                                 \
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-AES-128-CBC:-AES-256-CBC:-CAMELLIA-128-CBC:-CAMELLIA-256-"   \
        "CBC"

/** The current pair; release it with tls_pair_release(). */
struct tls_pair *tls_pair_acquire(struct tls *t);
void tls_pair_release(struct tls_pair *p); /* takes NULL */
/** Use this pair in a session (gnutls_session_t). */
void tls_pair_apply(struct tls_pair *p, void *session);
/** The content of the files, borrowed while the pair is held. */
const char *tls_pair_cert(const struct tls_pair *p);
const char *tls_pair_key(const struct tls_pair *p);

#endif
