/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_PROGRAM_FINDING_H
#define CAIRN_COMMON_PROGRAM_FINDING_H

/**
 * @file
 * Findings of a doctor (`cairn doctor`, `cairn-agent --doctor`): results of checks, each with a fix, as text and JSON.
 *
 * Threads: one at a time.
 */
#include <stdarg.h>
#include <stddef.h>

#include "common/error.h"
#include "common/json/json_out.h"

enum finding_state {
        FINDING_OK,
        FINDING_SKIPPED, /* not checked: does not apply, or not with this user's rights */
        FINDING_WARNING, /* works, but slowly, incompletely, or not for long */
        FINDING_ERROR,   /* does not work */
        FINDING_STATE_COUNT
};

/** One result of a check. */
struct finding {
        enum finding_state state;
        char name[40];
        char found[300];
        char fix[300]; /* "" when there is nothing to do */
};

#define FINDINGS_MAX 64

struct findings {
        struct finding items[FINDINGS_MAX];
        size_t count;
};

/** @param fix  kept only for a warning or an error. Past FINDINGS_MAX nothing is added. */
void report_finding(struct findings *f, enum finding_state state, const char *name, const char *fix, const char *fmt,
                    ...) PRINTF(5, 6);
void report_finding_arguments(struct findings *f, enum finding_state state, const char *name, const char *fix,
                              const char *fmt, va_list args) PRINTF(5, 0);

const char *finding_state_name(enum finding_state state); /* "ok", "skipped", "warning", "error" */

/** The members name, state, found and fix (null: none) of an object. */
void finding_put_json(const struct finding *f, struct json_out *j);

/** A line, and one for the fix. @param label  the name, perhaps with its area. */
void finding_put_text(const struct finding *f, const char *label, struct buf *to);

#endif
