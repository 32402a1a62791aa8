/* SPDX-License-Identifier: Apache-2.0 */
/* Browser sign-in: POST /login, POST /logout, GET /api/v1/session (docs/formats/session.md) */
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "common/metrics.h"
#include "server/access/csrf_token.h"
#include "server/access/identify.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

#define TOKEN_BYTES_MAX 1024
#define COOKIE_BYTES (SESSION_ID_SIZE + 128)

#define SIGN_INS(result) METRIC_COUNTER("cairn_sign_ins_total", "Sign-in attempts of browsers.", result)

static struct metric accepted = SIGN_INS("result=\"accepted\"");
static struct metric refused = SIGN_INS("result=\"refused\"");
static struct metric limited = SIGN_INS("result=\"limited\"");
static struct metric malformed = SIGN_INS("result=\"malformed\"");

static const struct rate_limit_config attempts = { .requests_per_s = 1, .interval_s = LIMIT_SIGN_IN_INTERVAL_S };

/* ---- session status ---- */

static void write_scopes(struct json_out *j, const struct access_control *control, const struct request_sender *sender)
{
        static const struct {
                enum http_scope scope;
                const char *name;
        } scopes[] = { { SCOPE_READ, "read" },       { SCOPE_INGEST, "ingest" }, { SCOPE_UPLOAD, "upload" },
                       { SCOPE_HISTORY, "history" }, { SCOPE_NODE, "node" },     { SCOPE_ADMIN, "admin" } };
        char name[HTTP_TOKEN_NAME_SIZE];

        json_out_array(j, "scopes");
        for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
                if (!control->tokens || access_authorize(control, sender, scopes[i].scope, name) == ACCESS_GRANTED)
                        json_out_str(j, NULL, scopes[i].name);
        json_out_array_end(j);
}

static const char *name_sender_kind(enum sender_kind kind)
{
        switch (kind) {
        case SENDER_UNKNOWN:
                break;
        case SENDER_TOKEN:
                return "token";
        case SENDER_SESSION:
                return "session";
        case SENDER_USER:
                return "proxy";
        }
        return "none";
}

/* @param session_id  for SENDER_SESSION */
static void respond_session(struct http_request *req, const struct access_control *control,
                            const struct request_sender *sender, const char *session_id)
{
        char name[HTTP_TOKEN_NAME_SIZE] = "", csrf[SHA256_HEX_MAX];
        enum http_access access =
                control->tokens ? access_authorize(control, sender, SCOPE_READ, name) : ACCESS_GRANTED;
        enum sender_kind kind = control->tokens && access != ACCESS_UNKNOWN ? sender->kind : SENDER_UNKNOWN;
        struct session session;
        struct json_out j;
        struct buf body;

        buf_init(&body, KiB(4));
        json_out_init(&j, &body);
        json_out_object(&j, NULL);
        json_out_bool(&j, "sign_in_needed", access != ACCESS_GRANTED);
        json_out_str(&j, "signed_in_by", name_sender_kind(kind));
        json_out_str(&j, "name", kind == SENDER_UNKNOWN ? "" : name);
        write_scopes(&j, control, sender);
        if (kind == SENDER_SESSION || kind == SENDER_USER) {
                csrf_write_token(control, kind == SENDER_SESSION ? session_id : sender->user, csrf);
                json_out_str(&j, "csrf", csrf);
        }
        if (kind == SENDER_SESSION && sessions_find(control->sessions, session_id, monotonic_ns(), &session))
                json_out_uint(&j, "expires_in_s", session.left_s);
        if (access == ACCESS_GRANTED)
                json_out_str(&j, "version", CAIRN_VERSION);
        json_out_object_end(&j);
        respond_json(req, &body);
}

static void handle_session(struct http_request *req)
{
        const struct server *s = http_context(req);

        respond_session(req, &s->access_control, http_sender(req), get_session_id(req));
}

/* ---- signing in ---- */

/* @param age_s 0: remove the cookie */
static void set_session_cookie(struct http_request *req, const char *id, uint64_t age_s)
{
        char text[COOKIE_BYTES];

        snprintf(text, sizeof text, "%s=%s; Path=/; %sHttpOnly; SameSite=Strict; Max-Age=%" PRIu64,
                 get_session_cookie_name(req), id, http_is_secure(req) ? "Secure; " : "", age_s);
        http_set_header(req, "Set-Cookie", text);
}

