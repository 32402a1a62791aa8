/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads symbols into an index and compares lookups with performance targets:
 *
 *      bench_lookup [FILE[,SECOND]...]
 *
 * FILE and SECOND, a later build of it, are ELF files or symbol table files; the default is a generated table. Prints
 * for each: size of the index, by kind, and of a second build; rates of batches of random addresses, all frames as
 * numbers, best of RUNS. Rates are per CPU second of one core, except for several threads. SIZES_ONLY in the
 * environment skips the rates. BENCH_ADDRESSES names a file to which the addresses are written, which
 * tests/bench/run-symbols passes to peers.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "symbol-index/index_load.h"
#include "symbol-index/index_verify.h"
#include "symbol-index/symbol_index_internal.h"
#include "symbolizer/extraction/extract.h"
#include "tests/support/random_table.h"

#define KEYS 1000000
#define PEER_KEYS 100000
#define RUNS 9

static char dir[64];

static _Noreturn void die(const char *what, const struct error *err)
{
        fprintf(stderr, "bench_lookup: %s: %s\n", what, err->text);
        exit(1);
}

/* ---- keys */

static int compare_keys(const void *a, const void *b)
{
        uint64_t x = ((const struct symbol_key *)a)->address, y = ((const struct symbol_key *)b)->address;

        return (x > y) - (x < y);
}

/* A uniformly random byte of all ranges, found through the running sum of their sizes. */
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
                                               .address = t->ranges[low].start + at - sums[low] };
        }
        free(sums);
}

/* Range i with a power-law weight by rank, as in profiles. */
static void make_skewed(const struct symbol_table *t, struct symbol_key *keys)
{
        uint64_t state = 2;

        for (size_t k = 0; k < KEYS; k++) {
                double u = (double)(random_next(&state) >> 11) / 9007199254740992.0;
                uint64_t rank = (uint64_t)(u * u * u * u * t->range_count);

                keys[k] = (struct symbol_key){ .build_id = &t->build_id,
                                               .address = t->ranges[rank * 2654435761u % t->range_count].start };
        }
}

static void sort_each(struct symbol_key *keys, size_t count)
{
        for (size_t at = 0; at < KEYS; at += count)
                qsort(keys + at, count, sizeof *keys, compare_keys);
}

/* ---- rates */

/* Looks up all keys in batches of `count`, with a single view. Millions per second. */
static double measure_rate(struct symbol_index *index, const struct symbol_key *keys, size_t key_count, size_t count,
                           unsigned threads)
{
        clockid_t clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
        struct symbol_batch batch = { 0 };
        struct symbol_view *view;
        struct error err = { 0 };
        int64_t best = INT64_MAX;

        for (unsigned r = 0; r < RUNS; r++) {
                int64_t begin = clock_ns(clock), took;

                if (symbol_view_begin(index, &view, &err))
                        die("view", &err);
                for (size_t at = 0; at < key_count; at += count)
                        if (symbol_view_lookup_threads(view, keys + at, count, threads, &batch, &err))
                                die("lookup", &err);
                symbol_view_end(view);
                took = clock_ns(clock) - begin;
                best = took < best ? took : best;
        }
        symbol_batch_deinit(&batch);
        return 1e3 * (double)key_count / (double)best;
}

static void print_rate(const char *what, double rate_m, double target_m)
{
        printf("  %-44s %7.1f ns %7.1f M/s", what, 1e3 / rate_m, rate_m);
        if (target_m > 0)
                printf("   target %5.1f: %s", target_m, rate_m >= target_m ? "reached" : "missed");
        printf("\n");
}

/* Addresses of the first measurement, written to a file for peers. */
static void write_addresses(const char *path, const struct symbol_key *keys)
{
        FILE *f = fopen(path, "we");

        if (!f) {
                perror(path);
                exit(1);
        }
        for (size_t i = 0; i < PEER_KEYS; i++)
                fprintf(f, "0x%llx\n", (unsigned long long)keys[i].address);
        fclose(f);
}

static void measure_lookups(struct symbol_index *index, const struct symbol_table *t, struct symbol_key *keys)
{
        unsigned cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
        char text[64];

        make_uniform(t, keys);
        if (getenv("BENCH_ADDRESSES"))
                write_addresses(getenv("BENCH_ADDRESSES"), keys);
        print_rate("1 M uniform, unsorted", measure_rate(index, keys, KEYS, KEYS, 1), 20);
        snprintf(text, sizeof text, "1 M uniform, unsorted, %u threads, wall clock", cores);
        print_rate(text, measure_rate(index, keys, KEYS, KEYS, cores), 0);
        print_rate("10 k batches, unsorted", measure_rate(index, keys, KEYS, 10000, 1), 0);
        print_rate("single addresses", measure_rate(index, keys, KEYS / 10, 1, 1), 1);
        sort_each(keys, KEYS / 10);
        print_rate("100 k batches, sorted", measure_rate(index, keys, KEYS, KEYS / 10, 1), 20);
        sort_each(keys, KEYS);
        print_rate("1 M uniform, sorted", measure_rate(index, keys, KEYS, KEYS, 1), 40);
        make_skewed(t, keys);
        print_rate("1 M skewed, unsorted", measure_rate(index, keys, KEYS, KEYS, 1), 20);
        sort_each(keys, KEYS);
        print_rate("1 M skewed, sorted", measure_rate(index, keys, KEYS, KEYS, 1), 40);
}

