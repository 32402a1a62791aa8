/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_RECORDING_RULES_H
#define CAIRN_SERVER_CORE_RECORDING_RULES_H

/**
 * @file
 * The recording rules of a tenant: each makes a metric of the cost of a selection (docs/recording-rules.md). Those of a
 * file are provisioned and read-only; the others are kept in DIR/recording-rules.json, a ListRulesResponse in
 * ProtoJSON.
 *
 * Rules are kept as text, and decoded for each use.
 *
 * Threads: any, except open and close.
 */
#include "common/memory/arena.h"
#include "common/memory/buf.h"
#include "profile-formats/proto/recording_rules.pb-c.h"

struct recording_rules;

/**
 * @param provisioned  a file of rules; NULL: none.
 * @return ST_BAD_DATA for a file with a malformed rule, which it names.
 */
enum status recording_rules_open(const char *dir, const char *provisioned, struct recording_rules **ret,
                                 struct error *err) MUST_CHECK;
void recording_rules_close(struct recording_rules *r); /* NULL is allowed */

/**
 * The current rules, provisioned ones first.
 * @param memory  initialized here, also on failure; holds the rules, as does `text`.
 */
enum status recording_rules_list(struct recording_rules *r, struct arena *memory, struct buf *text,
                                 const Recording__ListRulesResponse **ret, struct error *err) MUST_CHECK;

/** The rule with this id; NULL: there is none. */
const Recording__Rule *recording_rules_find(const Recording__ListRulesResponse *rules, const char *id);

#define RECORDING_RULE_ID_CHARS 16

/**
 * Add a rule, or replace the one with its id, durably.
 * @param rule  its id is "" or that of a rule of this generation; id_ret is the new or old one.
 * @return ST_USAGE: malformed, or a provisioned rule; ST_NOT_FOUND: no rule has the id; ST_BUSY: another generation;
 *         ST_TOO_BIG past LIMIT_RECORDING_RULES.
 */
enum status recording_rules_upsert(struct recording_rules *r, const Recording__UpsertRuleRequest *rule,
                                   char id_ret[RECORDING_RULE_ID_CHARS + 1], struct error *err) MUST_CHECK;

/** @return ST_NOT_FOUND; ST_USAGE for a provisioned rule. */
enum status recording_rules_remove(struct recording_rules *r, const char *id, struct error *err) MUST_CHECK;

/** The selector of a rule: its matchers together. Failures stay in the buf. */
void recording_rule_put_selector(const Recording__Rule *rule, struct buf *ret);

/** The name of the function that a rule is about; NULL: none. */
const char *recording_rule_get_function(const Recording__Rule *rule);

#endif
