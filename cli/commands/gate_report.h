/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_GATE_REPORT_H
#define CAIRN_CLI_COMMANDS_GATE_REPORT_H

/**
 * @file
 * The reports of `cairn gate`, from the answer of the operation gate: text, Markdown for a pull request, JUnit, SARIF
 * and JSON.
 */
#include "common/error.h"
#include "common/json/json_node.h"
#include "common/memory/buf.h"

#define GATE_DETAILS_MAX 5 /* failing functions that are reported with callers and line */
#define GATE_RISEN_MAX 3   /* functions whose cost rose most, when none fails */

/* Where the cost of a function changed most; NULL and 0: unknown. */
struct gate_detail {
        const struct json_node *row;
        char *file;
        uint64_t line;
        char *callers[3]; /* as "main (+1.20 s)" */
        size_t caller_count;
};

enum gate_verdict { GATE_PASSED, GATE_FAILED, GATE_UNKNOWN };

struct gate_report {
        const struct json_node *answer; /* borrowed */
        const char *answer_text;        /* as sent */
        size_t answer_size;
        struct gate_detail details[GATE_DETAILS_MAX];
        size_t detail_count;
        bool are_details_risen; /* no function fails, only the total: the details are of those whose cost rose most */
        const char *link;       /* to the comparison; NULL: none */
};

enum gate_verdict gate_report_get_verdict(const struct gate_report *r);

typedef void gate_report_format(const struct gate_report *r, struct buf *to);

/** @param name  text, markdown, junit, sarif or json.  @return ST_USAGE for another one. */
enum status gate_report_find_format(const char *name, gate_report_format **ret, struct error *err) MUST_CHECK;

#endif
