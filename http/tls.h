/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_TLS_H
#define CAIRN_HTTP_TLS_H

/**
 * @file
 * The certificate a server shows, and its key: two PEM files that are read
 * again while the server runs. A connection keeps the pair it began with.
 *
 * Threads: any, except load and destroy.
 * Source: RFC 8446, RFC 5246; RFC 7468 for the files.
 */
#include <stdint.h>

#include "common/error.h"

struct tls;
struct tls_pair; /* a certificate with its chain, and its key */

/**
 * @param cert_path the certificate, then those of its chain. Both paths are copied.
 * @return ST_BAD_DATA, ST_NOT_FOUND, ST_OS: the text names the file and what to do.
 */
enum status tls_load(const char *cert_path, const char *key_path, struct tls **ret, struct error *err) MUST_CHECK;
/** Read both files again; when they are not right the pair from before stays. */
enum status tls_reload(struct tls *t, struct error *err) MUST_CHECK;
void tls_destroy(struct tls *t); /* takes NULL */

/** When the certificate ends, in seconds since 1970. */
int64_t tls_expires(struct tls *t);

/* For the server. */

/** What libmicrohttpd takes for its priorities: 1.2 and 1.3 only. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/** The pair of now; give it back with tls_pair_drop(). */
struct tls_pair *tls_pair_take(struct tls *t);
void tls_pair_drop(struct tls_pair *p); /* takes NULL */
/** Let a session (gnutls_session_t) show this pair. */
void tls_pair_use(struct tls_pair *p, void *session);
/** The files' text, borrowed for as long as the pair is held. */
const char *tls_pair_cert(const struct tls_pair *p);
const char *tls_pair_key(const struct tls_pair *p);

#endif
