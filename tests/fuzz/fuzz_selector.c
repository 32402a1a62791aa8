/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "query/engine/selector.h"
#include "query/engine/unit_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Arbitrary text as a selector or a time; a valid selector is matched against its own text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = calloc(1, size + 1);
        struct selector s;
        int64_t t;

        if (!text)
                return 0;
        if (size)
                memcpy(text, data, size);
        if (selector_parse(text, NULL, &s, NULL) == ST_OK) {
                for (size_t i = 0; i < s.count; i++)
                        if (s.matchers[i].match)
                                (void)s.matchers[i].match(s.matchers[i].context, text,
                                                          strlen(text) < 64 ? strlen(text) : 64);
                selector_deinit(&s);
        }
        if (time_text_parse(text, 1700000000000000000, &t, NULL) == ST_OK && size == 0)
                abort(); /* an empty text is not a time */
        if (duration_text_parse(text, &t, NULL) == ST_OK && t <= 0)
                abort();
        return 0;
}
