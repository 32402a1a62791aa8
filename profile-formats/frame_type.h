/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_FRAME_TYPE_H
#define CAIRN_PROFILE_FORMATS_FRAME_TYPE_H

/**
 * @file
 * Names of frame types.
 * Source: attribute profile.frame.type of the OpenTelemetry semantic conventions.
 */
#include <string.h>

#include "profile-formats/profile.h"

#define PROFILE_FRAME_NAMES(X)                                                                                         \
        X(PROFILE_FRAME_NATIVE, "native")                                                                              \
        X(PROFILE_FRAME_KERNEL, "kernel")                                                                              \
        X(PROFILE_FRAME_CPYTHON, "cpython")                                                                            \
        X(PROFILE_FRAME_V8, "v8js")                                                                                    \
        X(PROFILE_FRAME_HOTSPOT, "jvm")

/** "" for PROFILE_FRAME_UNKNOWN. */
static inline const char *frame_type_name(enum profile_frame_type type)
{
#define NAME(number, text) [number] = (text),
        static const char *const names[PROFILE_FRAME_TYPES] = { "", PROFILE_FRAME_NAMES(NAME) };
#undef NAME

        return names[type];
}

/** PROFILE_FRAME_UNKNOWN for another name. */
static inline enum profile_frame_type parse_frame_type(const char *name)
{
        for (int i = PROFILE_FRAME_TYPES - 1; i > PROFILE_FRAME_UNKNOWN; i--)
                if (strcmp(frame_type_name(i), name) == 0)
                        return i;
        return PROFILE_FRAME_UNKNOWN;
}

#endif
