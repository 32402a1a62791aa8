/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as text: each sample has a name, label parsing stays within the line, and sums are bounded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/shared/metrics_text.h"
#include "common/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct metrics_text m;
        struct error err;

        if (metrics_text_parse(data, size, &m, &err)) {
                if (m.count || m.text)
                        abort();
                return 0;
        }
        if (m.count > LIMIT_METRIC_SAMPLES)
                abort();
        for (size_t i = 0; i < m.count; i++) {
                if (!*m.samples[i].name || strpbrk(m.samples[i].name, "{} \n"))
                        abort();
                if (!(fabs(metrics_text_sum(&m, m.samples[i].name, m.samples[i].labels)) <= METRIC_VALUE_END))
                        abort();
        }
        metrics_text_deinit(&m);
        return 0;
}
