/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/files/lmdb_check.h"
#include "common/files/lmdb_env.h"
#include "common/limits.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define PAGE 4096

static char dir[TEMPORARY_DIR_BYTES], path[80];
static uint32_t seed = 1;

static uint32_t next_random(void)
{
        seed = seed * 1664525 + 1013904223;
        return seed >> 8;
}

static void set_up(void)
{
        temporary_dir_create(dir, "lmdb-check");
        snprintf(path, sizeof path, "%s/data.mdb", dir);
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

static MDB_env *open_database(void)
{
        MDB_env *env;

        ck_assert_int_eq(mdb_env_create(&env), 0);
        ck_assert_int_eq(mdb_env_set_mapsize(env, MiB(64)), 0);
        ck_assert_int_eq(mdb_env_set_maxdbs(env, 4), 0);
        ck_assert_int_eq(mdb_env_open(env, dir, MDB_NOTLS | MDB_NOSYNC, 0644), 0);
        return env;
}

/* One transaction of random changes in a tree with large values, one with duplicates and one with fixed duplicates. */
static void change_database(MDB_env *env)
{
        static uint8_t bytes[3 * PAGE];
        MDB_dbi plain, duplicates, fixed;
        MDB_txn *txn;

        ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
        ck_assert_int_eq(mdb_dbi_open(txn, "plain", MDB_CREATE, &plain), 0);
        ck_assert_int_eq(mdb_dbi_open(txn, "duplicates", MDB_CREATE | MDB_DUPSORT, &duplicates), 0);
        ck_assert_int_eq(mdb_dbi_open(txn, "fixed", MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED, &fixed), 0);
        for (unsigned i = 0; i < 300; i++) {
                uint32_t k = next_random() % 2000, few = k % 7, size = next_random() % (k % 9 ? 300 : sizeof bytes);
                MDB_val key = { sizeof k, &k }, few_key = { sizeof few, &few }, value = { size, bytes };
                uint32_t item = next_random();
                MDB_val fixed_value = { sizeof item, &item }, text = { 1 + item % 40, bytes };

                memcpy(bytes, &item, sizeof item);
                if (item % 3 == 0) {
                        int rc = mdb_del(txn, plain, &key, NULL);

                        ck_assert(rc == 0 || rc == MDB_NOTFOUND);
                        continue;
                }
                ck_assert_int_eq(mdb_put(txn, plain, &key, &value, 0), 0);
                ck_assert_int_eq(mdb_put(txn, fixed, &few_key, &fixed_value, 0), 0);
                ck_assert_int_eq(mdb_put(txn, duplicates, &few_key, &text, 0), 0);
        }
        ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

static void make_database(unsigned transactions)
{
        MDB_env *env = open_database();

        while (transactions--)
                change_database(env);
        mdb_env_close(env);
}

static void check_sound(void)
{
        struct error err = { .text = "" };

        ck_assert_msg(lmdb_check_env(dir, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(lmdb_check_snapshot(dir, &err) == ST_OK, "%s", err.text);
}

static void check_damaged(const char *what)
{
        struct error err = { .text = "" };

        ck_assert_int_eq(lmdb_check_env(dir, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, path) && strstr(err.text, what), "%s", err.text);
        ck_assert_int_eq(lmdb_check_snapshot(dir, &err), ST_BAD_DATA);
}

static void write_at(const void *bytes, size_t n, uint64_t offset)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)offset), (ssize_t)n);
}

static void read_at(void *bytes, size_t n, uint64_t offset)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        ck_assert_int_eq(pread(fd, bytes, n, (off_t)offset), (ssize_t)n);
}

/* The root of the main tree, as of the newest meta page. */
static uint64_t find_main_root(void)
{
        uint64_t txn[2], root[2];

        for (unsigned i = 0; i < 2; i++) {
                read_at(&txn[i], 8, i * PAGE + 16 + 24 + 2 * 48 + 8);
                read_at(&root[i], 8, i * PAGE + 16 + 24 + 48 + 40);
        }
        return txn[0] > txn[1] ? root[0] : root[1];
}

START_TEST(databases_with_any_history_are_sound)
{
        check_sound(); /* no file */
        make_database(0);
        check_sound();
        for (unsigned i = 0; i < 60; i++) {
                make_database(1 + i % 3);
                check_sound();
        }
}
END_TEST

START_TEST(database_is_sound_between_transactions_of_its_writer)
{
        MDB_env *env = open_database();
        struct error err;

        change_database(env);
        for (unsigned i = 0; i < 20; i++) {
                ck_assert_int_eq(lmdb_check_env(dir, &err), ST_OK); /* between transactions */
                change_database(env);
        }
        mdb_env_close(env);
}
END_TEST

