/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "debuginfo-store/fetch_internal.h"

static void clean(char *text, size_t size)
{
        text[size - 1] = '\0';
        for (char *p = text; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
}

static uint64_t at_most(uint64_t value, uint64_t max)
{
        return value < max ? value : max;
}

void fetch_message_check(struct fetch_message *m, uint64_t max_bytes)
{
        struct fetch_answer *a = &m->answer;

        clean(a->name, sizeof a->name);
        clean(m->text, sizeof m->text);
        a->retry_after_s = at_most(a->retry_after_s, LIMIT_UPSTREAM_PAUSE_S);
        a->received_bytes = at_most(a->received_bytes, max_bytes);
        if (m->word <= FETCH_FAILED)
                return;
        m->word = FETCH_FAILED;
        snprintf(m->text, sizeof m->text, "its worker said nothing sensible");
}
