/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "common/text/regex_match.h"
#include "query/engine/selector.h"
#include "tests/support/suite.h"

START_TEST(selector_syntax_agrees_with_prometheus)
{
        _cleanup_selector_ struct selector s = { 0 };
        struct error err;

        ck_assert_msg(selector_parse(" process_cpu:cpu { service.name = \"a\\\"b\\u00e9\" , comm=~'post.*', x!=``, "
                                     "y!~\"\\\\d+\", } ",
                                     NULL, &s, &err) == ST_OK,
                      "%s", err.text);
        ck_assert_str_eq(s.type, "process_cpu:cpu");
        ck_assert_uint_eq(s.count, 4);
        ck_assert_str_eq(s.matchers[0].key, "service.name");
        ck_assert_str_eq(s.matchers[0].value, "a\"bé");
        ck_assert_int_eq(s.matchers[1].op, LABEL_REGEX);
        ck_assert_int_eq(s.matchers[2].op, LABEL_NOT_EQUAL);
        ck_assert_str_eq(s.matchers[2].value, "");
        ck_assert_int_eq(s.matchers[3].op, LABEL_NOT_REGEX);
        ck_assert(s.matchers[3].match(s.matchers[3].context, "12", 2));
        selector_deinit(&s);

        ck_assert_int_eq(selector_parse("comm=\"x\",pid=\"3\"", NULL, &s, NULL), ST_OK); /* braces are optional */
        ck_assert_uint_eq(s.count, 2);
        selector_deinit(&s);
        ck_assert_int_eq(selector_parse("{__profile_type__=\"memory:inuse_space:bytes::\"}", NULL, &s, NULL), ST_OK);
        ck_assert_uint_eq(s.count, 0);
        ck_assert_str_eq(s.type, "memory:inuse_space:bytes::");
        selector_deinit(&s);
        ck_assert_int_eq(selector_parse(NULL, NULL, &s, NULL), ST_OK);
        ck_assert_uint_eq(s.count, 0);
}
END_TEST

