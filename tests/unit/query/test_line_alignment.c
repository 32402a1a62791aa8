/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of two texts that correspond, compared with a simple longest common subsequence; and texts that cost most. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "query/engine/line_alignment.h"
#include "tests/support/random_draw.h"
#include "tests/support/suite.h"

#define MOST_LINES 40

/* Lines of a text, which is copied. */
static void make_lines(struct source_lines *s, const char *text)
{
        const char *end = text + strlen(text);

        *s = (struct source_lines){ .state = ST_OK };
        buf_init(&s->text, LIMIT_SHOWN_SOURCE_BYTES);
        buf_append_str(&s->text, text);
        ck_assert_int_eq(s->text.failed, ST_OK);
        s->starts = calloc(strlen(text) + 1, sizeof *s->starts);
        ck_assert_ptr_nonnull(s->starts);
        for (const char *at = text; at < end; at = strchr(at, '\n') + 1)
                s->starts[s->count++] = (uint32_t)(at - text);
}

static struct source_lines sides[2];
static struct line_alignment alignment;
static struct work_meter meter;

static enum status no_interruption(void *context, struct error *err)
{
        (void)context;
        (void)err;
        return ST_OK;
}

static enum status align_texts(const char *before, const char *after, struct error *err)
{
        make_lines(&sides[0], before);
        make_lines(&sides[1], after);
        work_meter_init(&meter, no_interruption, NULL);
        return line_alignment_make(&sides[0], &sides[1], &meter, &alignment, err);
}

static void end_alignment(void)
{
        line_alignment_deinit(&alignment);
        source_lines_deinit(&sides[0]);
        source_lines_deinit(&sides[1]);
}

/* The lines after of the lines before, as "1 2 - 4". */
static void check_alignment(const char *before, const char *after, const char *expected)
{
        char found[400] = "";
        struct error err;

        ck_assert_msg(align_texts(before, after, &err) == ST_OK, "%s", err.text);
        for (uint32_t i = 1; i <= alignment.before_count; i++) {
                const size_t n = strlen(found);
                const uint32_t line = alignment.after_of[i];

                snprintf(found + n, sizeof found - n, line ? "%s%u" : "%s-", n ? " " : "", line);
        }
        ck_assert_str_eq(found, expected);
        end_alignment();
}

START_TEST(lines_below_an_edit_keep_their_partners)
{
        check_alignment("a\nb\nc\n", "a\nb\nc\n", "1 2 3");
        check_alignment("a\nb\nc\n", "a\nnew\nb\nc\n", "1 3 4");
        check_alignment("a\nb\nc\n", "a\nc\n", "1 - 2");
        check_alignment("", "a\n", "");
        check_alignment("a\n", "", "-");
        check_alignment("a\nb\nc\nd\n", "d\na\nb\nc\n", "2 3 4 -");
}
END_TEST

START_TEST(changed_lines_are_partners_in_place_of_as_many_others_or_of_similar_ones)
{
        check_alignment("a\nx = 1;\nb\n", "a\ny = 7;\nb\n", "1 2 3");
        check_alignment("a\nx = first(1);\nb\n", "a\nnew\nx = first(2);\nb\n", "1 3 4");
        check_alignment("a\nx = first(1);\nb\n", "a\nqqqqqqqq\nzzzz\nb\n", "1 - 4");
        check_alignment("a\n    indent(1);\nb\n", "a\nother\n\tindent(12);\nb\n", "1 3 4");
}
END_TEST

/* ---- random texts ---- */

static size_t draw_text(char *to, unsigned letters)
{
        const size_t lines = (size_t)(draw_uniform() * MOST_LINES);

        for (size_t i = 0; i < lines; i++) {
                to[2 * i] = (char)('a' + (int)(draw_uniform() * letters));
                to[2 * i + 1] = '\n';
        }
        to[2 * lines] = 0;
        return lines;
}

/* Lines that occur once on both sides. */
static unsigned count_unique_letters(const char *before, const char *after)
{
        unsigned ret = 0;

        for (char c = 'a'; c <= 'z'; c++) {
                const char *a = strchr(before, c), *b = strchr(after, c);

                ret += a && b && !strchr(a + 1, c) && !strchr(b + 1, c);
        }
        return ret;
}

static unsigned count_common_lines(const char *before, size_t n, const char *after, size_t m)
{
        unsigned best[MOST_LINES + 1][MOST_LINES + 1] = { 0 };

        for (size_t i = 1; i <= n; i++)
                for (size_t k = 1; k <= m; k++)
                        best[i][k] = before[2 * i - 2] == after[2 * k - 2] ? best[i - 1][k - 1] + 1
                                     : best[i - 1][k] > best[i][k - 1]     ? best[i - 1][k]
                                                                           : best[i][k - 1];
        return best[n][m];
}

