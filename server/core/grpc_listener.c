/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/grpc_listener.h"

#include <stdlib.h>
#include <string.h>

#include "server/access/audit.h"
#include "server/access/identify.h"

static struct request_sender get_call_sender(const struct grpc_call *call)
{
        struct request_sender sender = { .peer = grpc_call_peer(call), .peer_number = grpc_call_peer_number(call) };

        if (token_identify(grpc_call_token(call), &sender.token))
                sender.kind = SENDER_TOKEN;
        return sender;
}

static enum http_access authorize_call(void *context, const char *token, enum http_scope scope,
                                       char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        struct request_sender sender = { .kind = SENDER_UNKNOWN };
        struct server *s = context;

        if (token_identify(token, &sender.token))
                sender.kind = SENDER_TOKEN;
        return access_authorize(&s->access_control, &sender, scope, name_ret);
}

static uint64_t admit_call(void *context, const struct grpc_call *call, struct error *err)
{
        const struct request_sender sender = get_call_sender(call);
        struct server *s = context;

        return admission_admit(s->access_control.admission, &sender, 0, err);
}

static void select_grpc_tenant(void *context, struct grpc_call *call)
{
        struct server *s = context;
        const struct request_sender sender = get_call_sender(call);
        struct tokens *tokens = s->access_control.tokens;
        char token_tenant[TENANT_NAME_SIZE];
        struct tenant_request r = { .header = grpc_call_count_metadata(call, "x-scope-orgid") > 1
                                                      ? ""
                                                      : grpc_call_metadata(call, "x-scope-orgid"),
                                    .token_tenant = tokens ? token_tenant : NULL,
                                    .tenancy = grpc_call_method(call)->tenancy };
        struct tenant *tenant;
        struct error err;
        unsigned refused;
        uint64_t wait_s;

        if (tokens && !access_get_tenant(&s->access_control, &sender, grpc_call_method(call)->scope, token_tenant)) {
                grpc_call_fail(call, GRPC_UNAUTHENTICATED, 0,
                               "the token file changed: the token no longer has the scope");
                return;
        }
        refused = tenants_choose(s->tenants, &r, &tenant, &err);
        if (refused) {
                grpc_call_fail(call,
                               refused == 400   ? GRPC_INVALID_ARGUMENT
                               : refused == 404 ? GRPC_NOT_FOUND
                                                : GRPC_PERMISSION_DENIED,
                               0, "%s", err.text);
                return;
        }
        wait_s = tenants_admit(s->tenants, tenant, grpc_call_method(call)->scope, 0, &err);
        if (wait_s) {
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, wait_s, "%s", err.text);
                return;
        }
        grpc_call_set_tenant(call, tenant, tenant->lane);
        grpc_call_set_message_group(call, get_body_group(s->tenants, tenant, grpc_call_method(call)->scope));
}

static void finish_call(void *context, const struct grpc_call *call)
{
        const struct request_sender sender = get_call_sender(call);
        enum grpc_code code = grpc_call_code(call);
        struct server *s = context;

        if (grpc_call_tenant(call))
                tenants_finish(s->tenants, grpc_call_tenant(call), grpc_call_method(call)->scope, 0,
                               grpc_call_received_bytes(call));
        if (grpc_call_is_admitted(call))
                admission_finished(s->access_control.admission, &sender, 0, grpc_call_received_bytes(call));
        audit_request(&(struct audited_request){ .code = grpc_code_to_http(code),
                                                 .method = "gRPC",
                                                 .target = grpc_call_path(call),
                                                 .token_name = grpc_call_token_name(call),
                                                 .peer = grpc_call_peer(call),
                                                 .writes = grpc_call_method(call) && grpc_call_method(call)->writes });
}

static void refuse_call_of_role(struct grpc_call *call, void *context)
{
        const struct server *s = context;
        char own[NODE_ROLES_TEXT], needed[NODE_ROLES_TEXT];

        grpc_call_fail(call, GRPC_UNIMPLEMENTED, 0,
                       "%s needs the role %s, and this node has only %s (--role): send the call to another node",
                       grpc_call_path(call), node_roles_write(get_grpc_method_roles(grpc_call_path(call)), needed),
                       node_roles_write(s->options->roles, own));
}

bool is_grpc_pool(unsigned pool, unsigned roles)
{
        for (size_t i = 0; i < grpc_method_count; i++)
                if (!grpc_methods[i].at_once && grpc_methods[i].pool == pool &&
                    get_grpc_method_roles(grpc_methods[i].path) & roles)
                        return true;
        return false;
}

/* Methods of other roles are refused. @param ret  owned */
static enum status choose_methods(unsigned roles, struct grpc_method **ret, struct error *err)
{
        struct grpc_method *methods = calloc(grpc_method_count, sizeof *methods);

        if (!methods)
                return error_no_memory(err);
        for (size_t i = 0; i < grpc_method_count; i++) {
                methods[i] = grpc_methods[i];
                if (!(get_grpc_method_roles(methods[i].path) & roles))
                        methods[i] = (struct grpc_method){ .path = methods[i].path,
                                                           .scope = SCOPE_NONE,
                                                           .at_once = true,
                                                           .refuse = refuse_call_of_role };
        }
        *ret = methods;
        return ST_OK;
}

static enum status check_grpc_tenancies(struct error *err)
{
        for (size_t i = 0; i < grpc_method_count; i++) {
                const struct grpc_method *m = &grpc_methods[i];

                if ((m->scope == SCOPE_NONE) != (m->tenancy == TENANCY_UNDECIDED))
                        return error_set(err, ST_UNSUPPORTED,
                                         "%s: a method has a tenancy if, and only if, it needs a scope", m->path);
        }
        return ST_OK;
}

enum status start_grpc_listener(struct server *s, const struct listen_address *listen, struct error *err)
{
        enum status st = check_grpc_tenancies(err);

        if (!st)
                st = choose_methods(s->options->roles, &s->grpc_methods, err);
        const struct grpc_options o = { .size = sizeof o,
                                        .host = listen->host,
                                        .port = listen->port,
                                        .tls = s->access_control.tls,
                                        .http = s->http,
                                        .methods = s->grpc_methods,
                                        .method_count = grpc_method_count,
                                        .max_connections = (unsigned)s->options->max_connections,
                                        .max_per_address = (unsigned)s->options->max_per_address,
                                        .authorize = s->access_control.tokens ? authorize_call : NULL,
                                        .admit = admit_call,
                                        .choose_tenant = select_grpc_tenant,
                                        .finished = finish_call,
                                        .context = s };
        bool v6 = strchr(listen->host, ':') != NULL;

        if (!st)
                st = grpc_server_start(&o, &s->grpc, err);
        if (!st)
                log_info("serve", "OTLP over gRPC on %s%s%s:%u%s", v6 ? "[" : "", listen->host, v6 ? "]" : "",
                         (unsigned)grpc_server_port(s->grpc), s->access_control.tls ? ", with TLS" : "");
        return st;
}
