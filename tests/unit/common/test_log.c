/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/memory/buf.h"
#include "common/program/log.h"
#include "common/program/log_limit.h"
#include "tests/support/suite.h"

#define SECOND INT64_C(1000000000)

START_TEST(a_bucket_admits_a_burst_then_its_rate_and_counts_the_rest)
{
        static struct log_limit l;
        uint64_t count;

        for (int i = 0; i < LIMIT_LOG_BURST; i++)
                ck_assert(log_limit_admit(&l, 7, SECOND, &count));
        for (int i = 0; i < 1000; i++)
                ck_assert(!log_limit_admit(&l, 7, SECOND, &count));
        ck_assert(log_limit_admit(&l, 7 + LIMIT_LOG_KINDS, SECOND,
                                  &count)); /* another kind of message, in the same slot of the table */
        ck_assert_uint_eq(count, 0);
        ck_assert(log_limit_admit(&l, 7, 2 * SECOND, &count));
        ck_assert_uint_eq(count, 1000);
        ck_assert(!log_limit_admit(&l, 7, 2 * SECOND, &count));
        for (int i = 0; i < LIMIT_LOG_BURST; i++) { /* long after, the bucket is full again, but not fuller than that */
                ck_assert(log_limit_admit(&l, 7, 100000 * SECOND, &count));
                ck_assert_uint_eq(count, i ? 0 : 1);
        }
        ck_assert(!log_limit_admit(&l, 7, 100000 * SECOND, &count));
}
END_TEST

START_TEST(messages_without_a_bucket_are_admitted)
{
        static struct log_limit l;
        uint64_t count;

        for (uint64_t key = 1; key <= LIMIT_LOG_KINDS; key++)
                ck_assert(log_limit_admit(&l, key, SECOND, &count));
        for (int i = 0; i < 1000; i++)
                ck_assert(log_limit_admit(&l, 100000, SECOND, &count));
}
END_TEST

static struct log_limit shared;
static atomic_uint admitted;

static void *repeat(void *arg)
{
        uint64_t count;

        (void)arg;
        for (int i = 0; i < 10000; i++)
                atomic_fetch_add(&admitted, log_limit_admit(&shared, 5, SECOND, &count));
        return NULL;
}

START_TEST(threads_share_a_bucket)
{
        pthread_t threads[4];

        for (int i = 0; i < 4; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, repeat, NULL), 0);
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        ck_assert_uint_eq(admitted, LIMIT_LOG_BURST);
        ck_assert_uint_eq(shared.buckets[5].suppressed, 40000 - LIMIT_LOG_BURST);
}
END_TEST

static unsigned count_text(const char *text, const char *what)
{
        unsigned n = 0;

        for (; (text = strstr(text, what)); text += strlen(what))
                n++;
        return n;
}

static void repeat_message(int i)
{
        log_warn("disk", "no room for %d", i);
}

START_TEST(a_repeated_message_does_not_fill_the_log)
{
        char path[] = "/tmp/cairn-log-XXXXXX";
        int fd = mkstemp(path), was = dup(STDERR_FILENO);
        _cleanup_buf_ struct buf text;
        unsigned lines;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_ge(was, 0);
        dup2(fd, STDERR_FILENO);
        for (int i = 0; i < 20000; i++) {
                repeat_message(i);
                if (i % 100 == 0)
                        log_line_always(LOG_INFO, "audit", "change %d", i);
        }
        log_warn("disk", "another message");
        buf_init(&text, MiB(4));
        do { /* until the bucket has another token */
                repeat_message(-1);
                buf_clear(&text);
                ck_assert_int_eq(file_read(path, &text, NULL), ST_OK);
        } while (!strstr(buf_cstr(&text), " similar messages suppressed\n"));
        buf_clear(&text);
        dup2(was, STDERR_FILENO);
        close(was);
        close(fd);
        ck_assert_int_eq(file_read(path, &text, NULL), ST_OK);
        unlink(path);
        lines = count_text(buf_cstr(&text), "no room for");
        ck_assert_uint_ge(lines, LIMIT_LOG_BURST);
        ck_assert_uint_le(lines, LIMIT_LOG_BURST + 30); /* the loop may be slow on a slow machine */
        ck_assert_uint_eq(count_text(buf_cstr(&text), "audit: change"), 200);
        ck_assert_uint_eq(count_text(buf_cstr(&text), "another message"), 1);
        ck_assert_uint_ge(count_text(buf_cstr(&text), " warn disk: "), lines + 1);
        ck_assert_ptr_nonnull(strstr(buf_cstr(&text), " similar messages suppressed\n"));
}
END_TEST

