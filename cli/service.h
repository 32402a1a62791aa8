/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SERVICE_H
#define CAIRN_CLI_SERVICE_H

/** @file How a command reaches the service: where it is, the token that it asks for, who signs its certificate. */
#include "common/options.h"
#include "http/client.h"

#define DEFAULT_SERVER "http://127.0.0.1:7700"

struct service_options {
        const char *server;     /* NULL: DEFAULT_SERVER */
        const char *token_file; /* NULL: no token */
        const char *ca_file;    /* NULL: the system's certificates */
};

/* --token-file and --ca; what --server means is said by each command. */
#define SERVICE_OPTIONS(o)                                                                                     \
        OPTION_STRING("token-file", 0, "FILE", &(o)->token_file, "file with the token for the service"),       \
                OPTION_STRING("ca", 0, "FILE", &(o)->ca_file,                                                   \
                              "certificates that may sign the service's, as PEM (the system's)")

/**
 * A client of the service; a token that anybody on the way can read is said on stderr.
 * @param how other settings; where and who are taken from o.
 */
enum status service_connect(const struct service_options *o, const struct http_client_options *how,
                            struct http_client **ret, struct error *err) MUST_CHECK;

#endif
