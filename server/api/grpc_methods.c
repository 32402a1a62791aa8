/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC methods: OTLP profiles, health checks, Parca's services, and querier.v1. docs/formats/ingest.md, parca.md,
 * querier.md; OTLP specification 1.11.0, OTLP/gRPC.
 */
#include <string.h>

#include "profile-formats/otlp/otlp.h"
#include "profile-formats/proto/grpc_health.pb-c.h"
#include "profile-formats/proto_message.h"
#include "server/api/profiles/querier_methods.h"
#include "server/core/grpc_listener.h"
#include "server/core/ingest.h"
#include "server/protocol/grpc_query.h"
#include "server/protocol/parca_methods.h"

#define SERVICE_BYTES 128           /* name of a service in a health check */
#define HEALTH_MEMORY_BYTES KiB(64) /* a decoded request, which has at most 1 KiB */
#define PROFILES_SERVICE "opentelemetry.proto.collector.profiles.v1development.ProfilesService"
#define PARCA_PROFILES "/parca.profilestore.v1alpha1.ProfileStoreService"
#define PARCA_QUERY "/parca.query.v1alpha1.QueryService"
#define QUERIER "/querier.v1.QuerierService"
#define HEALTH "/grpc.health.v1.Health"
#define QUERY_METHOD                                                                                                   \
        .scope = SCOPE_READ, .tenancy = TENANCY_OWN, .max_message = GRPC_QUERY_BYTES, .memory = MEMORY_BODIES,         \
        .pool = POOL_QUERY
#define PARCA_QUERY_METHOD QUERY_METHOD, .handle = handle_parca_query
#define QUERIER_METHOD QUERY_METHOD, .handle = handle_querier_call
#define PARCA_DEBUGINFO "/parca.debuginfo.v1alpha1.DebuginfoService"

static void handle_grpc_export(struct grpc_call *call, void *context)
{
        struct batch_source source = { .header = grpc_call_metadata(call, "x-cairn-batch"),
                                       .uri = grpc_call_path(call),
                                       .token = grpc_call_token(call) };
        struct ingest_batch batch = begin_grpc_batch(call);
        struct otlp_body body = { 0 };
        struct otlp_outcome outcome;
        struct buf answer;
        struct error err;
        enum status st;

        (void)context;
        body.bytes = source.body = grpc_call_message(call, &body.size);
        source.size = body.size;
        st = compute_batch_id(&source, &batch.id, &err);
        if (!st)
                st = ingest_otlp_batch(&batch, &body, &outcome, &err);
        if (st) {
                fail_ingest_call(call, &batch, st, &err);
                return;
        }
        buf_init(&answer, KiB(4));
        otlp_put_response(&answer, outcome.rejected, outcome.message[0] ? outcome.message : NULL);
        grpc_call_reply(call, &answer);
}

/* False when it is malformed. */
static bool parse_health_request(struct grpc_call *call, char service_ret[static SERVICE_BYTES])
{
        const GrpcHealth__HealthCheckRequest *request;
        _cleanup_arena_ struct arena memory;
        const uint8_t *bytes;
        const void *message;
        size_t n;

        bytes = grpc_call_message(call, &n);
        arena_init(&memory, HEALTH_MEMORY_BYTES);
        if (proto_message_decode(&grpc_health__health_check_request__descriptor, n ? bytes : (const uint8_t *)"", n,
                                 &memory, "HealthCheckRequest", &message, NULL))
                return false;
        request = message;
        return snprintf(service_ret, SERVICE_BYTES, "%s", request->service) < SERVICE_BYTES;
}

/* grpc.health.v1, equivalent to /readyz. */
static void handle_grpc_health(struct grpc_call *call, void *context)
{
        GrpcHealth__HealthCheckResponse response = GRPC_HEALTH__HEALTH_CHECK_RESPONSE__INIT;
        struct server *s = context;
        char service[SERVICE_BYTES];
        _cleanup_buf_ struct buf conditions;
        struct buf answer;
        bool takes_profiles, ready;

        buf_init(&conditions, KiB(16));
        if (!parse_health_request(call, service)) {
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0, "not a HealthCheckRequest");
                return;
        }
        takes_profiles = s->options->roles & (ROLE_INGEST | ROLE_GATEWAY);
        if (service[0] && (strcmp(service, PROFILES_SERVICE) != 0 || !takes_profiles)) {
                grpc_call_fail(call, GRPC_NOT_FOUND, 0, "the service '%s' does not exist%s", service,
                               takes_profiles ? "" : " on a node without the role ingest");
                return;
        }
        ready = readiness_write(s->readiness, &conditions) && atomic_load(&s->ready);
        response.status = ready ? GRPC_HEALTH__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                                : GRPC_HEALTH__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
        buf_init(&answer, 16);
        proto_message_append(&answer, &response.base);
        grpc_call_reply(call, &answer);
}