/* The output of one call. Owned by ret. */
static const char *capture_line(enum log_format format, const struct log_fields *fields, const char *text,
                                struct buf *ret)
{
        char path[] = "/tmp/cairn-log-XXXXXX";
        int fd = mkstemp(path), was = dup(STDERR_FILENO);

        ck_assert_int_ge(fd, 0);
        dup2(fd, STDERR_FILENO);
        log_set_format(format);
        log_with_fields_always(LOG_INFO, "test", fields, "%s", text);
        log_set_format(LOG_TEXT);
        dup2(was, STDERR_FILENO);
        close(was);
        close(fd);
        buf_init(ret, MiB(1));
        ck_assert_int_eq(file_read(path, ret, NULL), ST_OK);
        unlink(path);
        return buf_cstr(ret);
}

static const char hostile[] = "a\"b\\c\nd\x1b e\xff f\xc3\xa9 \xe2\x80\xae g\xc2\x9b h=\x7f";

START_TEST(a_text_line_has_the_message_alone)
{
        const struct log_field field = { "code", NULL, 7 };
        const struct log_fields fields = { &field, 1 };
        _cleanup_buf_ struct buf text;

        log_set_request("id-1");
        ck_assert_str_eq(capture_line(LOG_TEXT, &fields, "words", &text) + 24, " info test: words\n");
        log_set_request(NULL);
}
END_TEST

START_TEST(structured_lines_escape_what_is_quoted)
{
#define ESCAPED "a\\\"b\\\\c\\nd\\u001b e\xef\xbf\xbd f\xc3\xa9 \\u202e g\\u009b h=\\u007f"
        const struct log_field items[] = { { "code", NULL, 7 }, { "target", "x \"y\"", 0 } };
        const struct log_fields fields = { items, 2 };
        _cleanup_buf_ struct buf json, logfmt;

        log_set_request("id-1");
        ck_assert_str_eq(capture_line(LOG_JSON, &fields, hostile, &json) + 9 + 24,
                         "\",\"level\":\"info\",\"subsystem\":\"test\",\"request_id\":\"id-1\",\"code\":7,"
                         "\"target\":\"x \\\"y\\\"\",\"msg\":\"" ESCAPED "\"}\n");
        log_set_request(NULL);
        ck_assert_str_eq(capture_line(LOG_LOGFMT, &fields, hostile, &logfmt) + 5 + 24,
                         " level=info subsystem=test code=7 target=\"x \\\"y\\\"\" msg=\"" ESCAPED "\"\n");
}
END_TEST

/* Escapes take up to six bytes per byte: the line is truncated between them and stays valid. */
START_TEST(long_line_is_truncated_and_stays_valid)
{
        char controls[2001], accents[2001];
        _cleanup_buf_ struct buf first, second;
        const char *line;
        size_t n;

        memset(controls, 1, sizeof controls - 1);
        controls[sizeof controls - 1] = 0;
        const struct log_field items[] = { { "target", controls, 0 },
                                           { "more", controls, 0 },
                                           { "peer", controls, 0 } };
        const struct log_fields fields = { items, 3 };

        line = capture_line(LOG_JSON, &fields, controls, &first);
        n = strlen(line);
        ck_assert_uint_le(n, LOG_LINE_BYTES);
        ck_assert_str_eq(line + n - 9, "\\u0001\"}\n");
        ck_assert_ptr_nonnull(strstr(line, ",\"msg\":\"\\u0001"));
        for (size_t i = 0; i < sizeof accents - 1; i++)
                accents[i] = i % 2 ? '\xa9' : '\xc3';
        accents[sizeof accents - 1] = 0;
        line = capture_line(LOG_JSON, NULL, accents, &second);
        ck_assert_ptr_nonnull(strstr(line, "\xc3\xa9\"}\n")); /* no partial UTF-8 sequence */
        ck_assert_ptr_null(strstr(line, "\xef\xbf\xbd"));
}
END_TEST

TEST_SUITE("log", a_bucket_admits_a_burst_then_its_rate_and_counts_the_rest, messages_without_a_bucket_are_admitted,
           threads_share_a_bucket, a_text_line_has_the_message_alone, structured_lines_escape_what_is_quoted,
           long_line_is_truncated_and_stays_valid, a_repeated_message_does_not_fill_the_log)
