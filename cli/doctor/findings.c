/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>

void report_finding(struct findings *f, enum finding_state state, const char *name, const char *fix, const char *fmt,
                    ...)
{
        struct finding *item = &f->items[f->count];
        va_list args;

        if (f->count == FINDINGS_MAX)
                return;
        f->count++;
        *item = (struct finding){ .state = state };
        snprintf(item->name, sizeof item->name, "%s", name);
        if (state == FINDING_WARNING || state == FINDING_ERROR)
                snprintf(item->fix, sizeof item->fix, "%s", fix);
        va_start(args, fmt);
        vsnprintf(item->found, sizeof item->found, fmt, args);
        va_end(args);
}

const char *finding_state_name(enum finding_state state)
{
        static const char *const names[FINDING_STATE_COUNT] = { [FINDING_OK] = "ok",
                                                                [FINDING_SKIPPED] = "skipped",
                                                                [FINDING_WARNING] = "warning",
                                                                [FINDING_ERROR] = "error" };

        return names[state];
}
