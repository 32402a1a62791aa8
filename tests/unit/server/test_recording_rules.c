/* SPDX-License-Identifier: Apache-2.0 */
/* Recording rules: what is accepted can be read again after a restart. */
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "server/core/recording_rules.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct recording_rules *rules;

static void open_rules(void)
{
        struct error err;

        ck_assert_msg(recording_rules_open(dir, NULL, &rules, &err) == ST_OK, "%s", err.text);
}

static void set_up(void)
{
        temporary_dir_create(dir, "rules");
        open_rules();
}

static void tear_down(void)
{
        recording_rules_close(rules);
        temporary_dir_remove(dir);
}

static void reopen_rules(void)
{
        recording_rules_close(rules);
        open_rules();
}

static size_t count_rules(void)
{
        const Recording__ListRulesResponse *list = NULL;
        _cleanup_buf_ struct buf text;
        _cleanup_arena_ struct arena memory;
        struct error err;

        ck_assert_msg(recording_rules_list(rules, &memory, &text, &list, &err) == ST_OK, "%s", err.text);
        return list->n_rules;
}

static enum status add_rule(char **matchers, size_t matcher_count, const char *label, struct error *err)
{
        Recording__UpsertRuleRequest rule = RECORDING__UPSERT_RULE_REQUEST__INIT;
        Querier__LabelPair pair = QUERIER__LABEL_PAIR__INIT, *pairs[] = { &pair };
        char id[RECORDING_RULE_ID_CHARS + 1];

        pair.name = "team";
        pair.value = (char *)label;
        rule.metric_name = "cost";
        rule.matchers = matchers;
        rule.n_matchers = matcher_count;
        rule.external_labels = pairs;
        rule.n_external_labels = 1;
        return recording_rules_upsert(rules, &rule, id, err);
}

START_TEST(accepted_rules_are_there_after_a_restart)
{
        char *matchers[] = { "{service_name=\"a\\\"b\"}", "{host=~\"x.*\"}" };
        struct error err;

        for (unsigned i = 0; i < LIMIT_RECORDING_RULES; i++)
                ck_assert_msg(add_rule(matchers, 2, "a\nb\"c\\d", &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(add_rule(matchers, 2, "", &err), ST_TOO_BIG);
        reopen_rules();
        ck_assert_uint_eq(count_rules(), LIMIT_RECORDING_RULES);
}
END_TEST

/* Each such byte becomes three when it is written. */
START_TEST(a_value_that_is_too_long_once_it_is_written_is_refused)
{
        static char label[LIMIT_RECORDING_TEXT_BYTES + 1];
        struct error err;

        memset(label, 0xff, LIMIT_RECORDING_TEXT_BYTES);
        ck_assert_int_eq(add_rule(NULL, 0, label, &err), ST_USAGE);
        label[LIMIT_RECORDING_TEXT_BYTES / 3] = 0;
        ck_assert_msg(add_rule(NULL, 0, label, &err) == ST_OK, "%s", err.text);
        reopen_rules();
        ck_assert_uint_eq(count_rules(), 1);
}
END_TEST

START_TEST(a_rule_of_many_matchers_is_refused)
{
        static char *matchers[60000];
        struct error err;

        for (size_t i = 0; i < sizeof matchers / sizeof *matchers; i++)
                matchers[i] = "";
        ck_assert_int_eq(add_rule(matchers, sizeof matchers / sizeof *matchers, "", &err), ST_USAGE);
        ck_assert_int_eq(add_rule(matchers, LIMIT_RECORDING_MATCHERS, "", &err), ST_OK);
        reopen_rules();
        ck_assert_uint_eq(count_rules(), 1);
}
END_TEST

START_TEST(a_refused_rule_changes_neither_memory_nor_file)
{
        static char label[LIMIT_RECORDING_TEXT_BYTES + 1];
        struct error err;

        ck_assert_int_eq(add_rule(NULL, 0, "first", &err), ST_OK);
        memset(label, 0xff, LIMIT_RECORDING_TEXT_BYTES);
        ck_assert_int_eq(add_rule(NULL, 0, label, &err), ST_USAGE);
        ck_assert_uint_eq(count_rules(), 1);
        reopen_rules();
        ck_assert_uint_eq(count_rules(), 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("recording rules", accepted_rules_are_there_after_a_restart,
                        a_value_that_is_too_long_once_it_is_written_is_refused, a_rule_of_many_matchers_is_refused,
                        a_refused_rule_changes_neither_memory_nor_file)
