/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_REGEX_MATCH_H
#define CAIRN_QUERY_REGEX_MATCH_H

/** @file Whole-string regular expressions under the bounds that query/selector.h states. */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct regex_match;

enum status regex_match_create(const char *pattern, struct regex_match **ret, struct error *err) MUST_CHECK;
void regex_match_destroy(struct regex_match *m); /* takes NULL */

/** Has the type of label_matcher.match; context is the struct regex_match. */
bool regex_match_text(void *context, const char *text, size_t n);

#endif
