/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of samples: appended (each acknowledged after its sync), flushed,
 * summed, resolved and healed. A host sends a batch of 2,000 samples; hosts run the
 * same binaries, so most stacks are known.
 */
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/file.h"
#include "profile-store/scan.h"
#include "profile-store/store.h"
#include "tests/support/profiles.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 INT64_C(1728000000000000000)
#define FLUSHES 10
#define HOSTS 20
#define SAMPLES 2000
#define STACKS 20000
#define LOCATIONS 30000

static uint32_t state = 1;

static uint32_t draw(uint32_t below)
{
        state = state * 1664525 + 1013904223;
        return (state >> 4) % below;
}

static void make_batch(struct test_profile *t, uint32_t host, uint32_t round)
{
        char label[32];

        test_profile_init(t, ID, "/usr/bin/worker");
        snprintf(label, sizeof label, "host=h%u", host);
        for (int i = 0; i < SAMPLES; i++) {
                uint32_t saved, stack[30], n = 0, chosen = draw(draw(STACKS) + 1);

                saved = state;
                state = chosen * 7919 + 1;
                for (uint32_t depth = 5 + draw(25); depth; depth--)
                        stack[n++] = test_location(t, 0x1000 + 0x10 * draw(draw(LOCATIONS) + 1));
                state = saved;
                test_sample(t, T0 + round * INT64_C(10000000000) + draw(1000000), 52631578, stack, n,
                            (const char *const[]){ "service.name=api", label, NULL });
        }
}

static double seconds_since(int64_t start)
{
        return (double)(monotonic_ns() - start) / 1e9;
}

static void must(enum status st, const struct error *err)
{
        if (!st)
                return;
        fprintf(stderr, "bench_store: %s\n", err->text);
        exit(EXIT_FAILURE);
}

int main(void)
{
        char dir[] = "/tmp/cairn-bench-XXXXXX";
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        _cleanup_free_ char *index = NULL;
        struct resymbolize_result healed;
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        double append_s = 0, flush_s = 0;
        struct profile_store_stat stat;
        struct profile_store *store;
        struct store_scan *scan;
        struct stack_sums sums;
        const struct scan_stacks *stacks;
        struct error err;
        int64_t start;

        if (!mkdtemp(dir))
                return EXIT_FAILURE;
        index = path_join(dir, "index");
        must(symbol_index_open(index, false, &options.symbols, &err), &err);
        must(profile_store_open(dir, &options, &store, &err), &err);
        for (uint32_t round = 0; round < FLUSHES; round++) {
                for (uint32_t host = 0; host < HOSTS; host++) {
                        const uint32_t id[] = { round, host };
                        struct test_profile t;

                        make_batch(&t, host, round);
                        start = monotonic_ns();
                        must(profile_store_append(store, &t.p, hash_bytes128(id, sizeof id), NULL, &err), &err);
                        append_s += seconds_since(start);
                        test_profile_deinit(&t);
                }
                start = monotonic_ns();
                must(profile_store_flush(store, &err), &err);
                flush_s += seconds_since(start);
        }
        must(profile_store_stat(store, &stat, &err), &err);
        printf("store: %d batches of %d samples, %" PRIu64 " stacks, %" PRIu64 " locations, %" PRIu64
               " bytes in %" PRIu64 " files\n",
               FLUSHES * HOSTS, SAMPLES, stat.stack_rows, stat.location_rows, stat.bytes,
               stat.sample_files + stat.stack_files + stat.location_files);
        printf("append  %8.0f samples/s  %6.2f ms a batch, synced\n", FLUSHES * HOSTS * SAMPLES / append_s,
               append_s * 1e3 / (FLUSHES * HOSTS));
        printf("flush   %8.0f samples/s  %6.1f ms a flush\n", FLUSHES * HOSTS * SAMPLES / flush_s,
               flush_s * 1e3 / FLUSHES);
        printf("size    %8.2f bytes a sample\n", (double)stat.bytes / (double)stat.sample_rows);
        must(store_scan_begin(store, &scan, &err), &err);
        start = monotonic_ns();
        must(store_scan_sum(scan, &all, &sums, &err), &err);
        printf("sum     %8.0f samples/s  %6.1f ms\n", (double)stat.sample_rows / seconds_since(start),
               seconds_since(start) * 1e3);
        start = monotonic_ns();
        must(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        printf("resolve %8.0f stacks/s   %6.1f ms\n", (double)stacks->count / seconds_since(start),
               seconds_since(start) * 1e3);
        free(sums.items);
        store_scan_end(scan);
        test_load_symbols(options.symbols, ID, QUALITY_DWARF, 0x1000, LOCATIONS / 16 + 1, "work", "/src/work.c");
        start = monotonic_ns();
        must(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &healed, &err), &err);
        printf("heal    %8.0f locations/s %5.1f ms for %" PRIu64 " changed in %" PRIu64 " files\n",
               (double)healed.locations_seen / seconds_since(start), seconds_since(start) * 1e3,
               healed.locations_changed, healed.files_rewritten);
        profile_store_close(store);
        symbol_index_close(options.symbols);
        must(file_remove_tree(dir, &err), &err);
        return EXIT_SUCCESS;
}
