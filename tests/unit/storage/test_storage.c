/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of storage.h, on local files. */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <utime.h>

#include "storage/local_storage.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define WRITERS 8

static char dir[TEMPORARY_DIR_BYTES];
static struct storage *storage;

static void set_up(void)
{
        struct error err;

        temporary_dir_create(dir, "storage");
        ck_assert_int_eq(local_storage_open(dir, &storage, &err), ST_OK);
}

static void tear_down(void)
{
        storage_close(storage);
        temporary_dir_remove(dir);
}

static enum status put_text(const char *key, const char *text, enum storage_mode mode)
{
        enum status st = storage_make_folder(storage, key, NULL);

        return st ? st : storage_put(storage, key, text, strlen(text), mode, NULL);
}

static void check_text(const char *key, const char *wanted)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, 100);
        ck_assert_int_eq(storage_read(storage, key, &text, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&text), wanted);
}

static bool is_path_there(const char *key)
{
        _cleanup_free_ char *path = storage_make_name(storage, key);

        return access(path, F_OK) == 0;
}

START_TEST(object_is_replaced_or_stays)
{
        struct storage_info before, after;

        ck_assert_int_eq(put_text("a/b", "one", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(storage_stat(storage, "a/b", &before, NULL), ST_OK);
        ck_assert_int_eq(put_text("a/b", "two", STORAGE_NEW), ST_BUSY);
        check_text("a/b", "one");
        ck_assert_int_eq(put_text("a/b", "two", STORAGE_REPLACE), ST_OK);
        check_text("a/b", "two");
        ck_assert_int_eq(storage_stat(storage, "a/b", &after, NULL), ST_OK);
        ck_assert_uint_eq(after.size, 3);
        ck_assert_str_ne(before.etag, after.etag);
}
END_TEST

struct race {
        pthread_barrier_t *start;
        char text[8];
        enum status st;
};

static void *put_new_object(void *context)
{
        struct race *r = context;

        pthread_barrier_wait(r->start);
        r->st = storage_put(storage, "log/7", r->text, strlen(r->text), STORAGE_NEW, NULL);
        return NULL;
}

START_TEST(one_of_racing_writers_creates_an_object)
{
        struct race races[WRITERS];
        pthread_t threads[WRITERS];
        pthread_barrier_t start;
        unsigned won = 0, winner = 0;

        ck_assert_int_eq(storage_make_folder(storage, "log/7", NULL), ST_OK);
        pthread_barrier_init(&start, NULL, WRITERS);
        for (unsigned i = 0; i < WRITERS; i++) {
                races[i] = (struct race){ .start = &start };
                snprintf(races[i].text, sizeof races[i].text, "%u", i);
                ck_assert_int_eq(pthread_create(&threads[i], NULL, put_new_object, &races[i]), 0);
        }
        for (unsigned i = 0; i < WRITERS; i++) {
                pthread_join(threads[i], NULL);
                ck_assert(races[i].st == ST_OK || races[i].st == ST_BUSY);
                won += races[i].st == ST_OK;
                winner = races[i].st == ST_OK ? i : winner;
        }
        pthread_barrier_destroy(&start);
        ck_assert_uint_eq(won, 1);
        check_text("log/7", races[winner].text);
}
END_TEST

static enum status append_listed_key(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        (void)err;
        buf_printf(context, "%s:%u ", key, (unsigned)info->size);
        return ST_OK;
}

static void check_list(const char *folder, const char *after, const char *wanted)
{
        _cleanup_buf_ struct buf keys;

        buf_init(&keys, 1000);
        ck_assert_int_eq(storage_list(storage, folder, after, append_listed_key, &keys, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&keys), wanted);
}

START_TEST(keys_are_listed_in_byte_order)
{
        struct storage_upload u;

        check_list("", "", "");
        check_list("absent/", "", "");
        ck_assert_int_eq(put_text("a/b", "1", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(put_text("a.x", "22", STORAGE_NEW), ST_OK); /* before "a/", although the folder is "a" */
        ck_assert_int_eq(put_text("a/b.c/d", "333", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(put_text("b", "", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(storage_begin(storage, "a/unpublished", &u, NULL), ST_OK);
        check_list("", "", "a.x:2 a/b:1 a/b.c/d:3 b:0 ");
        check_list("a/", "", "a/b:1 a/b.c/d:3 ");
        check_list("a/", "a/b", "a/b.c/d:3 ");
        storage_discard(&u);
}
END_TEST

START_TEST(folder_is_removed_with_its_last_object)
{
        ck_assert_int_eq(put_text("t/day/x", "1", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(put_text("t/day/y", "1", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(storage_remove(storage, "t/day/x", NULL), ST_OK);
        ck_assert_int_eq(storage_remove(storage, "t/day/x", NULL), ST_NOT_FOUND);
        ck_assert(is_path_there("t/day"));
        ck_assert_int_eq(storage_remove(storage, "t/day/y", NULL), ST_OK);
        ck_assert(!is_path_there("t/day"));
        ck_assert(is_path_there("t"));
        ck_assert_int_eq(storage_put(storage, "t/day/z", "1", 1, STORAGE_NEW, NULL), ST_OS); /* no folder */
}
END_TEST

START_TEST(interrupted_uploads_are_removed_when_old)
{
        const struct utimbuf old = { 1000000, 1000000 };
        struct storage_upload u, young;
        uint64_t count = 0;

        ck_assert_int_eq(put_text("t/x", "1", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(storage_begin(storage, "t/y", &u, NULL), ST_OK);
        ck_assert_int_eq(storage_begin(storage, "t/z", &young, NULL), ST_OK);
        ck_assert_int_eq(utime(u.tmp, &old), 0);
        ck_assert_int_eq(storage_remove_unfinished(storage, "t/", 1000000000 + 1, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_ne(access(u.tmp, F_OK), 0);
        ck_assert_int_eq(access(young.tmp, F_OK), 0);
        storage_discard(&u);
        storage_discard(&young);
        check_text("t/x", "1");
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
        _cleanup_free_ char *link_path = storage_make_name(storage, "link"), *folder = storage_make_name(storage, "d");
        struct storage_info info;
        int fd;

        ck_assert_int_eq(put_text("x", "1", STORAGE_NEW), ST_OK);
        ck_assert_int_eq(symlink("x", link_path), 0);
        ck_assert_int_eq(mkdir(folder, 0755), 0);
        ck_assert_int_ne(storage_open(storage, "link", &fd, &info, NULL), ST_OK);
        ck_assert_int_ne(storage_open(storage, "d", &fd, &info, NULL), ST_OK);
        ck_assert_int_eq(storage_open(storage, "absent", &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(storage_open(storage, "x", &fd, &info, NULL), ST_OK);
        ck_assert_uint_eq(info.size, 1);
        close(fd);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("storage", object_is_replaced_or_stays, one_of_racing_writers_creates_an_object,
                        keys_are_listed_in_byte_order, folder_is_removed_with_its_last_object,
                        interrupted_uploads_are_removed_when_old, only_regular_files_are_opened)
