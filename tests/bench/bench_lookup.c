/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads symbol tables into an index and times batch lookups on one core:
 *   bench_lookup [FILE...]   ELF files with symbols; without one, a made table
 * For each: size of the index, time of the load, and of batches of a million
 * keys: uniform over the ranges' bytes and skewed to few functions, unsorted
 * and sorted. Best of RUNS.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "symbolizer/extract.h"
#include "symbolizer/index_internal.h"
#include "symbolizer/index_load.h"
#include "tests/support/random_table.h"

#define KEYS 1000000
#define RUNS 7

static void die(const char *what, const struct error *err)
{
        fprintf(stderr, "bench_lookup: %s: %s\n", what, err->text);
        exit(1);
}

static int compare_keys(const void *a, const void *b)
{
        uint64_t x = ((const struct symbol_key *)a)->address, y = ((const struct symbol_key *)b)->address;

        return (x > y) - (x < y);
}

static uint64_t range_start(const struct symbol_table *t, uint32_t i)
{
        return t->ranges[i].start;
}

/* A uniform byte of all ranges, found through the running sum of their sizes. */
static void make_uniform(const struct symbol_table *t, struct symbol_key *keys)
{
        uint64_t *sums = calloc((size_t)t->range_count + 1, sizeof *sums), state = 1;

        for (uint32_t i = 0; i < t->range_count; i++)
                sums[i + 1] = sums[i] + (t->ranges[i].end - t->ranges[i].start);
        for (size_t k = 0; k < KEYS; k++) {
                uint64_t at = random_next(&state) % sums[t->range_count];
                uint32_t low = 0, high = t->range_count;

                while (high - low > 1) {
                        uint32_t mid = low + (high - low) / 2;

                        if (sums[mid] <= at)
                                low = mid;
                        else
                                high = mid;
                }
                keys[k] = (struct symbol_key){ .build_id = &t->build_id,
                                               .address = range_start(t, low) + at - sums[low] };
        }
        free(sums);
}

/* Range i with a weight that falls with a power of its rank, as profiles have it. */
static void make_skewed(const struct symbol_table *t, struct symbol_key *keys)
{
        uint64_t state = 2;

        for (size_t k = 0; k < KEYS; k++) {
                double u = (double)(random_next(&state) >> 11) / 9007199254740992.0;
                uint64_t rank = (uint64_t)(u * u * u * u * t->range_count);

                keys[k] = (struct symbol_key){
                        .build_id = &t->build_id,
                        .address = range_start(t, (uint32_t)(rank * 2654435761u % t->range_count)) };
        }
}

static void run(struct symbol_index *index, const struct symbol_key *keys, size_t count, const char *what)
{
        struct symbol_batch batch = { 0 };
        struct error err = { 0 };
        int64_t best = INT64_MAX;
        uint64_t frames = 0, resolved = 0;

        for (unsigned r = 0; r < RUNS; r++) {
                int64_t begin = monotonic_ns(), took;

                for (size_t at = 0; at < KEYS; at += count) {
                        struct symbol_view *view;

                        if (symbol_view_begin(index, &view, &err) ||
                            symbol_view_lookup(view, keys + at, count, &batch, &err))
                                die("lookup", &err);
                        symbol_view_end(view);
                }
                took = monotonic_ns() - begin;
                best = took < best ? took : best;
        }
        for (size_t i = 0; i < batch.result_count; i++) {
                frames += batch.results[i].frame_count;
                resolved += batch.results[i].state == SYMBOL_RESOLVED;
        }
        printf("  %-34s %7.1f ns/address %7.1f M/s  (%.1f%% resolved, %.2f frames each)\n", what,
               (double)best / KEYS, 1e3 * KEYS / (double)best, 100.0 * (double)resolved / (double)batch.result_count,
               (double)frames / (double)(resolved ? resolved : 1));
        symbol_batch_deinit(&batch);
}

static void measure_lookups(struct symbol_index *index, const struct symbol_table *t)
{
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);

        make_uniform(t, keys);
        run(index, keys, KEYS, "1 M uniform, unsorted");
        run(index, keys, 10000, "10 k batches, uniform, unsorted");
        qsort(keys, KEYS, sizeof *keys, compare_keys);
        run(index, keys, KEYS, "1 M uniform, sorted");
        make_skewed(t, keys);
        run(index, keys, KEYS, "1 M skewed, unsorted");
        qsort(keys, KEYS, sizeof *keys, compare_keys);
        run(index, keys, KEYS, "1 M skewed, sorted");
        free(keys);
}

