/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of batches in the log: of commits, and of those before a checkpoint. */
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/delta/delta_log.h"
#include "tests/support/disk_storage.h"
#include "tests/support/suite.h"

static const struct parquet_field one_column[] = { { .name = "n", .kind = PARQUET_INT64, .optional = true } };

#define OK(call)                                                                                                       \
        do {                                                                                                           \
                struct error err = { 0 };                                                                              \
                ck_assert_msg(!(call), "%s", err.text);                                                                \
        } while (0)

static char root[64];

static void set_up(void)
{
        snprintf(root, sizeof root, "/tmp/delta-ids-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(root));
        OK(delta_table_create(disk_storage(), root + 1, one_column, 1, NULL, 0, NULL, &err));
}

static void tear_down(void)
{
        OK(file_remove_tree(root, &err));
}

static struct delta_table *open_table(void)
{
        struct delta_table *t = NULL;

        OK(delta_table_open(disk_storage(), root + 1, &t, &err));
        return t;
}

static struct hash128 make_id(unsigned i)
{
        struct hash128 id = { .bytes = { 0xab, (uint8_t)(i >> 8), (uint8_t)i, 0xff } };

        return id;
}

/* Two ids a commit, 2i and 2i + 1, with a file so that a checkpoint becomes due. */
static enum status commit_ids(struct delta_table *t, unsigned i, struct error *err)
{
        const struct hash128 ids[] = { make_id(2 * i), make_id(2 * i + 1) };
        char path[32];
        struct delta_add add = { .path = path, .size = 10 };
        struct delta_commit c = {
                .size = sizeof c, .adds = &add, .add_count = 1, .batch_ids = ids, .batch_id_count = 2
        };

        snprintf(path, sizeof path, "%u.parquet", i);
        return delta_commit(t, &c, err);
}

static bool has_id(const struct hash128 *ids, size_t count, unsigned i)
{
        struct hash128 id = make_id(i);

        for (size_t k = 0; k < count; k++) {
                if (!memcmp(&ids[k], &id, sizeof id))
                        return true;
        }
        return false;
}

/* Take the ids, and require exactly [first, end). */
static void require_ids(struct delta_table *t, unsigned first, unsigned end)
{
        struct hash128 *ids = NULL;
        size_t count = 0;

        OK(delta_table_take_batch_ids(t, &ids, &count, &err));
        ck_assert_uint_eq(count, end - first);
        for (unsigned i = first; i < end; i++)
                ck_assert_msg(has_id(ids, count, i), "id %u", i);
        free(ids);
}

START_TEST(ids_are_taken_once_by_every_reader)
{
        struct delta_table *a = open_table(), *b = open_table();

        OK(commit_ids(a, 0, &err));
        require_ids(a, 0, 2);
        require_ids(a, 0, 0);
        OK(delta_table_refresh(b, &err));
        require_ids(b, 0, 2);
        OK(commit_ids(b, 1, &err));
        OK(delta_table_refresh(a, &err));
        require_ids(a, 2, 4);
        delta_table_close(a);
        delta_table_close(b);
}
END_TEST

START_TEST(ids_before_a_checkpoint_are_in_an_object)
{
        struct delta_table *a = open_table(), *b;

        for (unsigned i = 0; i < DELTA_CHECKPOINT_INTERVAL + 5; i++)
                OK(commit_ids(a, i, &err));
        b = open_table();
        require_ids(b, 0, 2 * (DELTA_CHECKPOINT_INTERVAL + 5));
        delta_table_close(b);
        delta_table_close(a);
}
END_TEST

/* Two writers whose checkpoints become due at the same time: no commit's ids are between their objects. */
START_TEST(checkpoints_of_two_writers_leave_no_gap)
{
        struct delta_table *writers[] = { open_table(), open_table() }, *late;
        const unsigned count = 5 * DELTA_CHECKPOINT_INTERVAL / 2;
        struct hash128 *ids = NULL;
        size_t id_count = 0;

        for (unsigned i = 0; i < count; i++) {
                struct delta_table *w = writers[i / 7 % 2];

                OK(delta_table_refresh(w, &err));
                OK(commit_ids(w, i, &err));
        }
        late = open_table();
        OK(delta_table_take_batch_ids(late, &ids, &id_count, &err));
        for (unsigned i = 0; i < 2 * count; i++)
                ck_assert_msg(has_id(ids, id_count, i), "id %u", i);
        free(ids);
        delta_table_close(late);
        delta_table_close(writers[0]);
        delta_table_close(writers[1]);
}
END_TEST

START_TEST(damaged_object_is_named)
{
        struct delta_table *a = open_table(), *b;
        _cleanup_free_ char *path = NULL;
        struct hash128 *ids = NULL;
        struct error why = { 0 };
        size_t count = 0;

        for (unsigned i = 0; i < DELTA_CHECKPOINT_INTERVAL; i++)
                OK(commit_ids(a, i, &err));
        delta_table_close(a);
        ck_assert_int_gt(asprintf(&path, "%s/_batch_ids/%020d.ids", root, DELTA_CHECKPOINT_INTERVAL), 0);
        OK(file_write_durable(path, "not ids", 7, &err));
        b = open_table();
        ck_assert_int_eq(delta_table_take_batch_ids(b, &ids, &count, &why), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(why.text, "_batch_ids/"));
        ck_assert_ptr_null(ids);
        delta_table_close(b);
}
END_TEST

START_TEST(commit_after_another_version_is_busy)
{
        struct delta_table *a = open_table(), *b = open_table();
        struct delta_add add = { .path = "x.parquet", .size = 10 };
        struct delta_commit c = { .size = sizeof c, .adds = &add, .add_count = 1, .is_exact = true };

        OK(commit_ids(a, 0, &err));
        ck_assert_int_eq(delta_commit(b, &c, NULL), ST_BUSY); /* by the log */
        OK(delta_table_refresh(b, &err));
        ck_assert_int_eq(delta_commit(b, &c, NULL), ST_BUSY); /* by its version */
        c.after_version = 1;
        OK(delta_commit(b, &c, &err));
        delta_table_close(a);
        delta_table_close(b);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("delta_batch_ids", ids_are_taken_once_by_every_reader, ids_before_a_checkpoint_are_in_an_object,
                        checkpoints_of_two_writers_leave_no_gap, damaged_object_is_named,
                        commit_after_another_version_is_busy)
