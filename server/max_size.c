/* SPDX-License-Identifier: Apache-2.0 */
#include "server/max_size.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/options.h"

bool max_size_allows(struct http_request *req, uint64_t size)
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
        http_fail_code(req, 406, "too_big", "it has %" PRIu64 " bytes, the request allows %" PRIu64, size, max);
        return false;
}
