/* SPDX-License-Identifier: Apache-2.0 */
/* parca.profilestore.v1alpha1.ProfileStoreService: profiles as pprof files with labels. docs/formats/parca.md */
#include "common/clock.h"
#include "profile-formats/input/push.h"
#include "server/core/ingest.h"
#include "server/protocol/grpc_unary.h"
#include "server/protocol/parca_methods.h"

static enum status ingest_write_raw(struct grpc_call *call, struct ingest_batch *batch, struct error *err)
{
        struct batch_source source = { .header = grpc_call_metadata(call, "x-cairn-batch"),
                                       .uri = grpc_call_path(call),
                                       .token = grpc_call_token(call) };
        struct profile p;
        enum status st;

        source.body = grpc_call_message(call, &source.size);
        st = compute_batch_id(&source, &batch->id, err);
        if (!st)
                st = push_decode_write_raw(source.body, source.size, grpc_call_deadline(call), &p, err);
        if (st)
                return st;
        set_arrival_times(batch, &p, wall_clock_ns());
        st = append_ingested_batch(batch, &p, NULL, err);
        if (!st)
                st = fail_if_all_rejected(&p, err);
        profile_deinit(&p);
        return st;
}

void handle_parca_write_raw(struct grpc_call *call, void *context)
{
        struct ingest_batch batch = begin_grpc_batch(call);
        struct error err;
        enum status st = ingest_write_raw(call, &batch, &err);
        struct buf nothing; /* WriteRawResponse has no fields */

        (void)context;
        if (st) {
                fail_ingest_call(call, &batch, st, &err);
                return;
        }
        buf_init(&nothing, 0);
        grpc_call_reply(call, &nothing);
}

void refuse_parca_arrow(struct grpc_call *call, void *context)
{
        const struct ingest_batch batch = begin_grpc_batch(call);

        (void)context;
        count_ingest_failure(&batch, ST_UNSUPPORTED, "Arrow records of parca-agent are unsupported");
        grpc_call_fail(
                call, GRPC_UNIMPLEMENTED, 0,
                "Cairn does not read the Arrow records that parca-agent sends; run cairn-agent or the "
                "OpenTelemetry eBPF profiler on the host, or send pprof files with WriteRaw. Debuginfo uploads of "
                "parca-agent work");
}
