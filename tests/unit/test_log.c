/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/log.h"
#include "common/log_limit.h"
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
                                  &count)); /* another kind, in the same place of the table */
        ck_assert_uint_eq(count, 0);
        ck_assert(log_limit_admit(&l, 7, 2 * SECOND, &count));
        ck_assert_uint_eq(count, 1000);
        ck_assert(!log_limit_admit(&l, 7, 2 * SECOND, &count));
        for (int i = 0; i < LIMIT_LOG_BURST; i++) { /* long after, the bucket is full again and no fuller */
                ck_assert(log_limit_admit(&l, 7, 100000 * SECOND, &count));
                ck_assert_uint_eq(count, i ? 0 : 1);
        }
        ck_assert(!log_limit_admit(&l, 7, 100000 * SECOND, &count));
}
END_TEST

START_TEST(more_kinds_than_buckets_are_admitted)
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
        ck_assert_uint_le(lines, LIMIT_LOG_BURST + 30); /* a slow machine takes a while for the loop */
        ck_assert_uint_eq(count_text(buf_cstr(&text), "audit: change"), 200);
        ck_assert_uint_eq(count_text(buf_cstr(&text), "another message"), 1);
        ck_assert_uint_ge(count_text(buf_cstr(&text), " warn disk: "), lines + 1);
        ck_assert_ptr_nonnull(strstr(buf_cstr(&text), " similar messages suppressed\n"));
}
END_TEST

TEST_SUITE("log", a_bucket_admits_a_burst_then_its_rate_and_counts_the_rest, more_kinds_than_buckets_are_admitted,
           threads_share_a_bucket, a_repeated_message_does_not_fill_the_log)
