/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/data_format.h"
#include "common/files/file.h"
#include "common/files/tenant_name.h"
#include "common/limits.h"

static enum status check_tenant_option(const struct service_options *o, struct error *err)
{
        return !o->tenant || tenant_name_is_valid(o->tenant)
                       ? ST_OK
                       : error_set(err, ST_USAGE, "--tenant '%.40s' is not a valid tenant name", o->tenant);
}

enum status service_profiles_path(const struct service_options *o, const char *data, char **ret, struct error *err)
{
        enum status st = check_tenant_option(o, err);

        if (!st)
                st = data_format_check(data, err);
        if (st)
                return st;
        *ret = tenant_profiles_path(data, o->tenant);
        return *ret ? ST_OK : error_no_memory(err);
}

enum status service_debuginfo_path(const struct service_options *o, const char *data, char **ret, struct error *err)
{
        _cleanup_free_ char *own = NULL, *index = NULL;
        enum status st = check_tenant_option(o, err);

        if (!st)
                st = data_format_check(data, err);
        if (st)
                return st;
        own = tenant_data_path(data, o->tenant);
        index = own ? path_join(own, "index") : NULL;
        if (!index)
                return error_no_memory(err);
        *ret = access(index, F_OK) == 0 ? steal_ptr(own) : strdup(data);
        return *ret ? ST_OK : error_no_memory(err);
}

enum status service_own_debuginfo_path(const struct service_options *o, const char *data, char **ret, struct error *err)
{
        _cleanup_free_ char *path = NULL;
        enum status st = service_debuginfo_path(o, data, &path, err);

        if (!st && o->tenant && strcmp(o->tenant, TENANT_DEFAULT) != 0 && strcmp(path, data) == 0)
                return error_set(err, ST_NOT_FOUND,
                                 "tenant '%s' has no debuginfo of its own in '%s'; omit --tenant to use the debuginfo "
                                 "that tenants share",
                                 o->tenant, data);
        if (!st)
                *ret = steal_ptr(path);
        return st;
}

enum status service_connect(const struct service_options *o, const struct http_client_options *how,
                            struct http_client **ret, struct error *err)
{
        struct http_client_options options = *how;
        _cleanup_free_ char *token = NULL;
        enum status st = check_tenant_option(o, err);

        if (!st && o->token_file)
                st = http_client_read_token(o->token_file, &token, err);
        if (st)
                return st;
        options.base_url = o->server ? o->server : DEFAULT_SERVER;
        options.token = token;
        options.tenant = o->tenant;
        options.ca_file = o->ca_file;
        if (token && http_client_exposes_token(options.base_url))
                fprintf(stderr, "%s: the token goes to %s unencrypted; use https\n", program_invocation_short_name,
                        options.base_url);
        return http_client_create(&options, ret, err);
}

enum status service_send(struct http_client *client, const struct http_client_request *request,
                         struct http_client_response *response, struct error *err)
{
        char reason[32], text[sizeof err->text];
        enum status st = http_client_send(client, request, response, err);

        if (st != ST_BAD_DATA ||
            strcmp(http_client_get_error_member(response, "reason", reason, sizeof reason), "usage") != 0)
                return st;
        return error_set(err, ST_USAGE, "%s", http_client_get_error_member(response, "error", text, sizeof text));
}

enum status service_call(const struct service_options *o, const struct http_client_request *request, struct buf *ret,
                         struct error *err)
{
        const struct http_client_options how = { .size = sizeof how, .idle_timeout_s = 3600 };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_http_client_ struct http_client *client = NULL;
        enum status st = service_connect(o, &how, &client, err);

        if (!st)
                st = service_send(client, request, &response, err);
        if (!st)
                buf_append(ret, response.body.data, response.body.size);
        return st ? st : buf_status(ret, err, "answer");
}

enum status service_post_json(const struct service_options *o, const char *path, const struct buf *body,
                              struct buf *ret, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        const struct http_client_request request = { .method = "POST",
                                                     .path = path,
                                                     .headers = headers,
                                                     .body = body->data,
                                                     .body_size = body->size,
                                                     .max_response = LIMIT_RESPONSE_BYTES,
                                                     .repeatable = true };

        return service_call(o, &request, ret, err);
}
