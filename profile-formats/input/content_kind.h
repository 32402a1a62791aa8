/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_INPUT_CONTENT_KIND_H
#define CAIRN_PROFILE_FORMATS_INPUT_CONTENT_KIND_H

/**
 * @file
 * Kinds of content that name themselves: by a magic number, or by the members of a JSON object. A profile of such a
 * format is decoded as that format only, so that its errors are those of this format; content of another tool is
 * refused with its name and the next step.
 *
 * Threads: no shared state.
 */
#include <stddef.h>

#include "common/error.h"

enum content_kind {
        CONTENT_UNKNOWN,    /* nothing names it: pprof in protobuf, perf script text, folded stacks, or no profile */
        CONTENT_SPEEDSCOPE, /* JSON */
        CONTENT_OTLP_JSON,
        CONTENT_JFR,
        CONTENT_FOREIGN, /* not a format of profiles that Cairn reads */
};

struct content_description {
        enum content_kind kind;
        const char *foreign; /* CONTENT_FOREIGN: what it is and the next step; static */
};

/** Time: in proportion to n for JSON, constant otherwise. Malformed JSON is described by its members before the error.
 */
struct content_description content_describe(const void *data, size_t n);

/** Set text to "this is WHAT; NEXT STEP" if the content is foreign; otherwise it is unchanged. */
void content_explain(const void *data, size_t n, char *text, size_t size);

/** ST_BAD_DATA with the next step for gzip data: only pprof files are gzip data themselves. */
enum status content_refuse_gzip(const void *data, size_t n, struct error *err);

/** Put the text of content_explain() before that of the error with which the content was refused. Returns ST_BAD_DATA.
 */
enum status content_refuse(const void *data, size_t n, struct error *err);

#endif
