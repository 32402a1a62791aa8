/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The re-symbolization thread with a test implementation of re-symbolization that fails for one object: the others are
 * processed in the same round, and the failed one is retried later on its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "pipeline/resymbolizer.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define OBJECTS 9
#define BAD 6

static char dir[TEMPORARY_DIR_BYTES];
static char *queue;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_resymbolized[OBJECTS];
static unsigned bad_alone; /* calls with only the failing object */
static bool bad_works;

static struct build_id object_id(unsigned number)
{
        struct build_id id = { .size = 20 };

        id.bytes[0] = 0xab;
        id.bytes[19] = (uint8_t)number;
        return id;
}

/* Replaces the store's function. */
enum status profile_store_resymbolize(struct profile_store *s, const struct resymbolize_request *request,
                                      struct resymbolize_result *ret, struct error *err)
{
        const struct build_id *ids = request->ids;
        size_t count = request->count;
        bool has_bad = false, fails;

        (void)s, (void)ret;
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < count; i++)
                has_bad |= ids[i].bytes[19] == BAD;
        bad_alone += has_bad && count == 1;
        fails = has_bad && !bad_works;
        for (size_t i = 0; i < count && !fails; i++)
                is_resymbolized[ids[i].bytes[19]] = true;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        return fails ? error_no_memory(err) : ST_OK;
}

static bool are_others_resymbolized(void)
{
        for (unsigned i = 0; i < OBJECTS; i++)
                if (i != BAD && !is_resymbolized[i])
                        return false;
        return true;
}

static void change_object(struct resymbolizer *h, unsigned number)
{
        const struct build_id id = object_id(number);
        struct error err;

        ck_assert_int_eq(resymbolizer_expect_change(h, &id, &err), ST_OK);
        resymbolizer_end_change(h, &id, true);
}

static bool write_symbols(unsigned number)
{
        const struct build_id id = object_id(number);
        char hex[BUILD_ID_HEX_MAX];
        _cleanup_buf_ struct buf text;

        buf_init(&text, MiB(1));
        ck_assert_int_eq(file_read(queue, &text, NULL), ST_OK);
        buf_append_u8(&text, 0);
        return strstr((const char *)text.data, build_id_hex(&id, hex));
}

START_TEST(failed_object_does_not_stop_others)
{
        struct profile_store *const stores[] = { NULL };
        struct resymbolizer *h;
        struct error err;

        temporary_dir_create(dir, "resymbolizer");
        queue = path_join(dir, "queue");
        ck_assert_int_eq(resymbolizer_start(stores, 1, NULL, queue, &h, &err), ST_OK);
        for (unsigned i = 0; i < OBJECTS; i++)
                change_object(h, i);
        pthread_mutex_lock(&lock);
        while (!are_others_resymbolized() || !bad_alone)
                pthread_cond_wait(&changed, &lock);
        ck_assert(!is_resymbolized[BAD]);
        pthread_mutex_unlock(&lock);

        resymbolizer_stop(h); /* only the failed one is remembered */
        ck_assert(write_symbols(BAD));
        ck_assert(!write_symbols(BAD - 1));
        ck_assert(!write_symbols(0));

        bad_alone = 0;
        ck_assert_int_eq(resymbolizer_start(stores, 1, NULL, queue, &h, &err), ST_OK);
        pthread_mutex_lock(&lock);
        while (bad_alone < 2) /* once at the start, and again automatically after a pause */
                pthread_cond_wait(&changed, &lock);
        bad_works = true;
        pthread_mutex_unlock(&lock);
        change_object(h, BAD); /* new symbols end the wait */
        pthread_mutex_lock(&lock);
        while (!is_resymbolized[BAD])
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        resymbolizer_stop(h);
        ck_assert(!write_symbols(BAD));
        free(queue);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("resymbolizer", failed_object_does_not_stop_others)
