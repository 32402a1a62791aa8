/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "server/api/symbolize/symbolicate_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Jobs, stacks and frames are consecutive, and every frame refers to a module of its job. */
static void check_jobs(const struct symbolicate_request *r)
{
        size_t stack = 0, module = 0, frame = 0;

        for (size_t i = 0; i < r->job_count; i++) {
                if (r->jobs[i].stacks_end < stack || r->jobs[i].modules_end < module)
                        abort();
                for (; stack < r->jobs[i].stacks_end; stack++)
                        for (; frame < r->stack_ends[stack]; frame++)
                                if (r->frames[frame].module != UINT32_MAX &&
                                    (r->frames[frame].module < module ||
                                     r->frames[frame].module >= r->jobs[i].modules_end))
                                        abort();
                module = r->jobs[i].modules_end;
        }
        if (stack != r->stack_count || module != r->module_count || frame != r->frame_count)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct symbolicate_request r;

        if (!symbolicate_request_read(data, size, &r, NULL))
                check_jobs(&r);
        symbolicate_request_deinit(&r);
        return 0;
}