/* @return the number of partners that are equal. */
static unsigned check_partners(const char *before, size_t n, const char *after, size_t m)
{
        unsigned equal = 0;
        uint32_t last = 0;

        ck_assert_uint_eq(alignment.before_count, n);
        ck_assert_uint_eq(alignment.after_count, m);
        for (uint32_t i = 1; i <= n; i++) {
                const uint32_t line = alignment.after_of[i];

                if (line) {
                        ck_assert_uint_gt(line, last);
                        ck_assert_uint_le(line, m);
                        ck_assert_uint_eq(alignment.before_of[line], i);
                        equal += before[2 * i - 2] == after[2 * line - 2];
                        last = line;
                }
                ck_assert_uint_eq(alignment.after_until[i], last);
        }
        for (uint32_t k = 1; k <= m; k++)
                ck_assert(!alignment.before_of[k] || alignment.after_of[alignment.before_of[k]] == k);
        return equal;
}

/* Without lines that occur once, the partners that are equal are a longest common subsequence; else they may be fewer.
 */
START_TEST(partners_of_random_texts_are_as_many_as_in_a_longest_common_subsequence)
{
        char before[2 * MOST_LINES + 1], after[2 * MOST_LINES + 1];
        unsigned complete = 0;

        random_state = 7;
        for (unsigned round = 0; round < 2000; round++) {
                const unsigned letters = 1 + round % 26;
                const size_t n = draw_text(before, letters), m = draw_text(after, letters);
                const unsigned most = count_common_lines(before, n, after, m);
                struct error err;
                unsigned equal;

                ck_assert_msg(align_texts(before, after, &err) == ST_OK, "%s", err.text);
                equal = check_partners(before, n, after, m);
                ck_assert_uint_le(equal, most);
                if (letters <= 2 && !count_unique_letters(before, after)) {
                        ck_assert_msg(equal == most, "%u partners instead of %u in\n%s--\n%s", equal, most, before,
                                      after);
                        complete++;
                }
                end_alignment();
        }
        ck_assert_uint_gt(complete, 50);
}
END_TEST

/* ---- texts that cost most ---- */

/* A text of `count` equal lines between two lines of its own. */
static char *repeat_line(const char *first, const char *line, size_t count, const char *last)
{
        const size_t n = strlen(line);
        char *ret = malloc(strlen(first) + count * n + strlen(last) + 1), *to;

        ck_assert_ptr_nonnull(ret);
        to = stpcpy(ret, first);
        for (size_t i = 0; i < count; i++, to += n)
                memcpy(to, line, n);
        stpcpy(to, last);
        return ret;
}

/* @return the work in units, rounded up to a check of the meter. */
static uint64_t measure_alignment(const char *before, const char *after)
{
        struct error err;

        ck_assert_msg(align_texts(before, after, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), alignment.memory.bytes);
        end_alignment();
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
        return (meter.checks + 1) * WORK_CHECK_UNITS;
}

START_TEST(a_million_equal_lines_are_partners)
{
        _cleanup_free_ char *before = repeat_line("x\n", "a\n", LIMIT_ALIGNED_LINES - 2, "y\n");
        _cleanup_free_ char *after = repeat_line("z\n", "a\n", LIMIT_ALIGNED_LINES - 3, "w\n");
        struct error err;

        ck_assert_uint_lt(measure_alignment(before, after), 200 * (uint64_t)LIMIT_ALIGNED_LINES);
        ck_assert_msg(align_texts(before, after, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(alignment.after_of[2], 2);
        end_alignment();
}
END_TEST

/* Each line before would be compared with 64 long lines of white space. */
START_TEST(lines_of_white_space_are_not_compared_without_end)
{
        char wide[LIMIT_SHOWN_LINE_BYTES + 2];
        _cleanup_free_ char *before = repeat_line("", "a\n", LIMIT_ALIGNED_LINES - 1, ""), *after = NULL;

        memset(wide, ' ', sizeof wide - 2);
        memcpy(wide + sizeof wide - 2, "\n", 2);
        after = repeat_line("", wide, 70, "");
        ck_assert_uint_lt(measure_alignment(before, after), 200 * (uint64_t)LIMIT_ALIGNED_LINES);
}
END_TEST

START_TEST(a_text_of_too_many_lines_is_refused_before_memory_is_used)
{
        _cleanup_free_ char *before = repeat_line("", "a\n", LIMIT_ALIGNED_LINES + 1, "");
        struct error err;

        ck_assert_int_eq(align_texts(before, "a\n", &err), ST_TOO_BIG);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
        source_lines_deinit(&sides[0]);
        source_lines_deinit(&sides[1]);
}
END_TEST

TEST_SUITE("line alignment", lines_below_an_edit_keep_their_partners,
           changed_lines_are_partners_in_place_of_as_many_others_or_of_similar_ones,
           partners_of_random_texts_are_as_many_as_in_a_longest_common_subsequence, a_million_equal_lines_are_partners,
           lines_of_white_space_are_not_compared_without_end, a_text_of_too_many_lines_is_refused_before_memory_is_used)
