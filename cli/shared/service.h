/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SHARED_SERVICE_H
#define CAIRN_CLI_SHARED_SERVICE_H

/**
 * @file Connection of a command to the service: URL, token, CA certificates.
 */
#include "common/config/options.h"
#include "http/http_client.h"

#define DEFAULT_SERVER "http://127.0.0.1:7700"

struct service_options {
        const char *server;     /* NULL: DEFAULT_SERVER */
        const char *token_file; /* NULL: no token */
        const char *ca_file;    /* NULL: the system's certificates */
        const char *tenant;     /* NULL: that of the token, or the default one */
};

/* --token-file and --ca; each command describes --server itself. */
#define SERVICE_OPTIONS(o)                                                                                             \
        OPTION_STRING("token-file", 0, "FILE", &(o)->token_file, "file with the bearer token for the service"),        \
                OPTION_STRING("ca", 0, "FILE", &(o)->ca_file,                                                          \
                              "CA certificates of the service, PEM (default: the system's)")

/* For commands that read or write samples; it selects the debuginfo too. */
#define TENANT_OPTION(o)                                                                                               \
        OPTION_STRING("tenant", 0, "NAME", &(o)->tenant,                                                               \
                      "samples of this tenant (default: the token's, else the default tenant)")
/* For those that read or write debuginfo and symbols. */
#define DEBUGINFO_TENANT_OPTION(o)                                                                                     \
        OPTION_STRING("tenant", 0, "NAME", &(o)->tenant,                                                               \
                      "debuginfo of this tenant (default: the token's, else the default tenant)")

/**
 * The path of the tenant's profile store in a data directory. @param ret owned.
 * @return ST_OK; ST_USAGE when the tenant's name is invalid; ST_NO_MEMORY; as data_format_check() of the directory.
 */
enum status service_profiles_path(const struct service_options *o, const char *data, char **ret,
                                  struct error *err) MUST_CHECK;

/**
 * The path of the folder with the tenant's index and debuginfo: its own if that has an index, else the one that tenants
 * share. As service_profiles_path().
 */
enum status service_debuginfo_path(const struct service_options *o, const char *data, char **ret,
                                   struct error *err) MUST_CHECK;
/** As above, for commands that change or show debuginfo: ST_NOT_FOUND when --tenant names one without its own. */
enum status service_own_debuginfo_path(const struct service_options *o, const char *data, char **ret,
                                       struct error *err) MUST_CHECK;

/**
 * A client of the service. Warns on stderr when the token is sent unencrypted.
 * @param how  other settings; URL, token and certificates come from o.
 */
enum status service_connect(const struct service_options *o, const struct http_client_options *how,
                            struct http_client **ret, struct error *err) MUST_CHECK;

/**
 * Like http_client_send(), but a request that the service refuses as wrong usage is ST_USAGE, as without a service, and
 * err has the service's text alone.
 */
enum status service_send(struct http_client *client, const struct http_client_request *request,
                         struct http_client_response *response, struct error *err) MUST_CHECK;

/**
 * Connect, send one request as by service_send() and append the response's body to ret. For work of which the service
 * sends nothing until it is done: the request fails after an hour without a byte.
 */
enum status service_call(const struct service_options *o, const struct http_client_request *request, struct buf *ret,
                         struct error *err) MUST_CHECK;
/** POST JSON by service_call(). The request is repeated when its connection is lost, so doing it twice must be
 * harmless. */
enum status service_post_json(const struct service_options *o, const char *path, const struct buf *body,
                              struct buf *ret, struct error *err) MUST_CHECK;

#endif
