/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_REGEX_PROGRAM_H
#define CAIRN_QUERY_REGEX_PROGRAM_H

/** @file What a pattern is compiled to, and from. Private to query/regex_*.c. */
#include "common/limits.h"
#include "query/regex_match.h"

#include <stdint.h>

/* ---- the tree: at most one node per byte of the pattern, and one more for each that joins two ---- */

enum node_kind { NODE_EMPTY, NODE_SET, NODE_CAT, NODE_ALT, NODE_REPEAT, NODE_BEGIN, NODE_END };

#define REPEAT_FOREVER UINT32_MAX

struct regex_node {
        enum node_kind kind;
        uint32_t left, right; /* of CAT and ALT; left of REPEAT; the set of SET */
        uint32_t min, max;    /* of REPEAT */
};

struct regex_range {
        uint32_t low, high; /* code points, inclusive */
};

struct regex_set {
        uint32_t first, count; /* ranges */
        bool negated;
};

struct regex_tree {
        struct regex_node nodes[4 * LIMIT_REGEX_BYTES];
        struct regex_set sets[LIMIT_REGEX_BYTES + 1];
        struct regex_range ranges[4 * LIMIT_REGEX_BYTES];
        uint32_t node_count, set_count, range_count, root;
        bool any_case;
};

/** Parse a pattern of at most LIMIT_REGEX_BYTES. */
enum status regex_parse(const char *pattern, struct regex_tree *ret, struct error *err) MUST_CHECK;

#endif
