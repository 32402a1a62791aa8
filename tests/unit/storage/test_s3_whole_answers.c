/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of an object store that are not what was asked for: requests are repeated, as after a broken connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/s3/s3_client.h"
#include "tests/support/suite.h"

#define ATTEMPTS 5 /* of one request */

static const char *answers[2]; /* to the first request, and to all later ones */
static char last_request[4096];
static _Atomic unsigned requests;
static int listening;
static pthread_t server;
static struct s3_client *client;

/* With its body. False: the connection was closed. */
static bool read_request(int fd)
{
        size_t size = 0, wanted = SIZE_MAX;

        while (size < wanted) {
                ssize_t n = read(fd, last_request + size, sizeof last_request - 1 - size);
                const char *end, *length;

                if (n <= 0)
                        return false;
                size += (size_t)n;
                last_request[size] = 0;
                end = strstr(last_request, "\r\n\r\n");
                length = strcasestr(last_request, "\r\ncontent-length: ");
                if (end)
                        wanted = (size_t)(end + 4 - last_request) + (length ? strtoul(length + 18, NULL, 10) : 0);
        }
        return true;
}

static void *serve_connections(void *unused)
{
        int fd;

        (void)unused;
        while ((fd = accept(listening, NULL, NULL)) >= 0) {
                while (read_request(fd)) {
                        const char *answer = answers[requests++ > 0];

                        if (write(fd, answer, strlen(answer)) < 0 || strstr(answer, "Connection: close"))
                                break;
                }
                close(fd);
        }
        return NULL;
}

static void set_up(void)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof a;
        struct error err;
        char url[64];

        listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listening, (struct sockaddr *)&a, size), 0);
        ck_assert_int_eq(listen(listening, 8), 0);
        ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&a, &size), 0);
        ck_assert(pthread_create(&server, NULL, serve_connections, NULL) == 0);
        snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(a.sin_port));
        setenv("AWS_ENDPOINT_URL_S3", url, 1);
        setenv("AWS_REGION", "region", 1);
        setenv("AWS_ACCESS_KEY_ID", "key", 1);
        setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
        check_ok(s3_client_create("s3://bucket/prefix", NULL, &client, &err), &err);
}

static void tear_down(void)
{
        s3_client_destroy(client);
        shutdown(listening, SHUT_RDWR);
        pthread_join(server, NULL);
        close(listening);
}

static char taken[64];

static enum status take_bytes(void *context, const void *data, size_t n)
{
        const size_t before = strlen(taken);

        (void)context;
        ck_assert_uint_lt(before + n, sizeof taken);
        memcpy(taken + before, data, n);
        return ST_OK;
}

static void forget_bytes(void *context)
{
        (void)context;
        memset(taken, 0, sizeof taken);
}

static enum status send_request(const struct s3_request *what, const char *first, const char *later, struct error *err)
{
        struct s3_request q = *what;
        struct s3_response response = { 0 };
        enum status st;

        answers[0] = first;
        answers[1] = later;
        requests = 0;
        q.method = "GET";
        if (!q.wants_xml) {
                q.key = "key";
                q.write = take_bytes;
                q.restart = forget_bytes;
        }
        st = s3_send(client, &q, &response, err);
        s3_response_deinit(&response);
        return st;
}

static void require_repetition(const struct s3_request *what, const char *first, const char *good, const char *bytes)
{
        struct error err;

        check_ok(send_request(what, first, good, &err), &err);
        ck_assert_uint_eq(requests, 2);
        ck_assert_str_eq(taken, bytes);
        check_ok(send_request(what, good, good, &err), &err);
        ck_assert_uint_eq(requests, 1);
}

#define RANGE(status, range, length, body)                                                                             \
        "HTTP/1.1 " status "\r\nContent-Range: bytes " range "\r\nContent-Length: " length "\r\n\r\n" body
#define WHOLE(length, body) "HTTP/1.1 200 OK\r\nContent-Length: " length "\r\n\r\n" body

START_TEST(another_range_than_was_asked_for_is_asked_for_again)
{
        static const char good[] = RANGE("206 Partial", "10-13/100", "4", "abcd");
        static const char *const others[] = { RANGE("206 Partial", "10-12/100", "3", "abc"),
                                              RANGE("206 Partial", "11-14/100", "4", "bcde"),
                                              RANGE("206 Partial", "10-13/100", "3", "abc"),
                                              RANGE("206 Partial", "10-13/100", "5", "abcde"),
                                              RANGE("206 Partial", "10", "4", "abcd"),
                                              WHOLE("5", "abcde"),
                                              WHOLE("0", "") };

        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
                require_repetition(&(struct s3_request){ .wanted = { 10, 4 } }, others[i], good, "abcd");
}
END_TEST

START_TEST(the_end_of_an_object_is_its_end)
{
        static const char good[] = RANGE("206 Partial", "96-99/100", "4", "abcd");
        static const char *const others[] = { RANGE("206 Partial", "0-3/100", "4", "abcd"),
                                              RANGE("206 Partial", "97-99/100", "3", "bcd"),
                                              RANGE("206 Partial", "96-99/100", "2", "ab"), WHOLE("5", "abcde") };
        static const char *const smaller[] = { RANGE("206 Partial", "0-1/2", "2", "ab"), WHOLE("2", "ab") };
        const struct s3_request end = { .wanted.size = 4, .wants_end = true };

        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
                require_repetition(&end, others[i], good, "abcd");
        for (size_t i = 0; i < sizeof smaller / sizeof *smaller; i++)
                require_repetition(&end, others[1], smaller[i], "ab");
}
END_TEST

