/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_SELECTOR_H
#define CAIRN_QUERY_ENGINE_SELECTOR_H

/**
 * @file
 * Label selectors as in Prometheus: {service="api", comm=~"post.*"}.
 *
 * Operators are =, !=, =~ and !~. Values are quoted with ", ' or ` (the last
 * without escapes), or bare: without blanks, "=", commas, braces and quotes. Keys may
 * contain dots, or be quoted ("service.name"). Braces
 * are optional. A type id may precede the opening brace, which is equivalent to
 * the key __profile_type__ with =.
 *
 * Regular expressions match the whole value (common/text/regex_match.h).
 *
 * Threads: a parsed selector belongs to one thread at a time.
 * Source: Prometheus, "Querying basics".
 */
#include "common/error.h"
#include "profile-store/scan.h"

#define LIMIT_SELECTOR_BYTES 8192
#define LIMIT_SELECTOR_MATCHERS 64

struct selector {
        struct label_matcher *matchers; /* owned, including everything they point to */
        size_t count;
        char *type; /* NULL: any */
};

/**
 * @param text  "" and NULL select everything.
 * @param meter  charged for steps of regular expressions; borrowed until selector_deinit(); NULL: unlimited.
 * @return ST_USAGE; the message has the expected token and its byte offset.
 */
enum status selector_parse(const char *text, struct work_meter *meter, struct selector *ret,
                           struct error *err) MUST_CHECK;
void selector_deinit(struct selector *s); /* also fine on a zeroed one */
#define _cleanup_selector_ _cleanup_(selector_deinit)

#endif