/* Responds when the body has no token. */
static bool read_sent_token(struct http_request *req, char ret[static TOKEN_BYTES_MAX])
{
        const char *type = http_header(req, "Content-Type");
        struct json_value object;
        struct error err;
        const uint8_t *body;
        size_t n;

        body = http_body(req, &n);
        if (http_is_type(type, "application/json")) {
                if (!json_value_parse(body, n, &object, &err) &&
                    json_value_text(&object, "token", ret, TOKEN_BYTES_MAX))
                        return true;
        } else if (http_is_type(type, "application/x-www-form-urlencoded")) {
                if (http_form_field(req, "token", ret, TOKEN_BYTES_MAX))
                        return true;
        } else {
                http_fail_code(req, 415, "unsupported",
                               "send application/json, {\"token\": \"TOKEN\"}, or a form with the field token");
                return false;
        }
        http_fail_code(req, 400, "bad_data", "the body has no token: send {\"token\": \"TOKEN\"}, or a form");
        return false;
}

/* Responds when the address has made too many attempts. */
static bool admit_attempt(struct http_request *req, const struct access_control *control)
{
        uint64_t wait_s = 1;
        char text[24];

        if (rate_limit_take(control->sign_ins, http_peer_number(req), &attempts, 0, monotonic_ns(), &wait_s) ==
            RATE_FINE)
                return true;
        metric_add(&limited, 1);
        snprintf(text, sizeof text, "%" PRIu64, wait_s);
        http_set_header(req, "Retry-After", text);
        http_fail_code(req, 429, "rate", "too many failed attempts to sign in from %s; retry in %" PRIu64 " s",
                       http_peer(req), wait_s);
        return false;
}

/* Responds when the token is unknown or lacks the scope `read`. */
static bool check_sent_token(struct http_request *req, struct access_control *control,
                             const struct request_sender *sender)
{
        char name[HTTP_TOKEN_NAME_SIZE];
        enum http_access access = access_authorize(control, sender, SCOPE_READ, name);

        http_set_token_name(req, name);
        if (access == ACCESS_GRANTED) {
                rate_limit_refund(control->sign_ins, http_peer_number(req), &attempts, monotonic_ns());
                metric_add(&accepted, 1);
                return true;
        }
        metric_add(&refused, 1);
        if (access == ACCESS_DENIED)
                http_fail_code(req, 403, "scope", "the token does not carry the scope 'read'");
        else
                http_fail_code(req, 401, "bad_token", "unknown token");
        return false;
}

static void begin_session(struct http_request *req, struct access_control *control, struct request_sender *sender)
{
        const char *old = get_session_id(req);
        char id[SESSION_ID_SIZE];
        struct error err;
        enum status st = sessions_begin(control->sessions, &sender->token, monotonic_ns(), id, &err);

        if (st) {
                http_fail(req, st, &err);
                return;
        }
        if (old)
                sessions_end(control->sessions, old);
        set_session_cookie(req, id, control->options->session_max_age_s);
        sender->kind = SENDER_SESSION;
        respond_session(req, control, sender, id);
        explicit_bzero(id, sizeof id);
}

static void handle_login(struct http_request *req)
{
        struct server *s = http_context(req);
        struct access_control *control = &s->access_control;
        struct request_sender sender = { .kind = SENDER_TOKEN, .peer = http_peer(req) };
        char token[TOKEN_BYTES_MAX];

        metric_register(&accepted);
        metric_register(&refused);
        metric_register(&limited);
        metric_register(&malformed);
        if (!control->tokens) {
                http_fail_code(req, 400, "usage", "this service has no tokens, so its pages need no sign-in");
                return;
        }
        if (!admit_attempt(req, control))
                return;
        if (!read_sent_token(req, token))
                metric_add(&malformed, 1);
        else if (!token_identify(token, &sender.token))
                http_fail(req, ST_NO_MEMORY, NULL);
        else if (check_sent_token(req, control, &sender))
                begin_session(req, control, &sender);
        explicit_bzero(token, sizeof token);
}

static void handle_logout(struct http_request *req)
{
        struct server *s = http_context(req);
        struct access_control *control = &s->access_control;
        const struct request_sender *sender = http_sender(req);
        char name[HTTP_TOKEN_NAME_SIZE] = "";

        if (sender->kind == SENDER_SESSION && sessions_end(control->sessions, get_session_id(req))) {
                (void)tokens_check(control->tokens, &sender->token, SCOPE_READ, name);
                http_set_token_name(req, name);
        }
        set_session_cookie(req, "", 0);
        http_respond(req, 204, NULL, "", 0);
}

static const struct http_route routes[] = {
        { OPEN_ROUTE("GET", "/api/v1/session"), .pool = POOL_STATUS, .handle = handle_session },
        { OPEN_ROUTE("POST", "/login"), .pool = POOL_STATUS, .max_body = LIMIT_SIGN_IN_BYTES, .handle = handle_login,
          .writes = true },
        { OPEN_ROUTE("POST", "/logout"), .pool = POOL_STATUS, .max_body = LIMIT_SIGN_IN_BYTES,
          .body_type = "application/json", .handle = handle_logout, .writes = true },
};
const struct route_table session_routes = ROUTE_TABLE(ROLE_QUERY, routes);
