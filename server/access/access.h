/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_ACCESS_H
#define CAIRN_SERVER_ACCESS_ACCESS_H

/**
 * @file
 * Access control: bearer tokens, sessions of browsers, TLS certificate, per-client limits. Token file and certificate
 * are read at the start and again at SIGHUP.
 *
 * Threads: only the one that runs the server.
 */
#include "http/listen.h"
#include "http/server.h"
#include "server/access/admission.h"
#include "server/access/rate_limit.h"
#include "server/access/sessions.h"
#include "server/server.h"
#include "server/access/tokens.h"

struct tls;

struct access_control {
        const struct server_options *options;
        struct tenant_configs *tenants; /* NULL: there is only the default one */
        struct tokens *tokens;          /* NULL: everything is allowed */
        struct tls *tls;                /* NULL: http */
        struct admission *admission;
        struct sessions *sessions;
        struct rate_limit *sign_ins; /* attempts by address */
        uint8_t csrf_key[SHA256_BYTES];
};

struct listeners {
        struct listen_address http, grpc; /* grpc: on loopback without a port when there is none */
};

/**
 * What access control asks of the options, for the service and for those who check its configuration.
 * @return ST_OK; ST_USAGE when an address is none, anyone on the network could write, only one of certificate and key
 *         is given, or a proxy's header could come from anybody.
 */
enum status access_check_options(const struct server_options *o, struct listeners *ret, struct error *err) MUST_CHECK;
/**
 * Read the files. Warns if tokens would cross the network unencrypted.
 * @param is_loopback  all listeners are on loopback addresses.
 */
enum status access_open(struct access_control *d, const struct server_options *o, bool is_loopback,
                        struct error *err) MUST_CHECK;
/** Read the token file again, and end the sessions of tokens that are gone. On failure the previous one stays in use.
 */
enum status access_reload_tokens(struct access_control *d, const char *path, struct error *err) MUST_CHECK;
/** Read certificate and key again. On failure the previous pair stays in use. */
enum status access_reload_certificate(struct access_control *d, const char *cert_path, const char *key_path,
                                      struct error *err) MUST_CHECK;
void access_close(struct access_control *d);

#endif