/* ---- sizes */

static struct symbol_object get_object_id(struct symbol_index *index, const struct build_id *id)
{
        struct symbol_object o;
        struct symbol_view *view;
        struct error err;

        if (symbol_view_begin(index, &view, &err) || symbol_view_get_object(view, id, &o, &err))
                die("object", &err);
        symbol_view_end(view);
        return o;
}

static struct symbol_object load_table(struct symbol_index *index, const struct symbol_table *t, const char *what)
{
        int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        uint64_t generation;
        struct error err;
        bool replaced;

        if (symbol_index_load(index, t, &replaced, &generation, &err))
                die("load", &err);
        printf("%s: %u ranges, %u functions, loaded in %.0f ms of CPU time\n", what, t->range_count, t->function_count,
               (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6);
        return get_object_id(index, &t->build_id);
}

static void print_size(struct symbol_index *index, const struct build_id *id, const struct symbol_object *o)
{
        struct index_object_blocks b;
        struct error err;
        double ranges = (double)o->range_count;

        if (symbol_index_measure_blocks(index, id, &b, &err))
                die("blocks", &err);
        printf("  index_bytes %llu: blocks %llu (%.2f a range), strings %llu (%.1f a function)\n",
               (unsigned long long)o->index_bytes, (unsigned long long)o->block_bytes, (double)o->block_bytes / ranges,
               (unsigned long long)o->string_bytes, (double)o->string_bytes / (double)(o->function_count + 1));
        printf("  bits a range: starts %.2f, runs %.2f, lines %.2f, scopes %.2f, nodes %.2f, sites %.2f, heads %.2f; "
               "%llu blocks, maps %llu bytes\n",
               8.0 * (double)b.sizes.starts / ranges, 8.0 * (double)b.sizes.runs / ranges,
               8.0 * (double)b.sizes.lines / ranges, 8.0 * (double)b.sizes.scopes / ranges,
               8.0 * (double)b.sizes.nodes / ranges, 8.0 * (double)b.sizes.sites / ranges,
               8.0 * (double)b.sizes.heads / ranges, (unsigned long long)b.blocks, (unsigned long long)b.map_bytes);
}

static void print_second(const char *what, const struct symbol_object *first, const struct symbol_object *second)
{
        double share = (double)second->index_bytes / (double)first->index_bytes;

        printf("  %-44s %10llu bytes, %.3f of the first   target 0.6: %s\n", what,
               (unsigned long long)second->index_bytes, share, share <= 0.6 ? "reached" : "missed");
}

/* ---- */

static struct symbol_table read_table(const char *path)
{
        struct extract_inputs in = { .debuginfo_fd = -1, .executable_fd = -1, .altlink_fd = -1, .name = path };
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct symbol_table t = { 0 };
        struct error err = { 0 };

        if (fd < 0) {
                perror(path);
                exit(1);
        }
        in.debuginfo_fd = fd;
        if (symbol_table_read(fd, path, &t, NULL) && symbol_table_extract(&in, &t, &err))
                die(path, &err);
        return t;
}

static void measure_table(const char *name, struct symbol_table *t, struct symbol_table *later)
{
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);
        struct symbol_object first, second;
        struct symbol_index *index;
        struct error err = { 0 };
        struct build_id id = t->build_id;

        snprintf(dir, sizeof dir, "/tmp/cairn-bench-XXXXXX");
        if (!keys || !mkdtemp(dir) || symbol_index_open(dir, false, &index, &err))
                die("index", &err);
        if (getenv("BLOCK_BYTES"))
                index->block_bytes = strtoul(getenv("BLOCK_BYTES"), NULL, 10);
        first = load_table(index, t, name);
        print_size(index, &t->build_id, &first);
        if (!getenv("SIZES_ONLY"))
                measure_lookups(index, t, keys);
        t->build_id = random_build_id(2);
        second = load_table(index, t, "the same under another build-id");
        print_second("the same again", &first, &second);
        t->build_id = id;
        if (later) {
                second = load_table(index, later, "the later build");
                print_second("a later build", &first, &second);
        }
        symbol_index_close(index);
        free(keys);
        if (file_remove_tree(dir, &err))
                die(dir, &err);
}

static void measure_files(char *argument)
{
        char *comma = strchr(argument, ',');
        struct symbol_table t, later = { 0 };

        if (comma)
                *comma = 0;
        t = read_table(argument);
        if (comma)
                later = read_table(comma + 1);
        measure_table(argument, &t, comma ? &later : NULL);
        symbol_table_deinit(&t);
        symbol_table_deinit(&later);
}

int main(int argc, char **argv)
{
        struct symbol_table t;

        for (int i = 1; i < argc; i++)
                measure_files(argv[i]);
        if (argc > 1)
                return 0;
        t = random_table(&(struct random_table_spec){ .seed = 1,
                                                      .range_count = 400000,
                                                      .function_count = 20000,
                                                      .file_count = 500,
                                                      .base = 0x400000,
                                                      .version = 1,
                                                      .quality = QUALITY_DWARF });
        measure_table("made table", &t, NULL);
        symbol_table_deinit(&t);
        return 0;
}
