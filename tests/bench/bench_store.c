/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of samples through the store: appended (each acknowledged after its sync), flushed, summed, resolved and
 * re-symbolized. Also its size compared with pprof files of the same batches, and the latency of acknowledgements. Each
 * host sends a batch of 2,000 samples; hosts run the same binaries, so most stacks are already stored.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/files/file.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 INT64_C(1728000000000000000)
#define FLUSHES 10
#define HOSTS 20
#define SAMPLES 2000
#define STACKS 20000
#define LOCATIONS 30000

static uint32_t state = 1;

static uint32_t draw_number(uint32_t below)
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
                uint32_t saved, stack[30], n = 0, chosen = draw_number(draw_number(STACKS) + 1);

                saved = state;
                state = chosen * 7919 + 1;
                for (uint32_t depth = 5 + draw_number(25); depth; depth--)
                        stack[n++] = test_location(t, 0x1000 + 0x10 * draw_number(draw_number(LOCATIONS) + 1));
                state = saved;
                test_sample(t, T0 + round * INT64_C(10000000000) + draw_number(1000000), 52631578, stack, n,
                            (const char *const[]){ "service.name=api", label, NULL });
        }
}

static double seconds_since(int64_t start)
{
        return (double)(monotonic_ns() - start) / 1e9;
}

static void require_ok(enum status st, const struct error *err)
{
        if (!st)
                return;
        fprintf(stderr, "bench_store: %s\n", err->text);
        exit(EXIT_FAILURE);
}

/* ---- senders ---- */

#define SENDER_BATCHES 64 /* per sender */
#define MOST_SENDERS 64

struct sender {
        struct profile_store *store;
        uint32_t number;
        double latency_s[SENDER_BATCHES];
};

static void *send_batches(void *context)
{
        struct sender *s = context;

        for (uint32_t i = 0; i < SENDER_BATCHES; i++) {
                const uint32_t id[] = { s->number, i };
                struct test_profile t;
                struct error err;
                int64_t start;

                test_profile_init(&t, ID, "/usr/bin/worker");
                for (uint32_t k = 0; k < 100; k++) {
                        uint32_t location = test_location(&t, 0x1000 + 0x10 * k);

                        test_sample(&t, T0 + i * INT64_C(1000000000), 52631578, &location, 1,
                                    (const char *const[]){ "service.name=api", NULL });
                }
                start = monotonic_ns();
                require_ok(profile_store_append(s->store, &t.p, hash_bytes128(id, sizeof id), NULL, &err), &err);
                s->latency_s[i] = seconds_since(start);
                test_profile_deinit(&t);
        }
        return NULL;
}

static int compare_latencies(const void *x, const void *y)
{
        double a = *(const double *)x, b = *(const double *)y;

        return a < b ? -1 : a > b;
}

/* Acknowledged appends of small batches by concurrent senders, to a store of their own. */
static void measure_senders(size_t count)
{
        char dir[] = "/tmp/cairn-bench-XXXXXX";
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        static struct sender senders[MOST_SENDERS];
        static double all[MOST_SENDERS * SENDER_BATCHES];
        pthread_t threads[MOST_SENDERS];
        struct profile_store *store;
        struct error err;
        size_t n = 0;

        if (!mkdtemp(dir))
                exit(EXIT_FAILURE);
        require_ok(profile_store_open(dir, &options, &store, &err), &err);
        for (size_t i = 0; i < count; i++) {
                senders[i].store = store;
                senders[i].number = (uint32_t)i;
                if (pthread_create(&threads[i], NULL, send_batches, &senders[i]))
                        exit(EXIT_FAILURE);
        }
        for (size_t i = 0; i < count; i++) {
                pthread_join(threads[i], NULL);
                for (size_t k = 0; k < SENDER_BATCHES; k++)
                        all[n++] = senders[i].latency_s[k];
        }
        qsort(all, n, sizeof *all, compare_latencies);
        printf("acknowledged append, %2zu senders: p50 %6.2f ms, p99 %6.2f ms\n", count, all[n / 2] * 1e3,
               all[n * 99 / 100] * 1e3);
        profile_store_close(store);
        require_ok(file_remove_tree(dir, &err), &err);
}

/* ---- size ---- */

/* Size of the batch as pprof, which has no timestamps per sample. */
struct pprof_bytes {
        uint64_t plain, gzip, zstd;
};

