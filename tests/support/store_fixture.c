/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/store_fixture.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/random_draw.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

void store_fixture_open(struct store_fixture *f)
{
        struct profile_store_options options = f->options;
        struct error err;

        options.size = sizeof options;
        if (!options.flush_interval_ms)
                options.flush_interval_ms = UINT64_MAX;
        check_ok(profile_store_open(f->dir, &options, &f->store, &err), &err);
}

void store_fixture_begin(struct store_fixture *f)
{
        temporary_dir_create(f->dir, "store");
        store_fixture_open(f);
}

void store_fixture_reopen(struct store_fixture *f)
{
        profile_store_close(f->store);
        store_fixture_open(f);
}

void store_fixture_end(struct store_fixture *f)
{
        profile_store_close(f->store);
        f->store = NULL;
        temporary_dir_remove(f->dir);
}

void store_fixture_flush(struct store_fixture *f)
{
        struct error err;

        check_ok(profile_store_flush(f->store, &err), &err);
}

char *store_fixture_path(const struct store_fixture *f, const char *name)
{
        return path_join(f->dir, name);
}

struct hash128 store_fixture_batch_id(unsigned i)
{
        return hash_bytes128(&i, sizeof i);
}

void store_fixture_append(struct store_fixture *f, unsigned batch, uint64_t address)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, address);
        test_sample(&t, STORE_FIXTURE_T0, 1, &leaf, 1, NULL);
        check_ok(profile_store_append(f->store, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

#define LARGE_NAMES 600
#define LARGE_NAME_BYTES (STORE_FIXTURE_LARGE_BYTES / LARGE_NAMES)

void store_fixture_append_large(struct profile_store *s, unsigned batch)
{
        struct test_profile t;
        uint32_t stack[LARGE_NAMES];
        struct error err;

        random_state = batch + 1;
        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        for (unsigned i = 0; i < LARGE_NAMES; i++) {
                char name[LARGE_NAME_BYTES + 1] = "";

                for (unsigned k = 0; k < LARGE_NAME_BYTES; k++)
                        name[k] = (char)('A' + (int)(draw_uniform() * 57));
                stack[i] = test_named_location(&t, true, 0x1000 + i, name, "", 1);
        }
        test_sample(&t, STORE_FIXTURE_T0, 1, stack, LARGE_NAMES, (const char *[]){ NULL });
        check_ok(profile_store_append(s, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

static struct stack_sums sum_all(struct store_fixture *f, int64_t *sum_ret)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;

        check_ok(store_scan_begin(f->store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        *sum_ret = 0;
        for (size_t i = 0; i < sums.count; i++)
                *sum_ret += sums.items[i].value;
        store_scan_end(scan);
        return sums;
}

int64_t store_fixture_sum(struct store_fixture *f)
{
        int64_t sum;

        free(sum_all(f, &sum).items);
        return sum;
}

size_t store_fixture_count_stacks(struct store_fixture *f)
{
        int64_t sum;
        struct stack_sums sums = sum_all(f, &sum);
        size_t ret = sums.count;

        stack_sums_deinit(&sums);
        return ret;
}

struct profile_store_stat store_fixture_stat(struct store_fixture *f)
{
        struct profile_store_stat stat;
        struct error err;

        check_ok(profile_store_stat(f->store, &stat, &err), &err);
        return stat;
}

void store_fixture_check_last_commit(const struct store_fixture *f, const char *table, const char *word)
{
        _cleanup_free_ char *name = NULL, *pattern = NULL;
        _cleanup_buf_ struct buf text;
        struct error err;
        glob_t files;

        ck_assert_int_gt(asprintf(&name, "tables/%s/_delta_log/*.json", table), 0);
        pattern = store_fixture_path(f, name);
        ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
        buf_init(&text, MiB(1));
        check_ok(file_read(files.gl_pathv[files.gl_pathc - 1], &text, &err), &err);
        globfree(&files);
        ck_assert_ptr_nonnull(strstr(buf_cstr(&text), word));
        ck_assert_ptr_nonnull(strstr(buf_cstr(&text), "\"dataChange\":true"));
        ck_assert_ptr_null(strstr(buf_cstr(&text), "\"dataChange\":false"));
}
