/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program/finding.h"

#include <stdio.h>

#include "common/text/utf8.h"

void report_finding_arguments(struct findings *f, enum finding_state state, const char *name, const char *fix,
                              const char *fmt, va_list args)
{
        struct finding *item = &f->items[f->count];

        if (f->count == FINDINGS_MAX)
                return;
        f->count++;
        *item = (struct finding){ .state = state };
        snprintf(item->name, sizeof item->name, "%s", name);
        if (state == FINDING_WARNING || state == FINDING_ERROR)
                snprintf(item->fix, sizeof item->fix, "%s", fix);
        vsnprintf(item->found, sizeof item->found, fmt, args);
}

void report_finding(struct findings *f, enum finding_state state, const char *name, const char *fix, const char *fmt,
                    ...)
{
        va_list args;

        va_start(args, fmt);
        report_finding_arguments(f, state, name, fix, fmt, args);
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

void finding_put_json(const struct finding *f, struct json_out *j)
{
        json_out_str(j, "name", f->name);
        json_out_str(j, "state", finding_state_name(f->state));
        json_out_str(j, "found", f->found);
        json_out_str(j, "fix", f->fix[0] ? f->fix : NULL);
}

void finding_put_text(const struct finding *f, const char *label, struct buf *to)
{
        buf_printf(to, "%-7s  %-34s  %s\n", finding_state_name(f->state), PRINTABLE(label), PRINTABLE(f->found));
        if (f->fix[0])
                buf_printf(to, "%-7s  %-34s  fix: %s\n", "", "", PRINTABLE(f->fix));
}