static void add_pprof_bytes(const struct profile *p, struct pprof_bytes *b)
{
        _cleanup_buf_ struct buf packed, plain;
        struct error err;
        void *zstd;
        size_t bound;

        buf_init(&packed, SIZE_MAX / 2);
        buf_init(&plain, SIZE_MAX / 2);
        require_ok(pprof_encode(p, &packed, &err), &err);
        require_ok(gzip_decompress(packed.data, packed.size, &plain, &err), &err);
        bound = ZSTD_compressBound(plain.size);
        zstd = malloc(bound);
        if (!zstd)
                exit(EXIT_FAILURE);
        b->plain += plain.size;
        b->gzip += packed.size;
        b->zstd += ZSTD_compress(zstd, bound, plain.data, plain.size, 3);
        free(zstd);
}

static void print_sizes(struct profile_store *store, const struct pprof_bytes *pprof)
{
        struct compaction_result compacted;
        struct profile_store_stat stat;
        struct error err;
        double samples, bytes;

        require_ok(profile_store_stat(store, &stat, &err), &err);
        samples = (double)stat.sample_rows;
        printf("size    %8.2f bytes a sample as flushed\n", (double)stat.bytes / samples);
        require_ok(profile_store_compact(store, NULL, NULL, &compacted, &err), &err);
        require_ok(profile_store_stat(store, &stat, &err), &err);
        bytes = (double)stat.bytes;
        printf("size    %8.2f bytes a sample when compacted; the same batches as pprof: %.2f with gzip (%.1f times), "
               "%.2f "
               "with zstd (%.1f times)\n",
               bytes / samples, (double)pprof->gzip / samples, (double)pprof->gzip / bytes,
               (double)pprof->zstd / samples, (double)pprof->zstd / bytes);
}

int main(void)
{
        char dir[] = "/tmp/cairn-bench-XXXXXX";
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        _cleanup_free_ char *index = NULL;
        struct resymbolize_result resymbolized;
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct pprof_bytes pprof = { 0 };
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
        require_ok(symbol_index_open(index, false, &options.symbols, &err), &err);
        require_ok(profile_store_open(dir, &options, &store, &err), &err);
        for (uint32_t round = 0; round < FLUSHES; round++) {
                for (uint32_t host = 0; host < HOSTS; host++) {
                        const uint32_t id[] = { round, host };
                        struct test_profile t;

                        make_batch(&t, host, round);
                        start = monotonic_ns();
                        require_ok(profile_store_append(store, &t.p, hash_bytes128(id, sizeof id), NULL, &err), &err);
                        append_s += seconds_since(start);
                        add_pprof_bytes(&t.p, &pprof);
                        test_profile_deinit(&t);
                }
                start = monotonic_ns();
                require_ok(profile_store_flush(store, &err), &err);
                flush_s += seconds_since(start);
        }
        require_ok(profile_store_stat(store, &stat, &err), &err);
        printf("store: %d batches of %d samples, %" PRIu64 " stacks, %" PRIu64 " locations, %" PRIu64
               " bytes in %" PRIu64 " files\n",
               FLUSHES * HOSTS, SAMPLES, stat.stack_rows, stat.location_rows, stat.bytes,
               stat.sample_files + stat.stack_files + stat.location_files);
        printf("append  %8.0f samples/s  %6.2f ms a batch, synced\n", FLUSHES * HOSTS * SAMPLES / append_s,
               append_s * 1e3 / (FLUSHES * HOSTS));
        printf("flush   %8.0f samples/s  %6.1f ms a flush\n", FLUSHES * HOSTS * SAMPLES / flush_s,
               flush_s * 1e3 / FLUSHES);
        print_sizes(store, &pprof);
        require_ok(store_scan_begin(store, &scan, &err), &err);
        start = monotonic_ns();
        require_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        printf("sum     %8.0f samples/s  %6.1f ms\n", (double)stat.sample_rows / seconds_since(start),
               seconds_since(start) * 1e3);
        start = monotonic_ns();
        require_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        printf("resolve %8.0f stacks/s   %6.1f ms\n", (double)stacks->count / seconds_since(start),
               seconds_since(start) * 1e3);
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        test_load_symbols(options.symbols, ID, QUALITY_DWARF, 0x1000, LOCATIONS / 16 + 1, "work", "/src/work.c");
        start = monotonic_ns();
        require_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &resymbolized, &err), &err);
        printf("resymbolize %8.0f locations/s %5.1f ms for %" PRIu64 " changed in %" PRIu64 " files\n",
               (double)resymbolized.locations_seen / seconds_since(start), seconds_since(start) * 1e3,
               resymbolized.locations_changed, resymbolized.files_rewritten);
        profile_store_close(store);
        symbol_index_close(options.symbols);
        require_ok(file_remove_tree(dir, &err), &err);
        measure_senders(1);
        measure_senders(16);
        measure_senders(64);
        return EXIT_SUCCESS;
}
