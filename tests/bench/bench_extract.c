/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time to read DWARF:
 *
 *      bench_extract [FILE...]
 *
 * For each file and reader, first Cairn's and then libdw: megabytes of decompressed debug sections per second, CPU and
 * wall time, and the peak private memory of the process so far. Then the number of bytes of code at which the results
 * differ. --only-ours skips libdw, --show prints differences, --runs N reports the fastest of N runs.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "common/limits.h"
#include "symbolizer/sources/dwarf_extract.h"
#include "tests/support/compare_tables.h"
#include "tests/support/libdw_extract.h"

static int show, runs = 1;
static bool only_ours;

static double cpu_s(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Anonymous pages; mapped files are not counted. */
static double private_peak_mb(void)
{
        FILE *f = fopen("/proc/self/status", "re");
        char line[256];
        double data = 0, peak = 0, file = 0;

        while (f && fgets(line, sizeof line, f)) {
                sscanf(line, "VmData: %lf", &data);
                sscanf(line, "VmHWM: %lf", &peak);
                sscanf(line, "RssFile: %lf", &file);
        }
        if (f)
                fclose(f);
        return (peak - file) / 1024;
}

/*
 * Size of all debug sections, decompressed, including those that do not describe code: the basis of the rates given for
 * peers.
 */
static uint64_t debug_bytes(const struct elf_image *img)
{
        uint64_t n = 0;

        for (size_t i = 0; i < img->section_count; i++) {
                struct elf_section_data d;

                if (strncmp(img->sections[i].name, ".debug_", 7) != 0 ||
                    elf_section_data(img, &img->sections[i], LIMIT_SECTION_UNPACKED_BYTES, &d, NULL))
                        continue;
                n += d.size;
                elf_section_data_free(&d);
        }
        return n;
}

typedef enum status extract_fn(const struct elf_image *img, const struct code_map *code, struct symbol_table_builder *b,
                               struct error *err);

static enum status extract_with_cairn(const struct elf_image *img, const struct code_map *code,
                                      struct symbol_table_builder *b, struct error *err)
{
        struct dwarf_summary s;
        enum status st = dwarf_extract(&(struct dwarf_input){ .img = img, .code = code }, b, &s, err);

        if (!st && s.damaged_units)
                printf("# %llu damaged units\n", (unsigned long long)s.damaged_units);
        return st;
}

static enum status extract_with_libdw(const struct elf_image *img, const struct code_map *code,
                                      struct symbol_table_builder *b, struct error *err)
{
        enum symbol_quality q;

        return libdw_extract(img, NULL, code, b, false, &q, err);
}

struct figures {
        double cpu, settled_cpu, wall;
};

static enum status run_once(extract_fn *extract, const struct elf_image *img, struct figures *f, struct symbol_table *t,
                            struct error *err)
{
        struct symbol_table_builder b;
        struct code_map code;
        double cpu = cpu_s();
        uint64_t start = (uint64_t)monotonic_ns();
        enum status st = code_map_from_image(img, &code, err);

        if (st)
                return st;
        symbol_table_builder_init(&b);
        st = extract(img, &code, &b, err);
        f->wall = (double)((uint64_t)monotonic_ns() - start) / 1e9;
        f->cpu = cpu_s() - cpu;
        if (!st)
                st = symbol_table_builder_finish(&b, t, err);
        f->settled_cpu = cpu_s() - cpu;
        symbol_table_builder_deinit(&b);
        code_map_deinit(&code);
        return st;
}

/* Reports the run with the least CPU time. */
static bool run_reader(const char *who, extract_fn *extract, const struct elf_image *img, uint64_t bytes,
                       struct symbol_table *t)
{
        double mb = (double)bytes / 1e6;
        struct figures best = { 0 };
        struct error err;

        for (int i = 0; i < runs; i++) {
                struct figures f;

                if (i > 0)
                        symbol_table_deinit(t);
                if (run_once(extract, img, &f, t, &err)) {
                        printf("%s: %s\n", who, err.text);
                        return false;
                }
                if (i == 0 || f.cpu < best.cpu)
                        best = f;
        }
        printf("%-6s %7.1f MB  cpu %6.3f s (settled %6.3f)  wall %6.3f s  %7.1f MB/s of cpu  %7.1f MB/s of wall"
               "  peak %6.1f MB  %u ranges %u chains %u functions\n",
               who, mb, best.cpu, best.settled_cpu, best.wall, mb / best.cpu, mb / best.wall, private_peak_mb(),
               t->range_count, t->chain_count, t->function_count);
        return true;
}

struct shown {
        const struct symbol_table *a, *b;
        uint64_t range_count;
};

static void print_difference(void *context, const struct table_difference *d)
{
        struct shown *s = context;
        char text[600];

        if (s->range_count++ >= (uint64_t)show)
                return;
        printf("  0x%llx-0x%llx\n", (unsigned long long)d->start, (unsigned long long)d->end);
        describe_range(s->a, d->a, text, sizeof text);
        printf("    ours:  %s\n", text);
        describe_range(s->b, d->b, text, sizeof text);
        printf("    libdw: %s\n", text);
}

static void bench_file(const char *path)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct symbol_table a, b;
        struct error err;
        uint64_t bytes;

        if (elf_image_open(path, &img, &err)) {
                printf("%s\n", err.text);
                return;
        }
        bytes = debug_bytes(&img);
        printf("# %s\n", path);
        if (!run_reader("ours", extract_with_cairn, &img, bytes, &a))
                return;
        if (!only_ours && run_reader("libdw", extract_with_libdw, &img, bytes, &b)) {
                struct shown s = { .a = &a, .b = &b };
                uint64_t n = compare_tables(&a, &b, print_difference, &s);

                printf("differences: %llu bytes in %llu ranges\n", (unsigned long long)n,
                       (unsigned long long)s.range_count);
                symbol_table_deinit(&b);
        }
        symbol_table_deinit(&a);
}

int main(int argc, char **argv)
{
        static const struct option options[] = { { "only-ours", no_argument, NULL, 'o' },
                                                 { "show", required_argument, NULL, 's' },
                                                 { "runs", required_argument, NULL, 'r' },
                                                 { 0 } };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (c == 'o')
                        only_ours = true;
                else if (c == 's')
                        show = (int)strtol(optarg, NULL, 10);
                else if (c == 'r')
                        runs = (int)strtol(optarg, NULL, 10);
                else
                        return 64;
        }
        if (optind == argc)
                bench_file("/proc/self/exe");
        for (int i = optind; i < argc; i++)
                bench_file(argv[i]);
        return 0;
}