START_TEST(escapes_are_those_of_go)
{
        static const struct {
                const char *text, *value;
        } cases[] = {
                { "{a=\"\\xc3\\xa9\"}", "\xc3\xa9" }, /* bytes, not code points */
                { "{a=\"\\303\\2511\"}", "\xc3\xa9"
                                         "1" },
                { "{a=\"\\u00e9\\U0001F980\"}", "\xc3\xa9\xf0\x9f\xa6\x80" },
                { "{a='\\x41\\101\\a\\t'}", "AA\a\t" },
                { "{a=`\\x41`}", "\\x41" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_selector_ struct selector s = { 0 };

                ck_assert_msg(selector_parse(cases[i].text, NULL, &s, NULL) == ST_OK, "%s", cases[i].text);
                ck_assert_str_eq(s.matchers[0].value, cases[i].value);
        }
}
END_TEST

START_TEST(regular_expressions_are_anchored)
{
        static const struct {
                const char *pattern, *text;
                bool match;
        } cases[] = {
                { "post.*", "postgres", true },
                { "post.*", "a post", false },
                { "a|b", "a", true },
                { "a|b", "ab", false },
                { "", "", true },
                { ".+", "", false },
                { "(?:x|y)\\d+", "y12", true },
                { "[^]a]", "b", true },
                { "[^]a]", "]", false },
                { "[\\d.]+", "1.2", true },
                { "a{2,3}", "aa", true },
                { "a{2,3}", "aaaa", false },
                { "x\\.y", "x.y", true },
                { "x\\.y", "xzy", false },
                { "(?i)ABC[x-z]", "aBcY", true },
                { "^a$", "a", true },
                { "a^b", "ab", false },
                { "(a|b)*c", "ababc", true },
                { "a{2,}", "aaaaa", true },
                { "a{2,}", "a", false },
                { "(ab){2}", "abab", true },
                { "(ab){2}", "ab", false },
                { "a{0}b", "b", true },
                { "[^\\d]", "x", true },
                { "[\\D]", "5", false },
                { "\\S+", "a b", false },
                { ".", "\xc3\xa9", true },
                { "[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true },
                { "a?b??c*?", "", true },
                { "|x", "", true },
                { "()", "", true },
                { "\\x41\\t", "A\t", true },
                { "[a-]", "-", true },
                { "[a\\]]", "]", true },
                { "(?:a|bc)+?", "abcbca", true },
                { "x*", "xxxxxxxxy", false },
                { "a2[[:digit:]]", "a24", true },
                { "a2[[:digit:]]", "a2:]", false },
                { "[[:^digit:]]+", "ab\xc3\xa9", true },
                { "[[:^digit:]]+", "a1", false },
                { "[^[:^digit:]]+", "12", true },
                { "[[:alpha:][:digit:]_-]+", "aB_1-", true },
                { "[[:^ascii:]]", "\xc3\xa9", true },
                { "[[:^ascii:]]", "e", false },
                { "[[:^cntrl:]]", "\x7f", false },
                { "[[:cntrl:]]", "\x1f", true },
                { "[[:^cntrl:]]", " ", true },
                { "[[:space:]]", "\v", true },
                { "\\s", "\v", false },
                { "[[:punct:]]{4}", "!@[~", true },
                { "[[:punct:]]", "A", false },
                { "[[:xdigit:]]+", "09afAF", true },
                { "[[:blank:]]+", "\t ", true },
                { "[[:graph:]]", " ", false },
                { "[[:print:]]", " ", true },
                { "[[:word:]]+", "a_1", true },
                { "[[:]+", "[:", true },
                { "[[:alpha]+", "[:alph", true },
                { "[:alpha:]", "l", true },
                { "[:alpha:]", "b", false },
                { "(?i)[[:^lower:]]", "A", false }, /* both cases belong to the class before it is negated */
                { "(?i)[[:upper:]]", "a", true },
                { "(?i)\\W", "\xe2\x84\xaa", false }, /* the Kelvin sign is a k */
                { "\\W", "\xe2\x84\xaa", true },
                { "(?i)\xc3\xa9", "\xc3\x89", true },
                { "(?i)[\xd0\xb0-\xd1\x8f]+", "\xd0\x9a\xd0\xba", true },
                { "(?i)[^\xc3\xa9]", "\xc3\x89", false },
                { "(?i)\xcf\x82", "\xce\xa3", true }, /* the final sigma */
                { "(?i)\xc3\x9f", "ss", false },      /* of one code point to one */
                { "(?i:a)b", "Ab", true },
                { "(?i:a)b", "AB", false },
                { "a(?i)b|c", "C", true },
                { "(a(?i)b)c", "aBC", false },
                { "(?i)a(?-i)b", "AB", false },
                { ".", "\n", true },
                { "(?-s).", "\n", false },
                { "(?-s:.)(?s:.)", "a\n", true },
                { "(?m)a$\n^b", "a\nb", true },
                { "a$\n^b", "a\nb", false },
                { "(?m)\\Aa\n\\z", "a\n", true },
                { "a\\b.*", "a-b", true },
                { "a\\b.*", "ab", false },
                { "a\\B.*", "ab", true },
                { "\\Qa.*\\E+", "a.**", true },
                { "\\Qa.*", "abc", false },
                { "\\Q[(\\Ex", "[(x", true },
                { "\\101\\x{42}\\x{e9}", "AB\xc3\xa9", true },
                { "\\a\\f\\v", "\a\f\v", true },
                { "(?P<a>x)(?<b>y)", "xy", true },
                { "/{id}{,2}{", "/{id}{,2}{", true },
                { "\xef\xbf\xbd", "\xe9", true },
                { "\xc3\xa9", "\xe9", false },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct selector s;
                char text[128];

                snprintf(text, sizeof text, "a=~`%s`", cases[i].pattern);
                ck_assert_msg(selector_parse(text, NULL, &s, NULL) == ST_OK, "%s", cases[i].pattern);
                ck_assert_msg(s.matchers[0].match(s.matchers[0].context, cases[i].text, strlen(cases[i].text)) ==
                                      cases[i].match,
                              "%s on '%s'", cases[i].pattern, cases[i].text);
                selector_deinit(&s);
        }
}
END_TEST

START_TEST(matching_takes_linear_time)
{
        static const char *const patterns[] = { "(a*)*b", "((((a*)*)*)*)*b", "(a|a)*b", "(a?){400}a{400}b",
                                                "(.*)(.*)(.*)(.*)(.*)b" };
        _cleanup_free_ char *text = malloc(4096);
        char stars[LIMIT_REGEX_BYTES + 1];
        struct regex_match *m;

        memset(text, 'a', 4096);
        memset(stars, '*', sizeof stars);
        stars[0] = 'a';
        stars[LIMIT_REGEX_BYTES - 1] = 'b';
        stars[LIMIT_REGEX_BYTES] = 0;
        for (size_t i = 0; i < 6; i++) { /* a backtracking matcher would not terminate */
                ck_assert_int_eq(regex_match_create(i < 5 ? patterns[i] : stars, NULL, &m, NULL), ST_OK);
                ck_assert(!regex_match_text(m, text, 4096));
                regex_match_destroy(m);
        }
}
END_TEST

/* One step budget is shared by all texts: it permits this number of them, however few steps each takes. */
START_TEST(regex_steps_of_all_texts_share_one_budget)
{
        struct work_meter meter;
        struct regex_match *m;
        struct error err = { 0 };
        char text[32];
        uint64_t one, left;
        unsigned i;

        work_meter_init(&meter, NULL, NULL);
        ck_assert_uint_eq(meter.regex_steps_left, LIMIT_REGEX_STEPS);
        ck_assert_int_eq(regex_match_create("(.{0,30}){0,30}x", &meter, &m, NULL), ST_OK);
        ck_assert(!regex_match_text(m, "name_000000", 11));
        one = LIMIT_REGEX_STEPS - meter.regex_steps_left;
        ck_assert_uint_gt(one, 11); /* many states at each byte */
        left = meter.regex_steps_left;
        ck_assert(!regex_match_text(m, "name_000000", 11)); /* cached: takes no steps */
        ck_assert_uint_eq(meter.regex_steps_left, left);

        meter.regex_steps_left = 100 * one;
        for (i = 1; i < 10000 && !meter.failed; i++) {
                snprintf(text, sizeof text, "name_%06u", i);
                ck_assert(!regex_match_text(m, text, 11));
        }
        ck_assert_uint_ge(i, 100);
        ck_assert_uint_le(i, 102);
        ck_assert_int_eq(work_meter_check(&meter, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "regular expressions of this query take more than"));
        left = meter.regex_steps_left;
        ck_assert(!regex_match_text(m, "another", 7)); /* at once */
        ck_assert_uint_eq(meter.regex_steps_left, left);
        regex_match_destroy(m);
}
END_TEST

/* Comparing a code point with hundreds of ranges is work, too. */
START_TEST(wide_classes_count_as_steps)
{
        struct work_meter narrow, wide;
        struct regex_match *m;
        char pattern[LIMIT_REGEX_BYTES];
        size_t n = 1;

        work_meter_init(&narrow, NULL, NULL);
        work_meter_init(&wide, NULL, NULL);
        pattern[0] = '[';
        while (n + 6 < sizeof pattern)
                n += (size_t)snprintf(pattern + n, sizeof pattern - n, "\\D");
        snprintf(pattern + n, sizeof pattern - n, "]*");
        ck_assert_int_eq(regex_match_create("[5]*", &narrow, &m, NULL), ST_OK);
        ck_assert(regex_match_text(m, "5555555555", 10));
        regex_match_destroy(m);
        ck_assert_int_eq(regex_match_create(pattern, &wide, &m, NULL), ST_OK);
        ck_assert(regex_match_text(m, "aaaaaaaaaa", 10));
        regex_match_destroy(m);
        ck_assert_uint_gt(LIMIT_REGEX_STEPS - wide.regex_steps_left,
                          10 * (LIMIT_REGEX_STEPS - narrow.regex_steps_left));
}
END_TEST

START_TEST(patterns_with_large_repetitions_are_refused)
{
        static const char *const patterns[] = { "(a{1000}){1000}", "((a{0,99}){0,99}){0,99}", "(((a?){30}){30}){30}",
                                                "(((((){1000}){1000}){1000}){1000}){1000}", "a{1000}b{1000}c" };

        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
                struct regex_match *m;
                struct error err = { 0 };

                ck_assert_msg(regex_match_create(patterns[i], NULL, &m, &err) == ST_USAGE, "%s", patterns[i]);
                ck_assert_msg(strstr(err.text, "repeats too much: counted out it has more than 2000 parts"), "%s",
                              err.text);
        }
}
END_TEST

/* The groups' texts, with the match preferred by RE2 and Perl: "0|1|2", '-' for a group that did not match. */
static const char *capture_text(const char *pattern, const char *text, char *out, size_t size)
{
        struct regex_capture groups[REGEX_CAPTURES];
        struct regex_match *m;
        size_t n = 0;

        ck_assert_int_eq(regex_match_create_captures(pattern, &m, NULL), ST_OK);
        if (!regex_match_capture(m, text, strlen(text), groups)) {
                snprintf(out, size, "no");
        } else {
                for (size_t i = 0; i < 4; i++)
                        n += (size_t)snprintf(out + n, size - n, "%s%.*s", i ? "|" : "",
                                              groups[i].size ? (int)groups[i].size : 1,
                                              groups[i].size ? groups[i].text : "-");
        }
        regex_match_destroy(m);
        return out;
}

START_TEST(groups_capture_the_preferred_match)
{
        static const struct {
                const char *pattern, *text, *groups;
        } cases[] = {
                { "(.*)", "abc", "abc|abc|-|-" },
                { "(.*):(\\d+)", "h:1:2", "h:1:2|h:1|2|-" },
                { "(.*?):(.*)", "h:1:2", "h:1:2|h|1:2|-" },
                { "(a|ab)(c|bcd)?", "abcd", "abcd|a|bcd|-" },
                { "(a+?)(a*)", "aaa", "aaa|a|aa|-" },
                { "(a+)(a*)", "aaa", "aaa|aaa|-|-" },
                { "(a{1,2}?)(a*)", "aaa", "aaa|a|aa|-" },
                { "(a{1,2})(a*)", "aaa", "aaa|aa|a|-" },
                { "(?:x)(y)", "xy", "xy|y|-|-" },
                { "(a)|(b)", "b", "b|-|b|-" },
                { "((a)|b)*", "ab", "ab|b|a|-" },
                { "(a*)*", "aa", "aa|aa|-|-" },
                { "(x)?", "", "-|-|-|-" },
                { "^(a)$", "a", "a|a|-|-" },
                { "(?P<n>a)(?<m>b)", "ab", "ab|a|b|-" },
                { "(?U)(a+)(a*)(a*?)", "aaa", "aaa|a|-|aa" },
                { "(?i:(A))(.)", "ab", "ab|a|b|-" },
                { "(.*?)\\b(.*)", "ab", "ab|-|ab|-" },
                { "(a)", "ab", "no" },
                { "(\xc3\xa9+)(.)", "\xc3\xa9\xc3\xa9z", "\xc3\xa9\xc3\xa9z|\xc3\xa9\xc3\xa9|z|-" },
        };
        char out[256];

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                ck_assert_msg(strcmp(capture_text(cases[i].pattern, cases[i].text, out, sizeof out), cases[i].groups) ==
                                      0,
                              "%s on %s: %s", cases[i].pattern, cases[i].text, out);
}
END_TEST

START_TEST(malformed_selectors_report_position_and_expectation)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                { "{a=\"b\"", "expected ',' or '}' at byte 6" },
                { "{=\"b\"}", "expected a label name at byte 1" },
                { "{a~\"b\"}", "expected one of = != =~ !~ at byte 2" },
                { "{a=}", "expected a value at byte 3" },
                { "{a=b=c}", "expected ',' or '}' at byte 4" },
                { "a=b\"c\"", "expected ','" },
                { "{a=\"b}", "expected a closing quote" },
                { "{a=\"\\q\"}", "expected an escape" },
                { "{a=\"b\"} x", "expected the end at byte 8" },
                { "{a=~\"(\"}", "bad regular expression" },
                { "{a=~\"(a)\\\\1\"}", "no back references" },
                { "{a=~\"(a{90}){90}\"}", "repeats too much" },
                { "{a=~\"((((){999}){999}){999}){999}\"}", "repeats too much" },
                { "{a=~\"a{1001}\"}", "out of range" },
                { "{a=~\"*\"}", "nothing to repeat" },
                { "{a=~\"[a\"}", "not closed" },
                { "{a=~\"[z-a]\"}", "end is before its start" },
                { "{a=~\"a)\"}", "')' without '('" },
                { "{a=~\"(?=a)\"}", "not supported" },
                { "{a=~`(?<=a)b`}", "not supported" },
                { "{a=~`(?-)`}", "not supported" },
                { "{a=~`(?i`}", "not closed" },
                { "{a=~`[[:foo:]]`}", "a class [:name:] that does not exist at byte 1" },
                { "{a=~`[[:^:]]`}", "a class [:name:] that does not exist" },
                { "{a=~`[[:digit:]`}", "not closed" },
                { "{a=~`\\pL`}", "a class of Unicode, which is not supported" },
                { "{a=~`[\\P{Greek}]`}", "a class of Unicode, which is not supported" },
                { "{a=~`\\C`}", "a single byte, which is not supported" },
                { "{a=~`\\Z`}", "an escape that does not exist" },
                { "{a=~`\\x{110000}`}", "a code point" },
                { "{a=~`\\x{}`}", "a code point" },
                { "{a=~`\\x1`}", "a code point" },
                { "{a=~`(?P<a-b>x)`}", "a group's name" },
                { "{a=~`(?P<a>x)(?<a>y)`}", "a second group with this name" },
                { "{a=~`(?P=a)`}", "not supported" },
                { "{a=~`(?i)*`}", "nothing to repeat" },
                { "{a=~`(?i){2}`}", "nothing to repeat" },
                { "{a=~`{2}`}", "nothing to repeat" },
                { "{a=\"\\xff\\xff\"b}", "expected UTF-8 text" },
                { "{a=\"\\ud800\"}", "expected UTF-8 text" },
                { "{a=\"\\U00110000\"}", "expected an escape" },
                { "{a=\"\\400\"}", "expected an escape" },
                { "{a=\"\\x00\"}", "expected an escape" },
                { "{a=\"\\18\"}", "expected an escape" },
                { "a:b{__profile_type__=\"c\"}", "two profile types, 'a:b' and 'c'" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct selector s;
                struct error err;

                ck_assert_msg(selector_parse(cases[i].text, NULL, &s, &err) == ST_USAGE, "%s", cases[i].text);
                ck_assert_msg(strstr(err.text, cases[i].error) != NULL, "%s: %s", cases[i].text, err.text);
        }
}
END_TEST

TEST_SUITE("selector", selector_syntax_agrees_with_prometheus, escapes_are_those_of_go,
           regular_expressions_are_anchored, matching_takes_linear_time, regex_steps_of_all_texts_share_one_budget,
           wide_classes_count_as_steps, patterns_with_large_repetitions_are_refused, groups_capture_the_preferred_match,
           malformed_selectors_report_position_and_expectation)
