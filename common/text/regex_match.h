/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_REGEX_MATCH_H
#define CAIRN_COMMON_TEXT_REGEX_MATCH_H

/**
 * @file
 * Regular expressions that match a whole text in linear time: anyone with a read token can send patterns.
 *
 * Model: Thompson's construction. The pattern is parsed into a tree and compiled into a program; matching simulates its
 * NFA, one code point at a time. glibc's regcomp() was rejected: it takes hours for a sequence of a hundred stars.
 * PCRE2 backtracks and RE2 is C++ only, and neither lets a caller bound the steps of several patterns together, as
 * needed here. Linear in the text still means up to LIMIT_REGEX_PROGRAM steps for each of its code points, and a query
 * tests many texts: all expressions of a query share the step budget of its work meter, and the result for each
 * distinct text is cached.
 *
 * Syntax: RE2's, without classes of Unicode (\pL) and single bytes (\C), which are errors; no back references and no
 * look-around. As in Prometheus "." matches a newline, unless the flag s is cleared by (?-s).
 *
 * Threads: one matcher belongs to one thread at a time.
 * Source: K. Thompson, "Regular Expression Search Algorithm", CACM 11(6), 1968; RE2, "Syntax".
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/limits.h"
#include "common/threads/work_meter.h"

struct regex_match;

/**
 * Compile a pattern.
 * @param meter  charged for the steps of matching; borrowed until regex_match_destroy(); NULL: unlimited.
 * @return ST_USAGE with the error and its byte offset, or if the pattern compiles to more than LIMIT_REGEX_PROGRAM
 *         instructions.
 */
enum status regex_match_create(const char *pattern, struct work_meter *meter, struct regex_match **ret,
                               struct error *err) MUST_CHECK;
void regex_match_destroy(struct regex_match *m); /* takes NULL */

/**
 * Like regex_match_create(), but matches a text if any part of it matches, like regexp.MatchString of Go and the
 * filters of pprof.
 */
enum status regex_match_create_search(const char *pattern, struct work_meter *meter, struct regex_match **ret,
                                      struct error *err) MUST_CHECK;

/**
 * Whether the whole text matches; for a matcher of regex_match_create_search(), any part of it. Has the type of
 * label_matcher.match; context is the struct regex_match. Also false after the meter ended the work: check its status
 * before using results.
 */
bool regex_match_text(void *context, const char *text, size_t n);

/** As regex_match_text() for a text that is not tested again: its result is not cached. */
bool regex_match_once(struct regex_match *m, const char *text, size_t n);

/** Captured groups of a match: 0 is the whole match, then the first nine groups in parentheses. */
#define REGEX_CAPTURES 10

struct regex_capture {
        const char *text; /* borrowed from the text that matched, without a terminating NUL */
        size_t size;      /* 0 also for a group that did not participate */
};

/**
 * Like regex_match_create(), for regex_match_capture() only, whose steps are bounded only by program size times text
 * length.
 */
enum status regex_match_create_captures(const char *pattern, struct regex_match **ret, struct error *err) MUST_CHECK;

/**
 * Whether the whole text matches, with its captured groups. Of several possible matches the one of RE2 and Perl:
 * earlier alternatives first, * + ? { } greedy, their lazy forms as short as possible.
 */
bool regex_match_capture(struct regex_match *m, const char *text, size_t n,
                         struct regex_capture ret[static REGEX_CAPTURES]);

/** The number of the group with a name, 1 to 9; -1 without such a group. The name needs no terminating NUL. */
int regex_match_find_group(const struct regex_match *m, const char *name, size_t n);

#endif
