/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_SAMPLE_END_H
#define CAIRN_SAMPLING_SAMPLERS_SAMPLE_END_H

/**
 * @file
 * Public names of the ways a user stack can end: label values of a
 * metric, and values of the label cairn.stack.end.
 */
#include "bpf/sample.h"

#define SAMPLE_ENDS(X)                                                                                                 \
        X(SAMPLE_END_COMPLETE, "complete")                                                                             \
        X(SAMPLE_END_UNKNOWN, "unknown")                                                                               \
        X(SAMPLE_END_TOO_DEEP, "too_deep")                                                                             \
        X(SAMPLE_END_NEW_PROCESS, "new_process")                                                                       \
        X(SAMPLE_END_NO_MAPPING, "no_mapping")                                                                         \
        X(SAMPLE_END_NO_TABLE, "no_table")                                                                             \
        X(SAMPLE_END_NO_RULE, "no_rule")                                                                               \
        X(SAMPLE_END_UNKNOWN_RULE, "unknown_rule")                                                                     \
        X(SAMPLE_END_NO_MEMORY_AT, "unreadable_stack")                                                                 \
        X(SAMPLE_END_NO_REGISTER, "unknown_register")                                                                  \
        X(SAMPLE_END_NO_PROGRESS, "no_progress")                                                                       \
        X(SAMPLE_END_OTHER_WIDTH, "32_bit")                                                                            \
        X(SAMPLE_END_NOT_COPIED, "not_copied")

/** "" for a value out of range. */
static inline const char *sample_end_name(unsigned end)
{
#define NAME(number, text) [number] = (text),
        static const char *const names[SAMPLE_END_COUNT] = { SAMPLE_ENDS(NAME) };
#undef NAME

        return end < SAMPLE_END_COUNT && names[end] ? names[end] : "";
}

#endif
