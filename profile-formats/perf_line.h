/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PERF_LINE_H
#define CAIRN_PROFILE_FORMATS_PERF_LINE_H

/**
 * @file
 * The lines of the text that `perf script` prints: words, numbers, and headers of samples and records.
 *
 * A struct perf_text is a slice of the input (borrowed).
 *
 * Threads: no shared state.
 * Source: linux tools/perf/builtin-script.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define RECORD_PREFIX "PERF_RECORD_"
#define RECORD_PREFIX_SIZE (sizeof RECORD_PREFIX - 1) /* of records other than samples */
#define BUILD_ID_CHARS_LEAST 16                       /* no name of a process is as long */

struct perf_text {
        const char *at;
        size_t n;
};

struct perf_header {
        struct perf_text comm;
        uint64_t pid;
        bool has_pid;
        int64_t time_ns;
        struct perf_text rest; /* from the period or event on */
};

static inline bool perf_is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

/** Remove blanks from both ends. */
struct perf_text trim_perf_text(struct perf_text t);

/** Remove and return the first word; an empty one at the end. */
struct perf_text cut_perf_word(struct perf_text *rest);

/** Cut off what follows a frame in its line: "=> ADDRESS ..." of a branch, and the branch stack. */
void cut_perf_branches(struct perf_text *frame);

/** An unsigned number in lower case digits; 0x is optional in base 16. */
bool parse_perf_number(struct perf_text t, int base, uint64_t *ret) MUST_CHECK;

/** "PID/TID" or "PID": the process. */
bool parse_perf_pid(struct perf_text t, uint64_t *ret) MUST_CHECK;

/**
 * [COMM] [PID[/TID]] [[CPU]] [MISC] TIME: ...
 *
 * The name may have blanks and digits, so the search is for the time, and then for the last number before it. The
 * name is empty for processes without one, and `has_pid` is false without the field pid. A time without a process
 * before it may be a part of the name, so a later one with a process precedes it.
 */
bool parse_perf_header(struct perf_text line, struct perf_header *ret) MUST_CHECK;

/** Whether a line that begins with '#' is a header, since a name of a process may begin so. */
bool is_marked_header(const struct perf_header *h);

/** Whether a line that is no header is one of the field srccode, or a record that is printed without a header. */
bool is_skipped_line(struct perf_text t);

/**
 * The next line, without its end.
 *
 * Names of processes may have line ends, in headers and in records of names, and paths in frames and in records of
 * mappings; the lines that such a name or path divides are cut as one.
 * @param at  before end.
 */
struct perf_text cut_perf_line(const char *at, const char *end);

#endif
