/* SPDX-License-Identifier: Apache-2.0 */
/* When the keys of an object store are looked for again. Their sources are in tests/e2e/store/object-storage-keys.t. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/s3/s3_credentials.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES], file[64];
static struct s3_credential_source *source;

static void write_credentials(const char *text)
{
        FILE *f = fopen(file, "w");

        ck_assert_ptr_nonnull(f);
        fputs(text, f);
        ck_assert_int_eq(fclose(f), 0);
}

static void write_keys(const char *access_key)
{
        char text[128];

        snprintf(text, sizeof text, "[default]\naws_access_key_id = %s\naws_secret_access_key = secret\n", access_key);
        write_credentials(text);
}

static void set_up(void)
{
        static const char *const others[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                              "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE" };
        struct error err;

        temporary_dir_create(dir, "s3-keys");
        snprintf(file, sizeof file, "%s/credentials", dir);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
                unsetenv(others[i]);
        ck_assert_int_eq(setenv("AWS_SHARED_CREDENTIALS_FILE", file, 1), 0);
        check_ok(s3_credential_source_create("us-east-1", &source, &err), &err);
}

static void tear_down(void)
{
        s3_credential_source_destroy(source);
        temporary_dir_remove(dir);
}

/* Require the keys that the source gives now. */
static uint64_t require_keys(const char *access_key)
{
        _cleanup_s3_credentials_ struct s3_credentials c = { 0 };
        struct error err;

        check_ok(s3_get_credentials(source, &c, &err), &err);
        ck_assert_str_eq(c.access_key, access_key);
        return c.number;
}

START_TEST(keys_that_are_not_accepted_are_read_again)
{
        uint64_t first, second;

        write_keys("first");
        first = require_keys("first");
        write_keys("second");
        ck_assert_uint_eq(require_keys("first"), first);
        ck_assert(s3_doubt_credentials(source, first));
        second = require_keys("second");
        ck_assert_uint_gt(second, first);
        ck_assert_uint_eq(require_keys("second"), second);
}
END_TEST

/* Requests that were sent with the old keys are sent again with the new ones, which stay. */
START_TEST(a_late_refusal_of_old_keys_does_not_concern_the_new_ones)
{
        uint64_t first;

        write_keys("first");
        first = require_keys("first");
        write_keys("second");
        ck_assert(s3_doubt_credentials(source, first));
        ck_assert(s3_doubt_credentials(source, first));
        require_keys("second");
        write_keys("third");
        ck_assert(s3_doubt_credentials(source, first));
        require_keys("second");
}
END_TEST

START_TEST(keys_stay_in_use_while_their_source_has_none)
{
        write_keys("first");
        ck_assert(s3_doubt_credentials(source, require_keys("first")));
        ck_assert_int_eq(remove(file), 0);
        require_keys("first");
}
END_TEST

START_TEST(keys_of_a_file_that_is_back_are_read_after_the_next_refusal)
{
        write_keys("first");
        ck_assert(s3_doubt_credentials(source, require_keys("first")));
        ck_assert_int_eq(remove(file), 0);
        for (int i = 0; i < 3; i++)
                ck_assert(s3_doubt_credentials(source, require_keys("first")));
        write_keys("second");
        require_keys("second");
}
END_TEST

/* Gives the keys "container" to whoever asks. */
static void *serve_container_keys(void *context)
{
        static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 102\r\nConnection: close\r\n\r\n"
                                     "{\"AccessKeyId\":\"container\",\"SecretAccessKey\":\"secret\",\"Token\":\"t\","
                                     "\"Expiration\":\"2099-01-01T00:00:00Z\"}";
        char request[2048];

        for (;;) {
                int fd = accept(*(int *)context, NULL, NULL);

                if (fd < 0 || read(fd, request, sizeof request) < 0 || write(fd, answer, sizeof answer - 1) < 0)
                        return NULL;
                close(fd);
        }
}

/* The program that writes the keys may have emptied the file just now; the other keys may have other rights. */
START_TEST(keys_of_another_source_do_not_replace_valid_ones)
{
        static const char *const torn[] = { "", "[default]\n", "[default]\naws_access_key_id = second\n" };
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof address;
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct s3_credential_source *other;
        char url[64];
        pthread_t server;
        struct error err;

        ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
        ck_assert_int_eq(listen(listener, 8), 0);
        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &n), 0);
        snprintf(url, sizeof url, "http://127.0.0.1:%u/", ntohs(address.sin_port));
        ck_assert_int_eq(setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1), 0);
        ck_assert_int_eq(pthread_create(&server, NULL, serve_container_keys, &listener), 0);
        for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
                write_keys("first");
                check_ok(s3_credential_source_create("us-east-1", &other, &err), &err);
                s3_credential_source_destroy(source);
                source = other;
                ck_assert(s3_doubt_credentials(source, require_keys("first")));
                write_credentials(torn[i]);
                require_keys("first");
        }
        check_ok(s3_credential_source_create("us-east-1", &other, &err), &err);
        s3_credential_source_destroy(source);
        source = other;
        require_keys("container"); /* without keys, the next source is asked */
        shutdown(listener, SHUT_RDWR);
        ck_assert_int_eq(pthread_join(server, NULL), 0);
        close(listener);
}
END_TEST

static void *require_second_keys(void *unused)
{
        (void)unused;
        require_keys("second");
        return NULL;
}

START_TEST(all_threads_wait_for_keys_that_replace_refused_ones)
{
        static const char keys[] = "[default]\naws_access_key_id = second\naws_secret_access_key = secret\n";
        pthread_t threads[2];
        int fd;

        write_keys("first");
        ck_assert(s3_doubt_credentials(source, require_keys("first")));
        ck_assert_int_eq(remove(file), 0);
        ck_assert_int_eq(mkfifo(file, 0600), 0);
        ck_assert_int_eq(pthread_create(&threads[0], NULL, require_second_keys, NULL), 0);
        fd = open(file, O_WRONLY | O_CLOEXEC); /* returns once that thread reads */
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pthread_create(&threads[1], NULL, require_second_keys, NULL), 0);
        ck_assert_int_eq(write(fd, keys, sizeof keys - 1), sizeof keys - 1);
        close(fd);
        for (int i = 0; i < 2; i++)
                ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("s3_credentials", keys_that_are_not_accepted_are_read_again,
                        a_late_refusal_of_old_keys_does_not_concern_the_new_ones,
                        keys_stay_in_use_while_their_source_has_none,
                        keys_of_a_file_that_is_back_are_read_after_the_next_refusal,
                        keys_of_another_source_do_not_replace_valid_ones,
                        all_threads_wait_for_keys_that_replace_refused_ones)
