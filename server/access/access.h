/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_ACCESS_H
#define CAIRN_SERVER_ACCESS_ACCESS_H

/**
 * @file
 * Access control: bearer tokens, browser sessions, TLS certificate, per-client limits. Token file and certificate
 * are read at startup and again on SIGHUP.
 *
 * Threads: only the thread that runs the server.
 */
#include "http/http_server.h"
#include "http/listen.h"
#include "server/access/admission.h"
#include "server/access/rate_limit.h"
#include "server/access/sessions.h"
#include "server/access/tokens.h"
#include "server/server_options.h"

struct tls;

struct access_control {
        const struct server_options *options;
        struct tenant_configs *tenants; /* NULL: only the default tenant */
        struct tokens *tokens;          /* NULL: everything is allowed */
        struct tls *tls;                /* NULL: http */
        struct admission *admission;
        struct sessions *sessions;
        struct rate_limit *sign_ins; /* attempts by address */
        uint8_t csrf_key[SHA256_BYTES];
};

struct listeners {
        struct listen_address http, grpc; /* grpc: port 0 and is_loopback without such a listener */
};

/**
 * Check the options of access control, at startup and for the configuration check.
 * @return ST_OK; ST_USAGE when an address is malformed, a listener beyond loopback has no tokens, only one of
 *         certificate and key is given, or any client could send the proxy's header.
 */
enum status access_check_options(const struct server_options *o, struct listeners *ret, struct error *err) MUST_CHECK;
/**
 * Read the files. Warns if tokens would cross the network unencrypted.
 * @param is_loopback  all listeners are on loopback addresses.
 */
enum status access_open(struct access_control *control, const struct server_options *o, bool is_loopback,
                        struct error *err) MUST_CHECK;
/** Read the token file again, and end the sessions of removed tokens. On failure the previous tokens stay in use. */
enum status access_reload_tokens(struct access_control *control, const char *path, struct error *err) MUST_CHECK;
/** Read certificate and key again. On failure the previous pair stays in use. */
enum status access_reload_certificate(struct access_control *control, const char *cert_path, const char *key_path,
                                      struct error *err) MUST_CHECK;
void access_close(struct access_control *control);

#endif
