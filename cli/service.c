/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service.h"

#include <stdio.h>
#include <stdlib.h>

enum status service_connect(const struct service_options *o, const struct http_client_options *how,
                            struct http_client **ret, struct error *err)
{
        struct http_client_options options = *how;
        _cleanup_free_ char *token = NULL;
        enum status st = o->token_file ? http_client_read_token(o->token_file, &token, err) : ST_OK;

        if (st)
                return st;
        options.base_url = o->server ? o->server : DEFAULT_SERVER;
        options.token = token;
        options.ca_file = o->ca_file;
        if (token && http_client_exposes_token(options.base_url))
                fprintf(stderr, "cairn: the token goes to %s unencrypted; use https\n", options.base_url);
        return http_client_create(&options, ret, err);
}
