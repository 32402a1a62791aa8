/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/faults/fault_samples.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

unsigned fault_find_samples(struct profile_store *store, unsigned count, unsigned distance,
                            void (*each)(const struct scan_location *l, unsigned sample))
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        const struct scan_stacks *stacks;
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err = { 0 };
        unsigned seen = 0;

        must(store_scan_begin(store, &scan, &err) == ST_OK, "%s", err.text);
        must(store_scan_sum(scan, &all, &sums, &err) == ST_OK, "%s", err.text);
        must(store_scan_resolve(scan, &sums, &stacks, &err) == ST_OK, "%s", err.text);
        for (size_t i = 0; i < sums.count; i++) {
                const struct scan_location *l = &stacks->locations[stacks->indexes[stacks->first[i]]];
                uint64_t sample = (l->address - FAULT_SAMPLE_ADDRESS) / distance;

                must(stacks->first[i + 1] - stacks->first[i] == 1 && sample < count, "a stack that was not sent");
                must(sums.items[i].value == 1, "sample %u counts %lld times", (unsigned)sample,
                     (long long)sums.items[i].value);
                if (each)
                        each(l, (unsigned)sample);
                seen |= 1u << sample;
        }
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        return seen;
}

enum status fault_resume_store(struct profile_store *store, const unsigned *order, unsigned count,
                               enum status (*step)(unsigned number, struct error *err), struct error *err)
{
        struct profile_store_health health;
        enum status st = ST_OK;

        profile_store_get_health(store, &health);
        if (health.sync_failing_since)
                st = profile_store_flush(store, err);
        return st ? st : run_remaining_steps(order, count, step, err);
}

static int age_file(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        static const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

        (void)st;
        (void)ftw;
        return flag == FTW_F ? utimensat(AT_FDCWD, path, long_ago, 0) : 0;
}

void fault_age_files(const char *dir)
{
        ck_assert_int_eq(nftw(dir, age_file, 16, FTW_PHYS), 0);
}
