/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_RULES_REQUEST_H
#define CAIRN_SERVER_PROTOCOL_RULES_REQUEST_H

/**
 * @file
 * The body of a retention request: {"dry_run": true, "rules": ["age=30d"]}. Both members are optional, as is the body;
 * other members are an error.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "http/http_server.h"

/** Called for each rule in order, at most `max` times. */
typedef enum status parse_rule(void *context, const char *rule, struct error *err);

/**
 * @param has_rules_ret  whether there is a list of rules, even an empty one.
 * @return ST_BAD_DATA for a malformed body, ST_TOO_BIG for more than max rules, or the failure of parse.
 */
enum status read_rules_request(struct http_request *req, size_t max, parse_rule *parse, void *context,
                               bool *has_rules_ret, bool *dry_run_ret, struct error *err) MUST_CHECK;

#endif