START_TEST(a_range_is_no_whole_object)
{
        require_repetition(&(struct s3_request){ .key = "key" }, RANGE("206 Partial", "0-1/4", "2", "ab"),
                           WHOLE("4", "abcd"), "abcd");
}
END_TEST

START_TEST(a_list_that_was_cut_is_asked_for_again)
{
        static const char *const cut[] = { WHOLE("20", "<List><Key>a</Key><K"), WHOLE("6", "<List>"), WHOLE("0", "") };

        for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
                require_repetition(&(struct s3_request){ .wants_xml = true }, cut[i], WHOLE("7", "<List/>"), "");
}
END_TEST

START_TEST(a_store_whose_answers_stay_short_does_not_answer)
{
        static const char answer[] = RANGE("206 Partial", "10-12/100", "3", "abc");
        struct error err;

        ck_assert_int_eq(send_request(&(struct s3_request){ .wanted = { 10, 4 } }, answer, answer, &err), ST_OS);
        ck_assert_uint_eq(requests, ATTEMPTS);
        ck_assert_ptr_nonnull(strstr(err.text, "the object store does not answer"));
}
END_TEST

START_TEST(a_store_without_ranges_is_told_from_one_that_does_not_answer)
{
        struct error err;

        ck_assert_int_eq(send_request(&(struct s3_request){ .wanted = { 1, 2 } }, WHOLE("5", "abcde"),
                                      WHOLE("5", "abcde"), &err),
                         ST_OS);
        ck_assert_int_eq(err.os_errno, EOPNOTSUPP);
        ck_assert_ptr_nonnull(strstr(err.text, "answers a range of an object with the whole object"));
}
END_TEST

#define REFUSAL(status, code, message)                                                                                 \
        "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n<Error><Code>" code "</Code><Message>" message                \
        "</Message></Error>"

START_TEST(refusals_say_what_to_do)
{
        static const struct {
                const char *answer;
                enum status status;
                const char *text;
        } cases[] = {
                { REFUSAL("403 Forbidden", "QuotaExceeded", "No"), ST_OS, "bucket 'bucket' is full: " },
                { REFUSAL("507 Insufficient Storage", "XMinioStorageFull", "No"), ST_OS,
                  "raise its quota or make room there" },
                { REFUSAL("400 Bad Request", "XMinioAdminBucketQuotaExceeded", "No"), ST_OS,
                  "bucket 'bucket' is full: " },
                { REFUSAL("403 Forbidden", "AccessDenied", "No"), ST_USAGE, "no right to GET key in bucket 'bucket'" },
                { REFUSAL("400 Bad Request", "InvalidArgument", "No such storage class"), ST_OS,
                  "answers GET key with HTTP 400, InvalidArgument: No such storage class" },
        };
        struct error err;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                ck_assert_int_eq(send_request(&(struct s3_request){ 0 }, cases[i].answer, cases[i].answer, &err),
                                 cases[i].status);
                ck_assert_uint_eq(requests, 1);
                ck_assert_msg(strstr(err.text, cases[i].text), "%s", err.text);
        }
}
END_TEST

START_TEST(a_bucket_that_demands_a_checksum_gets_one_from_then_on)
{
        static const char demand[] = REFUSAL("400 Bad Request", "InvalidRequest",
                                             "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object "
                                             "requests with Object Lock parameters");
        static const char taken_it[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        const struct s3_request q = { .method = "PUT", .key = "key", .body = "message digest", .body_size = 14 };
        struct s3_response response = { 0 };
        struct error err;

        answers[0] = demand;
        answers[1] = taken_it;
        requests = 0;
        for (unsigned sent = 2; sent <= 3; sent++) {
                check_ok(s3_send(client, &q, &response, &err), &err);
                ck_assert_uint_eq(requests, sent);
                /* RFC 1321, A.5, as base64 */
                ck_assert_ptr_nonnull(strstr(last_request, "\r\ncontent-md5: +WtpfXy3k41SWi8xqvFh0A==\r\n"));
                s3_response_deinit(&response);
        }
}
END_TEST

START_TEST(a_file_that_became_shorter_is_not_put)
{
        const int fd = memfd_create("short", MFD_CLOEXEC);
        const struct s3_request q = { .method = "PUT", .key = "key", .fd = fd, .range = { 0, 10 } };
        struct s3_response response = { 0 };
        struct error err;

        ck_assert_int_eq(write(fd, "short", 5), 5);
        requests = 0;
        ck_assert_int_eq(s3_send(client, &q, &response, &err), ST_OS);
        ck_assert_int_eq(err.os_errno, EIO);
        ck_assert_uint_eq(requests, 0);
        s3_response_deinit(&response);
        close(fd);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("whole answers of S3", another_range_than_was_asked_for_is_asked_for_again,
                        the_end_of_an_object_is_its_end, a_range_is_no_whole_object,
                        a_list_that_was_cut_is_asked_for_again, a_store_whose_answers_stay_short_does_not_answer,
                        a_store_without_ranges_is_told_from_one_that_does_not_answer, refusals_say_what_to_do,
                        a_bucket_that_demands_a_checksum_gets_one_from_then_on, a_file_that_became_shorter_is_not_put)
