/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/debuginfo/debuginfod_answer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/text/number_text.h"

#define USE_LOG_NS 60000000000ll

bool check_max_size(struct http_request *req, uint64_t size)
{
        const char *header = http_header(req, "X-DEBUGINFOD-MAXSIZE");
        uint64_t max;
        char text[24];

        if (size == 0)
                return true;
        snprintf(text, sizeof text, "%" PRIu64, size);
        http_set_header(req, "X-DEBUGINFOD-SIZE", text);
        if (!header || !parse_uint(header, &max) || max == 0 || size <= max)
                return true;
        http_fail_code(req, 406, "too_big", "the file has %" PRIu64 " bytes, the request allows %" PRIu64, size, max);
        return false;
}

static struct metric unrecorded_uses =
        METRIC_COUNTER("cairn_debuginfo_uses_unnoted_total", "Uses of objects that could not be recorded.", "");

/* On a full disk this fails for every request, so it is logged at most once a minute; the metric counts all. */
void record_object_use(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind)
{
        static _Atomic int64_t logged_ns;
        const struct object_name name = { *id, kind };
        int64_t last = atomic_load(&logged_ns), now;
        struct error err;

        metric_register(&unrecorded_uses);
        if (s->options->read_only || !debuginfo_store_note_use(s->objects, &name, 1, &err))
                return;
        metric_add(&unrecorded_uses, 1);
        now = monotonic_ns();
        if ((!last || now - last > USE_LOG_NS) && atomic_compare_exchange_strong(&logged_ns, &last, now))
                log_warn("debuginfod", "cannot record a use: %s", err.text);
}