const struct grpc_method grpc_methods[] = {
        { .path = "/" PROFILES_SERVICE "/Export",
          .scope = SCOPE_INGEST,
          .tenancy = TENANCY_OWN,
          .max_message = LIMIT_HTTP_BODY_BYTES,
          .memory = MEMORY_INGEST,
          .pool = POOL_INGEST,
          .handle = handle_grpc_export },
        { .path = HEALTH "/Check",
          .scope = SCOPE_NONE,
          .max_message = KiB(1),
          .memory = MEMORY_CONNECTIONS,
          .at_once = true,
          .handle = handle_grpc_health },
        { .path = PARCA_PROFILES "/WriteRaw",
          .scope = SCOPE_INGEST,
          .tenancy = TENANCY_OWN,
          .max_message = LIMIT_HTTP_BODY_BYTES,
          .memory = MEMORY_INGEST,
          .pool = POOL_INGEST,
          .handle = handle_parca_write_raw },
        { .path = PARCA_PROFILES "/WriteArrow",
          .scope = SCOPE_INGEST,
          .tenancy = TENANCY_OWN,
          .at_once = true,
          .refuse = refuse_parca_arrow },
        { .path = PARCA_PROFILES "/Write",
          .scope = SCOPE_INGEST,
          .tenancy = TENANCY_OWN,
          .at_once = true,
          .refuse = refuse_parca_arrow },
        { .path = PARCA_QUERY "/ProfileTypes", PARCA_QUERY_METHOD },
        { .path = PARCA_QUERY "/Labels", PARCA_QUERY_METHOD },
        { .path = PARCA_QUERY "/Values", PARCA_QUERY_METHOD },
        { .path = PARCA_QUERY "/QueryRange", PARCA_QUERY_METHOD },
        { .path = PARCA_QUERY "/Query", PARCA_QUERY_METHOD },
        { .path = PARCA_QUERY "/Series", PARCA_QUERY_METHOD },
        { .path = QUERIER "/ProfileTypes", QUERIER_METHOD },
        { .path = QUERIER "/LabelNames", QUERIER_METHOD },
        { .path = QUERIER "/LabelValues", QUERIER_METHOD },
        { .path = QUERIER "/Series", QUERIER_METHOD },
        { .path = QUERIER "/SelectMergeStacktraces", QUERIER_METHOD },
        { .path = QUERIER "/SelectMergeSpanProfile", QUERIER_METHOD },
        { .path = QUERIER "/SelectMergeProfile", QUERIER_METHOD },
        { .path = QUERIER "/SelectSeries", QUERIER_METHOD },
        { .path = QUERIER "/Diff", QUERIER_METHOD },
        { .path = QUERIER "/GetProfileStats", QUERIER_METHOD },
        { .path = QUERIER "/AnalyzeQuery", QUERIER_METHOD },
        { .path = PARCA_DEBUGINFO "/ShouldInitiateUpload",
          .scope = SCOPE_UPLOAD,
          .tenancy = TENANCY_SPACE,
          .max_message = KiB(16),
          .memory = MEMORY_UPLOADS,
          .pool = POOL_UPLOAD,
          .handle = handle_parca_should_upload },
        { .path = PARCA_DEBUGINFO "/InitiateUpload",
          .scope = SCOPE_UPLOAD,
          .tenancy = TENANCY_SPACE,
          .max_message = KiB(16),
          .memory = MEMORY_UPLOADS,
          .pool = POOL_UPLOAD,
          .handle = handle_parca_initiate_upload },
        { .path = PARCA_DEBUGINFO "/Upload",
          .scope = SCOPE_UPLOAD,
          .tenancy = TENANCY_SPACE,
          .max_message = LIMIT_UPLOAD_MESSAGE_BYTES,
          .memory = MEMORY_UPLOADS,
          .pool = POOL_UPLOAD,
          .stream = receive_parca_upload,
          .handle = finish_parca_upload,
          .abandon = abandon_parca_upload,
          .writes = true },
        { .path = PARCA_DEBUGINFO "/MarkUploadFinished",
          .scope = SCOPE_UPLOAD,
          .tenancy = TENANCY_SPACE,
          .max_message = KiB(16),
          .memory = MEMORY_UPLOADS,
          .pool = POOL_UPLOAD,
          .handle = handle_parca_mark_finished },
};
const size_t grpc_method_count = sizeof grpc_methods / sizeof *grpc_methods;

unsigned get_grpc_method_roles(const char *path)
{
        static const struct {
                const char *service;
                unsigned roles;
        } services[] = {
                { "/" PROFILES_SERVICE "/", ROLE_INGEST | ROLE_GATEWAY },
                { PARCA_PROFILES "/", ROLE_INGEST | ROLE_GATEWAY },
                { PARCA_QUERY "/", ROLE_QUERY },
                { QUERIER "/", ROLE_QUERY },
                { PARCA_DEBUGINFO "/", ROLE_DEBUGINFOD },
                { HEALTH "/", ROLE_ANY },
        };

        for (size_t i = 0; i < sizeof services / sizeof *services; i++)
                if (strncmp(path, services[i].service, strlen(services[i].service)) == 0)
                        return services[i].roles;
        return 0;
}
