/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "symbol-index/symbol_state.h"
#include "tests/support/suite.h"

static const char *read_page(struct buf *text)
{
        struct error err;

        buf_init(text, MiB(1));
        ck_assert_msg(file_read("docs/reasons.md", text, &err) == ST_OK, "%s", err.text);
        return buf_cstr(text);
}

START_TEST(every_reason_is_documented_with_the_same_text)
{
        struct buf text;
        const char *all = read_page(&text);

        for (enum symbol_state s = 0; s < SYMBOL_STATE_COUNT; s++) {
                char row[1024];

                if (!symbol_state_is_reason(s))
                        continue;
                snprintf(row, sizeof row, "\n| `%s` | %s | %s |\n", symbol_state_name(s), symbol_state_meaning(s),
                         symbol_state_next_step(s));
                ck_assert_msg(strstr(all, row), "docs/reasons.md lacks the row%s", row);
        }
        buf_deinit(&text);
}
END_TEST

START_TEST(no_other_reasons_are_documented)
{
        struct buf text;
        enum symbol_state s;
        size_t rows = 0, reasons = 0;

        for (const char *at = read_page(&text); (at = strstr(at, "\n| `")); rows++) {
                char name[64] = "";

                at += strlen("\n| `");
                memcpy(name, at, strcspn(at, "`") < sizeof name ? strcspn(at, "`") : 0);
                ck_assert_msg(symbol_state_parse(name, &s) && symbol_state_is_reason(s), "'%s' is no reason", name);
        }
        for (s = 0; s < SYMBOL_STATE_COUNT; s++)
                reasons += symbol_state_is_reason(s);
        ck_assert_uint_eq(rows, reasons);
        buf_deinit(&text);
}
END_TEST

START_TEST(reason_names_round_trip)
{
        enum symbol_state back = SYMBOL_PENDING;

        for (enum symbol_state s = 0; s < SYMBOL_STATE_COUNT; s++) {
                ck_assert(symbol_state_parse(symbol_state_name(s), &back));
                ck_assert_int_eq(back, s);
        }
        ck_assert(!symbol_state_parse("unheard of", &back));
}
END_TEST

TEST_SUITE("reasons", every_reason_is_documented_with_the_same_text, no_other_reasons_are_documented,
           reason_names_round_trip)
