/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/identify.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "server/access/csrf_token.h"

#define USER_PREFIX "proxy:" /* distinguishes users of a proxy from token names in logs */

static struct metric proxy_refusals = METRIC_COUNTER(
        "cairn_proxy_auth_refused_total",
        "Requests with the header of --proxy-auth refused: not from a trusted proxy, or without a valid user.", "");

const char *get_session_cookie_name(const struct http_request *req)
{
        return http_is_secure(req) ? "__Host-cairn" : "cairn";
}

const char *get_session_id(const struct http_request *req)
{
        return http_cookie(req, get_session_cookie_name(req));
}

static bool is_for_pages(const struct http_route *r)
{
        if (strncmp(r->path, "/api/v1/", 8) == 0)
                return r->scope == SCOPE_READ || r->scope == SCOPE_NONE;
        return strncmp(r->path, "/share/", 7) == 0 || strcmp(r->path, "/logout") == 0;
}

/* ---- a proxy's user ---- */

/* Accepts printable ASCII without spaces, so that the name fits in a log line. */
static bool copy_user_name(const char *value, char ret[static HTTP_TOKEN_NAME_SIZE])
{
        size_t n = strlen(value), prefix = strlen(USER_PREFIX);

        if (n == 0 || n >= HTTP_TOKEN_NAME_SIZE - prefix)
                return false;
        for (size_t i = 0; i < n; i++)
                if (value[i] <= ' ' || (unsigned char)value[i] >= 0x7f)
                        return false;
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the value follows, with its NUL */
        memcpy(ret, USER_PREFIX, prefix);
        memcpy(ret + prefix, value, n + 1);
        return true;
}

/* Responds when the header is not trusted. */
static void identify_proxy_user(const struct access_control *control, struct http_request *req,
                                struct request_sender *sender)
{
        const char *header = control->options->proxy_auth, *value = http_header(req, header), *problem = NULL;

        if (!http_is_from_proxy(req))
                problem = "its sender is not in --trusted-proxy";
        else if (http_count_headers(req, header) > 1)
                problem = "it occurs more than once; let the proxy replace the client's";
        else if (!copy_user_name(value, sender->user))
                problem = "it has no name of at most 57 printable ASCII characters without spaces";
        if (problem) {
                metric_add(&proxy_refusals, 1);
                http_fail_code(req, 403, "proxy_auth", "the header %s of this request is rejected: %s", header,
                               problem);
        } else if (csrf_check(control, req, sender->user)) {
                sender->kind = SENDER_USER;
        }
}

/* ---- identification and authorization ---- */

static void identify_session(struct access_control *control, struct http_request *req, struct request_sender *sender)
{
        const char *id = get_session_id(req);
        struct session session;

        if (!id || !sessions_find(control->sessions, id, monotonic_ns(), &session) || !csrf_check(control, req, id))
                return;
        sender->kind = SENDER_SESSION;
        sender->token = session.token;
}

void access_identify(struct access_control *control, struct http_request *req)
{
        struct request_sender *sender = calloc(1, sizeof *sender);

        if (!sender) {
                http_fail(req, ST_NO_MEMORY, NULL);
                return;
        }
        sender->peer = http_peer(req);
        sender->peer_number = http_peer_number(req);
        http_set_sender(req, sender);
        if (token_identify(http_token(req), &sender->token))
                sender->kind = SENDER_TOKEN;
        else if (!is_for_pages(http_route(req)) || http_is_cross_origin(req))
                sender->kind = SENDER_UNKNOWN;
        else if (control->options->proxy_auth && http_header(req, control->options->proxy_auth))
                identify_proxy_user(control, req, sender);
        else
                identify_session(control, req, sender);
}

enum http_access access_authorize(const struct access_control *control, const struct request_sender *sender,
                                  enum http_scope scope, char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        enum http_access access;

        if (sender->kind == SENDER_USER) {
                memcpy(name_ret, sender->user, sizeof sender->user);
                return scope == SCOPE_READ ? ACCESS_GRANTED : ACCESS_DENIED;
        }
        access = tokens_check(control->tokens, get_sender_token(sender), scope, name_ret);
        return access == ACCESS_GRANTED && sender->kind == SENDER_SESSION && scope != SCOPE_READ ? ACCESS_DENIED
                                                                                                 : access;
}

bool access_get_tenant(const struct access_control *control, const struct request_sender *sender, enum http_scope scope,
                       char ret[static TENANT_NAME_SIZE])
{
        if (sender->kind != SENDER_USER)
                return tokens_get_tenant(control->tokens, get_sender_token(sender), scope, ret);
        ret[0] = 0;
        return scope == SCOPE_READ;
}
