/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo missing: which upload would resolve most samples. */
#include <stdio.h>

#include "cli/debuginfo.h"
#include "common/limits.h"

/* Of all samples, where nothing else is said: what is missing is as a rule missing for long. */
enum status debuginfo_missing(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        struct ask_options ask_of = o->ask;
        struct ask_params params = { 0 };
        _cleanup_buf_ struct buf body;
        enum status st;

        (void)ids;
        (void)count;
        if (!ask_of.from)
                ask_of.from = "0";
        ask_param(&params, "limit", o->limit);
        ask_param(&params, "server", ask_of.service.server);
        ask_param(&params, "format", o->json ? "json" : "text");
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = ask(&ask_of, "uploads", &params, &body, err);
        if (!st)
                printf("%.*s%s", (int)body.size, (const char *)body.data, o->json ? "\n" : "");
        return st;
}
