/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a table's log with each allocation failing in turn: reading must return an error or the complete table. */
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "parquet/schema.h"
#include "profile-store/delta/delta_replay.h"
#include "tests/support/disk_storage.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define FILES 12

/* ---- allocations that fail ---- */

static long allocations_left = -1; /* number of allocations until one fails; negative: none */

/* Defined by the C library, or by a sanitizer. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
__attribute__((weak)) void *__interceptor_malloc(size_t size);
__attribute__((weak)) void *__interceptor_calloc(size_t count, size_t size);
__attribute__((weak)) void *__interceptor_realloc(void *p, size_t size);

static bool must_fail_now(void)
{
        return allocations_left >= 0 && allocations_left-- == 0;
}

void *malloc(size_t size)
{
        if (must_fail_now())
                return NULL;
        return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
        if (must_fail_now())
                return NULL;
        return __interceptor_calloc ? __interceptor_calloc(count, size) : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
        if (must_fail_now())
                return NULL;
        return __interceptor_realloc ? __interceptor_realloc(p, size) : __libc_realloc(p, size);
}

/* ---- a table ---- */

static const struct parquet_field fields[] = { { .name = "date", .kind = PARQUET_DATE, .optional = true },
                                               { .name = "n", .kind = PARQUET_INT64, .optional = true } };

#define OK(call)                                                                                                       \
        do {                                                                                                           \
                struct error err = { 0 };                                                                              \
                ck_assert_msg(!(call), "%s", err.text);                                                                \
        } while (0)

static char dir[TEMPORARY_DIR_BYTES];
static struct delta_place place;

/* Its checkpoint contains live and removed files, metaData with properties, and an application transaction. */
static void begin_with_checkpoint(void)
{
        static const char *const date[] = { "date" };
        const struct delta_retention retention = { 3600, 3600 };
        struct delta_table *t = NULL;

        temporary_dir_create(dir, "delta-memory");
        OK(delta_place_init(&place, disk_storage(), dir + 1, &err));
        OK(delta_table_create(disk_storage(), dir + 1, fields, 2, date, 1, &retention, &err));
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        for (int i = 0; i < FILES; i++) {
                char path[64], before[64];
                const struct delta_partition day = { .key = "date", .value = "2024-10-04" };
                const struct delta_add add = { .path = path,
                                               .size = 10,
                                               .stats = "{\"numRecords\":3}",
                                               .partitions = &day,
                                               .partition_count = 1 };
                const char *const removes[] = { before };
                const struct delta_commit c = { .size = sizeof c,
                                                .adds = &add,
                                                .add_count = 1,
                                                .removes = removes,
                                                .remove_count = i % 3 == 2,
                                                .app_id = "application",
                                                .txn_version = i + 1 };

                snprintf(path, sizeof path, "date=2024-10-04/%d.parquet", i);
                snprintf(before, sizeof before, "date=2024-10-04/%d.parquet", i - 1);
                OK(delta_commit(t, &c, &err));
        }
        OK(delta_checkpoint(t, &err));
        delta_table_close(t);
}

static void tear_down(void)
{
        OK(file_remove_tree(dir, &err));
        delta_place_deinit(&place);
}

START_TEST(a_checkpoint_is_read_as_a_whole_or_not_at_all)
{
        struct delta_state whole;
        bool done = false;

        begin_with_checkpoint();
        delta_state_init(&whole);
        OK(delta_replay_checkpoint(&place, FILES, &whole, &err));
        ck_assert_uint_eq(whole.live.count, FILES - FILES / 3);
        for (long i = 0; !done; i++) {
                struct delta_state read;
                struct error err = { 0 };
                enum status st;

                delta_state_init(&read);
                allocations_left = i;
                st = delta_replay_checkpoint(&place, FILES, &read, &err);
                done = allocations_left >= 0;
                allocations_left = -1;
                ck_assert_msg(st == ST_OK || st == ST_NO_MEMORY, "allocation %ld: %s", i, err.text);
                ck_assert_msg(st || delta_state_matches(&read, &whole), "allocation %ld: something is lost", i);
                ck_assert(!done || !st);
                delta_state_deinit(&read);
        }
        delta_state_deinit(&whole);
        tear_down();
}
END_TEST

TEST_SUITE("delta memory", a_checkpoint_is_read_as_a_whole_or_not_at_all)