START_TEST(page_that_refers_to_itself_is_found)
{
        uint8_t page[PAGE];
        uint64_t root, tree;
        uint16_t at;

        make_database(10);
        root = find_main_root();
        read_at(page, sizeof page, root * PAGE);
        at = (uint16_t)load_le16(page + 16 + 2 * 2); /* the third tree: "plain" */
        tree = root * PAGE + at + 8 + 5 + 40;
        write_at(&root, 8, tree);
        check_damaged("is used twice");
}
END_TEST

START_TEST(cut_off_file_is_found)
{
        make_database(10);
        ck_assert_int_eq(truncate(path, 20 * PAGE), 0);
        check_damaged("instead of");
        ck_assert_int_eq(truncate(path, 100), 0);
        check_damaged("cut off");
        ck_assert_int_eq(truncate(path, 0), 0);
        check_damaged("cut off");
}
END_TEST

/* After any damage of a page the check ends, and LMDB can walk what it accepts. */
static void walk_database(void)
{
        MDB_env *env = open_database();
        static const char *const names[] = { "plain", "duplicates", "fixed" };
        MDB_txn *txn;

        ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
        for (size_t i = 0; i < 3; i++) {
                MDB_cursor *c;
                MDB_val key, value;
                uint64_t count = 0;
                MDB_dbi dbi;

                if (mdb_dbi_open(txn, names[i], 0, &dbi))
                        continue;
                ck_assert_int_eq(mdb_cursor_open(txn, dbi, &c), 0);
                while (mdb_cursor_get(c, &key, &value, MDB_NEXT) == 0 && count++ < 100000)
                        ck_assert_uint_le(value.mv_size, 3 * PAGE);
                ck_assert_uint_lt(count, 100000);
                mdb_cursor_close(c);
        }
        mdb_txn_abort(txn);
        mdb_env_close(env);
}

START_TEST(what_is_accepted_can_be_read)
{
        _cleanup_buf_ struct buf whole;
        unsigned found = 0, accepted = 0;

        make_database(6);
        buf_init(&whole, MiB(64));
        ck_assert_int_eq(file_read(path, &whole, NULL), ST_OK);
        for (unsigned round = 0; round < 400; round++) {
                uint64_t at = next_random() % (whole.size / PAGE) * PAGE;
                size_t n = round % 2 ? 1 : 1 + next_random() % 64, inside = next_random() % (round % 3 ? PAGE : 64);
                uint8_t junk[64];

                for (size_t i = 0; i < sizeof junk; i++)
                        junk[i] = (uint8_t)next_random();
                if (inside + n > PAGE)
                        n = PAGE - inside;
                write_at(junk, n, at + inside);
                if (lmdb_check_env(dir, NULL) == ST_OK) {
                        walk_database();
                        accepted++;
                } else {
                        found++;
                }
                write_at(whole.data, whole.size, 0);
        }
        ck_assert_uint_gt(found, 20);
        ck_assert_uint_gt(accepted, 10); /* in values and unused parts of pages */
}
END_TEST

START_TEST(errors_tell_damage_from_a_broken_environment)
{
        static const struct lmdb_map map = { LMDB_MAP_INDEX, MiB(64) };
        static const struct {
                int rc;
                enum status status;
                const char *text;
        } cases[] = {
                { MDB_SUCCESS, ST_OK, "" },
                { MDB_NOTFOUND, ST_NOT_FOUND, "step: not found" },
                { MDB_CORRUPTED, ST_BAD_DATA, "step: MDB_CORRUPTED" },
                { MDB_VERSION_MISMATCH, ST_BAD_DATA, "step: MDB_VERSION_MISMATCH" },
                { MDB_PANIC, ST_OS, "step, because an earlier write failed; restart the service" },
                { MDB_MAP_FULL, ST_OS, "step: its map of 64 MiB is full; set CAIRN_INDEX_MAP_MIB to more" },
                { MDB_READERS_FULL, ST_BUSY, "step: MDB_READERS_FULL" },
                { MDB_BAD_TXN, ST_OS, "step: MDB_BAD_TXN" },
                { EACCES, ST_OS, "step: Permission denied" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct error err = { 0 };

                ck_assert_int_eq(lmdb_set_error(&err, cases[i].rc, &map, "step"), cases[i].status);
                ck_assert_msg(strncmp(err.text, cases[i].text, strlen(cases[i].text)) == 0, "%s", err.text);
        }
}
END_TEST

TEST_SUITE_WITH_FIXTURE("lmdb_check", databases_with_any_history_are_sound,
                        database_is_sound_between_transactions_of_its_writer, page_that_refers_to_itself_is_found,
                        cut_off_file_is_found, what_is_accepted_can_be_read,
                        errors_tell_damage_from_a_broken_environment)