static double milliseconds(int64_t since)
{
        return (double)(monotonic_ns() - since) / 1e6;
}

/* Entries of the index's databases and what they fill, in bytes; then everything, in whole pages. */
static void print_databases(struct symbol_index *index)
{
        const struct {
                const char *name;
                MDB_dbi dbi;
        } all[] = { { "ranges", index->ranges },
                    { "function_pages", index->functions.pages },
                    { "file_pages", index->files.pages } };
        MDB_envinfo info;
        MDB_txn *txn;

        if (mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn))
                return;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                MDB_stat s;

                if (mdb_stat(txn, all[i].dbi, &s) == 0)
                        printf("  %-16s %8zu entries %10zu bytes\n", all[i].name, s.ms_entries,
                               (s.ms_branch_pages + s.ms_leaf_pages + s.ms_overflow_pages) * s.ms_psize);
        }
        mdb_txn_abort(txn);
        if (mdb_env_info(index->env, &info) == 0)
                printf("  file             %28zu bytes\n", (info.me_last_pgno + 1) * 4096);
}

static void measure(const char *name, struct symbol_table *t)
{
        char dir[] = "/tmp/cairn-bench-XXXXXX";
        struct symbol_index *index;
        struct symbol_object first, second;
        struct symbol_view *view;
        struct error err = { 0 };
        uint64_t generation;
        int64_t begin;
        bool replaced;
        struct build_id id = t->build_id;

        if (!mkdtemp(dir) || symbol_index_open(dir, false, &index, &err))
                die("index", &err);
        if (getenv("BLOCK_BYTES"))
                index->block_bytes = strtoul(getenv("BLOCK_BYTES"), NULL, 10);
        begin = monotonic_ns();
        if (symbol_index_load(index, t, &replaced, &generation, &err))
                die("load", &err);
        printf("%s: %u ranges, %u functions, loaded in %.0f ms\n", name, t->range_count, t->function_count,
               milliseconds(begin));
        print_databases(index);
        measure_lookups(index, t);
        t->build_id = random_build_id(2);
        if (symbol_index_load(index, t, &replaced, &generation, &err) || symbol_view_begin(index, &view, &err) ||
            symbol_view_object(view, &id, &first, &err) || symbol_view_object(view, &t->build_id, &second, &err))
                die("second build", &err);
        symbol_view_end(view);
        printf("  index_bytes %llu: blocks %llu (%.2f a range), strings %llu; again under another build-id %llu\n",
               (unsigned long long)first.index_bytes, (unsigned long long)first.block_bytes,
               (double)first.block_bytes / t->range_count, (unsigned long long)first.string_bytes,
               (unsigned long long)second.index_bytes);
        symbol_index_close(index);
        if (file_remove_tree(dir, &err))
                die(dir, &err);
}

static void measure_file(const char *path)
{
        struct extract_inputs in = { .debuginfo_fd = -1, .executable_fd = -1, .altlink_fd = -1, .name = path };
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct symbol_table t = { 0 };
        struct error err = { 0 };
        int64_t begin = monotonic_ns();

        if (fd < 0) {
                perror(path);
                exit(1);
        }
        in.debuginfo_fd = fd;
        if (symbol_table_extract(&in, &t, &err))
                die(path, &err);
        printf("extracted in %.0f ms\n", milliseconds(begin));
        measure(path, &t);
        symbol_table_deinit(&t);
}

int main(int argc, char **argv)
{
        struct symbol_table t;

        for (int i = 1; i < argc; i++)
                measure_file(argv[i]);
        if (argc > 1)
                return 0;
        t = random_table(&(struct random_table_spec){ .seed = 1, .range_count = 400000, .function_count = 20000,
                                                      .file_count = 500, .base = 0x400000, .version = 1,
                                                      .quality = QUALITY_DWARF });
        measure("made table", &t);
        symbol_table_deinit(&t);
        return 0;
}
