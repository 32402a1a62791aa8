/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PERF_TEXT_H
#define CAIRN_PROFILE_FORMATS_PERF_TEXT_H

/**
 * @file
 * Words, numbers and headers in what perf script prints.
 * Private to the decoder of perf script; texts are borrowed from its input.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_text {
        const char *at;
        size_t n;
};

static inline bool perf_is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

/** Without the blanks around. */
struct perf_text perf_text_trim(struct perf_text t);
/** Cut the first word off; an empty one at the end. */
struct perf_text perf_text_word(struct perf_text *rest);
/** A whole number in small digits, with or without 0x where base is 16. */
bool perf_text_number(struct perf_text t, int base, uint64_t *ret);

struct perf_header {
        struct perf_text comm;
        uint64_t pid;
        int64_t time_ns;
        struct perf_text rest; /* from the period or event on */
};

/** COMM PID[/TID] [[CPU]] TIME: ... */
bool perf_text_header(struct perf_text line, struct perf_header *ret);

#endif
