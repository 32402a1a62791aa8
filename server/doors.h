/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_DOORS_H
#define CAIRN_SERVER_DOORS_H

/**
 * @file
 * Who gets in, and how: tokens, the certificate of https, and how much of
 * whom. The first two are files, read at the start and again at SIGHUP.
 *
 * Threads: doors_authorize() any; the others only the one that runs the server.
 */
#include "http/listen.h"
#include "http/server.h"
#include "server/admission.h"
#include "server/server.h"
#include "server/tokens.h"

struct tls;

struct doors {
        const struct server_options *options;
        struct tokens *tokens; /* NULL: everything is allowed */
        struct tls *tls;       /* NULL: http */
        struct admission *admission;
};

/** ST_USAGE when everybody on a network could write, or when half of a certificate is named. */
enum status doors_check(const struct server_options *o, const struct listen_address *listen, struct error *err) MUST_CHECK;
/** Read the files; what is in the clear and should not be is logged. */
enum status doors_open(struct doors *d, const struct server_options *o, const struct listen_address *listen,
                       struct error *err) MUST_CHECK;
/** Read the files again. What is not right is logged, and what was there before stays. */
void doors_reload(struct doors *d);
void doors_close(struct doors *d);

/** For http_options.authorize, with the doors as context; only when there are tokens. */
enum http_access doors_authorize(const struct doors *d, const char *token, enum http_scope scope,
                                 char name_ret[static HTTP_TOKEN_NAME_SIZE]);

#endif
