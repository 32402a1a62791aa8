/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A day of small flushes, one every 10 s, before and after compaction: number and size of the files, time to open and
 * sum them, and the bytes read and written by the merges. BENCH_DIR=DIR is the directory of the store (default /tmp);
 * with BENCH_KEEP=1 it is kept as DIR/before/profiles and DIR/after/profiles, for other readers.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define DAY_NS INT64_C(86400000000000)
#define T0 (INT64_C(20000) * DAY_NS)
#define FLUSHES 8640
#define SAMPLES 200
#define HOSTS 100
#define SERVICES 20
#define STACKS 13000
#define LOCATIONS 40000

static uint32_t state = 1;

static uint32_t draw_number(uint32_t below)
{
        state = state * 1664525 + 1013904223;
        return (uint32_t)((uint64_t)(state >> 4) * below >> 28);
}

static void must_be_ok(enum status st, const struct error *err)
{
        if (!st)
                return;
        fprintf(stderr, "bench_compaction: %s\n", err->text);
        exit(EXIT_FAILURE);
}

static void append_flush(struct profile_store *store, uint32_t flush)
{
        struct test_profile t;
        struct error err;

        test_profile_init(&t, ID, "/usr/bin/worker");
        for (int i = 0; i < SAMPLES; i++) {
                uint32_t stack[30], n = 0, saved, chosen = draw_number(draw_number(STACKS) + 1);
                char host[32], service[32];

                snprintf(host, sizeof host, "host=h%u", draw_number(HOSTS));
                snprintf(service, sizeof service, "service=s%u", chosen % SERVICES);
                saved = state;
                state = chosen * 7919 + 1;
                for (uint32_t depth = 5 + draw_number(25); depth; depth--)
                        stack[n++] = test_location(&t, 0x1000 + 0x10 * draw_number(draw_number(LOCATIONS) + 1));
                state = saved;
                test_sample(&t, T0 + flush * INT64_C(10000000000) + draw_number(1000000000), 52631578, stack, n,
                            (const char *const[]){ host, service, NULL });
        }
        must_be_ok(profile_store_append(store, &t.p, hash_bytes128(&flush, sizeof flush), NULL, &err), &err);
        test_profile_deinit(&t);
        must_be_ok(profile_store_flush(store, &err), &err);
}

static double get_seconds_since(int64_t start)
{
        return (double)(monotonic_ns() - start) / 1e9;
}

/* Opens the store read-only, like a command. */
static void measure_store(const char *what, const char *dir)
{
        const struct profile_store_options options = { .size = sizeof options, .read_only = true };
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        double open_s = 1e9, sum_s = 1e9, resolve_s = 1e9;
        struct profile_store_stat stat;

        for (int i = 0; i < 3; i++) {
                int64_t start = monotonic_ns();
                const struct scan_stacks *stacks;
                struct profile_store *store;
                struct store_scan *scan;
                struct stack_sums sums;
                struct error err;
                double s;

                must_be_ok(profile_store_open(dir, &options, &store, &err), &err);
                s = get_seconds_since(start);
                open_s = s < open_s ? s : open_s;
                must_be_ok(store_scan_begin(store, &scan, &err), &err);
                start = monotonic_ns();
                must_be_ok(store_scan_sum(scan, &all, &sums, &err), &err);
                s = get_seconds_since(start);
                sum_s = s < sum_s ? s : sum_s;
                start = monotonic_ns();
                must_be_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
                s = get_seconds_since(start);
                resolve_s = s < resolve_s ? s : resolve_s;
                stack_sums_deinit(&sums);
                store_scan_end(scan);
                must_be_ok(profile_store_stat(store, &stat, &err), &err);
                profile_store_close(store);
        }
        printf("%-8s %5" PRIu64 " + %5" PRIu64 " + %5" PRIu64 " files, %9" PRIu64
               " bytes; open %7.1f ms, sum %7.1f ms, resolve %7.1f ms\n",
               what, stat.sample_files, stat.stack_files, stat.location_files, stat.bytes, open_s * 1e3, sum_s * 1e3,
               resolve_s * 1e3);
}

static char *make_store_dir(const char *top, const char *name)
{
        _cleanup_free_ char *dir = path_join(top, name);
        struct error err;
        char *ret = path_join(dir, "profiles");

        must_be_ok(file_make_dirs(ret, &err), &err);
        return ret;
}

int main(void)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        const char *place = getenv("BENCH_DIR") ? getenv("BENCH_DIR") : "/tmp";
        _cleanup_free_ char *top = NULL, *before = NULL, *after = NULL, *copy = NULL;
        struct compaction_result r;
        struct profile_store *store;
        struct error err = { 0 };
        int64_t start;

        if (asprintf(&top, "%s/cairn-compaction-XXXXXX", place) < 0 || !mkdtemp(top))
                return EXIT_FAILURE;
        before = make_store_dir(top, "before");
        must_be_ok(profile_store_open(before, &options, &store, &err), &err);
        start = monotonic_ns();
        for (uint32_t i = 0; i < FLUSHES; i++)
                append_flush(store, i);
        profile_store_close(store);
        printf("%d flushes of %d samples in %.1f s\n", FLUSHES, SAMPLES, get_seconds_since(start));
        measure_store("before", before);
        after = make_store_dir(top, "after");
        if (asprintf(&copy, "cp -r '%s/.' '%s'", before, after) < 0 || system(copy))
                return EXIT_FAILURE;
        must_be_ok(profile_store_open(after, &options, &store, &err), &err);
        start = monotonic_ns();
        must_be_ok(profile_store_compact(store, NULL, NULL, &r, &err), &err);
        printf("compact  %.2f s, %" PRIu64 " merges, %" PRIu64 " bytes read, %" PRIu64 " written\n",
               get_seconds_since(start), r.merges, r.bytes_read, r.bytes_written);
        profile_store_close(store);
        measure_store("after", after);
        if (getenv("BENCH_KEEP"))
                printf("kept: %s\n", top);
        else
                must_be_ok(file_remove_tree(top, &err), &err);
        return EXIT_SUCCESS;
}
