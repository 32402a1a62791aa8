/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of files extracted from archives. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "package-trees/extracted_cache.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];

static void set_up(void)
{
        temporary_dir_create(dir, "scan-cache");
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

struct maker {
        size_t bytes;
        enum status st;
        atomic_uint calls;
        atomic_bool may_go_on;
};

static enum status make(void *context, int out, const atomic_bool *cancel, struct error *err)
{
        struct maker *m = context;
        char text[100];

        (void)cancel;
        atomic_fetch_add(&m->calls, 1);
        while (!atomic_load(&m->may_go_on))
                usleep(1000);
        memset(text, 'x', sizeof text);
        if (m->st)
                return error_set(err, m->st, "it was asked to fail");
        return file_write_all(out, text, m->bytes, "made", err);
}

static struct extracted_cache *open_cache(uint64_t max_bytes)
{
        _cleanup_free_ char *path = path_join(dir, "cache");
        struct extracted_cache *c;

        ck_assert_int_eq(extracted_cache_open(path, max_bytes, &c, NULL), ST_OK);
        return c;
}

static void get(struct extracted_cache *c, const char *key, struct maker *m, enum status want)
{
        struct error err;
        char text[101];
        int fd = -1;

        ck_assert_int_eq(extracted_cache_get(c, key, make, m, NULL, &fd, &err), want);
        if (want)
                return;
        ck_assert_int_eq(pread(fd, text, sizeof text, 0), (ssize_t)m->bytes);
        close(fd);
}

struct asker {
        struct extracted_cache *cache;
        struct maker *maker;
        enum status want;
};

static void *request_file(void *arg)
{
        struct asker *a = arg;

        get(a->cache, "one", a->maker, a->want);
        return NULL;
}

static void request_from_many_threads(struct extracted_cache *c, struct maker *m, enum status want)
{
        struct asker a = { c, m, want };
        pthread_t threads[8];

        for (size_t i = 0; i < 8; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, request_file, &a), 0);
        while (atomic_load(&m->calls) == 0)
                usleep(1000);
        usleep(50000); /* the others are now waiting, or find the result: both are correct */
        atomic_store(&m->may_go_on, true);
        for (size_t i = 0; i < 8; i++)
                pthread_join(threads[i], NULL);
}

START_TEST(concurrently_requested_file_is_extracted_once)
{
        struct extracted_cache *c = open_cache(1000);
        struct maker m = { .bytes = 100 };

        request_from_many_threads(c, &m, ST_OK);
        ck_assert_uint_eq(atomic_load(&m.calls), 1);
        extracted_cache_close(c);
}
END_TEST

START_TEST(waiting_requests_get_the_error)
{
        struct extracted_cache *c = open_cache(1000);
        struct maker m = { .st = ST_BAD_DATA };
        int fd;

        request_from_many_threads(c, &m, ST_BAD_DATA);
        ck_assert_int_eq(extracted_cache_open_ready(c, "one", &fd), ST_NOT_FOUND);
        m.st = ST_OK;
        m.bytes = 10;
        get(c, "one", &m, ST_OK); /* a failure is not remembered */
        extracted_cache_close(c);
}
END_TEST

START_TEST(most_recently_used_files_are_kept)
{
        struct extracted_cache *c = open_cache(250);
        struct maker m = { .bytes = 100, .may_go_on = true };
        int fd;

        get(c, "a", &m, ST_OK);
        get(c, "b", &m, ST_OK);
        ck_assert_int_eq(extracted_cache_open_ready(c, "a", &fd), ST_OK);
        get(c, "c", &m, ST_OK);
        ck_assert_int_eq(extracted_cache_open_ready(c, "b", &(int){ -1 }), ST_NOT_FOUND);
        ck_assert_int_eq(pread(fd, (char[1]){ 0 }, 1, 0), 1);
        close(fd);
        ck_assert_int_eq(extracted_cache_open_ready(c, "a", &fd), ST_OK);
        close(fd);
        ck_assert_uint_eq(atomic_load(&m.calls), 3);
        extracted_cache_close(c);
}
END_TEST

START_TEST(file_larger_than_cache_is_returned_and_evicts_nothing)
{
        struct extracted_cache *c = open_cache(99);
        struct maker small = { .bytes = 50, .may_go_on = true }, large = { .bytes = 100, .may_go_on = true };
        int fd;

        get(c, "small", &small, ST_OK);
        get(c, "large", &large, ST_OK);
        ck_assert_int_eq(extracted_cache_open_ready(c, "large", &fd), ST_NOT_FOUND);
        ck_assert_int_eq(extracted_cache_open_ready(c, "small", &fd), ST_OK);
        close(fd);
        get(c, "large", &large, ST_OK);
        ck_assert_uint_eq(atomic_load(&large.calls), 2);
        extracted_cache_close(c);
}
END_TEST

/* Leave no free descriptors for a moment. */
static void find_without_descriptors(struct extracted_cache *c, const char *key)
{
        struct rlimit before, none;
        int fd = dup(STDOUT_FILENO); /* the lowest free one */

        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
        close(fd);
        none = (struct rlimit){ (rlim_t)fd, before.rlim_max };
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        ck_assert_int_eq(extracted_cache_open_ready(c, key, &fd), ST_OS);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}

START_TEST(temporarily_unopenable_file_is_not_extracted_again)
{
        struct extracted_cache *c = open_cache(1000);
        struct maker m = { .bytes = 100, .may_go_on = true };

        get(c, "one", &m, ST_OK);
        find_without_descriptors(c, "one");
        get(c, "one", &m, ST_OK);
        ck_assert_uint_eq(atomic_load(&m.calls), 1);
        extracted_cache_close(c);
}
END_TEST

START_TEST(open_file_is_unchanged_when_its_name_is_reused)
{
        struct extracted_cache *c = open_cache(1000);
        _cleanup_free_ char *path = path_join(dir, "cache/one");
        struct maker m = { .bytes = 100, .may_go_on = true };
        char text[4];
        int fd;

        ck_assert_int_eq(file_write_durable(path, "old", 3, NULL), ST_OK);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        get(c, "one", &m, ST_OK);
        ck_assert_int_eq(pread(fd, text, sizeof text, 0), 3);
        ck_assert_int_eq(memcmp(text, "old", 3), 0);
        close(fd);
        extracted_cache_close(c);
}
END_TEST

START_TEST(removed_file_is_extracted_again)
{
        struct extracted_cache *c = open_cache(1000);
        _cleanup_free_ char *path = path_join(dir, "cache/one");
        struct maker m = { .bytes = 100, .may_go_on = true };

        get(c, "one", &m, ST_OK);
        ck_assert_int_eq(unlink(path), 0);
        get(c, "one", &m, ST_OK);
        ck_assert_uint_eq(atomic_load(&m.calls), 2);
        extracted_cache_close(c);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("scan cache", concurrently_requested_file_is_extracted_once, waiting_requests_get_the_error,
                        most_recently_used_files_are_kept, file_larger_than_cache_is_returned_and_evicts_nothing,
                        temporarily_unopenable_file_is_not_extracted_again,
                        open_file_is_unchanged_when_its_name_is_reused, removed_file_is_extracted_again)
