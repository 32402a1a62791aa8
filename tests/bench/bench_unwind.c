/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the unwind table of a large file and looks up addresses:
 *
 *      bench_unwind [FILE]   default: the largest of some commonly installed files
 *
 * compared with libdw's CFI (evaluated at every row of the table) and readelf's output of all rows, in the same run.
 * CPU time, best of RUNS; peers run once.
 */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/support/random_table.h"
#include "unwind-tables/unwind_table.h"

#define RUNS 5
#define LOOKUPS 2000000

extern char **environ;

static void die(const char *what, const struct error *err)
{
        fprintf(stderr, "bench_unwind: %s: %s\n", what, err->text);
        exit(1);
}

/* CPU time of this process and of children that have ended, mostly independent of other load. */
static int64_t get_cpu_ns(void)
{
        struct timespec own;
        struct rusage children;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
        getrusage(RUSAGE_CHILDREN, &children);
        return (own.tv_sec + children.ru_utime.tv_sec + children.ru_stime.tv_sec) * INT64_C(1000000000) + own.tv_nsec +
               (children.ru_utime.tv_usec + children.ru_stime.tv_usec) * INT64_C(1000);
}

static double seconds(int64_t since_ns)
{
        return (double)(get_cpu_ns() - since_ns) / 1e9;
}

static const char *find_largest_file(void)
{
        static const char *const CANDIDATES[] = {
                "/usr/bin/node",
                "/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1",
                "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
                "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                "/proc/self/exe",
        };
        const char *best = NULL;
        struct stat s;
        off_t size = 0;

        for (size_t i = 0; i < sizeof CANDIDATES / sizeof *CANDIDATES; i++) {
                if (stat(CANDIDATES[i], &s) == 0 && s.st_size > size) {
                        size = s.st_size;
                        best = CANDIDATES[i];
                }
        }
        return best;
}

static uint64_t row_address(const struct unwind_table *t, size_t *page, size_t row)
{
        while (row >= t->pages[*page].first_row + t->pages[*page].row_count)
                ++*page;
        return (t->pages[*page].number << UNWIND_PAGE_BITS) + t->rows[row].offset;
}

static void bench_find(const struct unwind_table *t)
{
        uint64_t *pcs = calloc(LOOKUPS, sizeof *pcs), state = 1, found = 0;
        uint64_t low = t->pages[0].number << UNWIND_PAGE_BITS;
        int64_t since;
        uint64_t span = ((t->pages[t->page_count - 1].number + 1) << UNWIND_PAGE_BITS) - low;

        if (!pcs)
                exit(1);
        for (size_t i = 0; i < LOOKUPS; i++)
                pcs[i] = low + random_next(&state) % span;
        since = get_cpu_ns();
        for (size_t i = 0; i < LOOKUPS; i++) {
                const struct unwind_row *row;

                found += unwind_table_find(t, pcs[i], &row) == ST_OK;
        }
        printf("find: %.0f ns a random address, %.0f%% covered\n", seconds(since) * 1e9 / LOOKUPS,
               (double)found * 100 / LOOKUPS);
        free(pcs);
}

static double bench_libdw(const char *path, const struct unwind_table *t)
{
        uint64_t rows = 0;
        int64_t since = get_cpu_ns();
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        Elf *elf = elf_version(EV_CURRENT) ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
        Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
        size_t page = 0;

        for (size_t i = 0; cfi && i < t->row_count; i++) {
                Dwarf_Frame *frame;

                if (dwarf_cfi_addrframe(cfi, row_address(t, &page, i), &frame) == 0) {
                        rows++;
                        free(frame);
                }
        }
        printf("libdw: %" PRIu64 " rows evaluated\n", rows);
        if (cfi)
                dwarf_cfi_end(cfi);
        elf_end(elf);
        close(fd);
        return seconds(since);
}

static double bench_readelf(const char *path)
{
        char *const argv[] = { "readelf", "--debug-dump=frames-interp", (char *)path, NULL };
        int64_t since = get_cpu_ns();
        posix_spawn_file_actions_t actions;
        int status = -1;
        pid_t pid;

        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) < 0)
                status = -1;
        posix_spawn_file_actions_destroy(&actions);
        return status == 0 ? seconds(since) : 0;
}

int main(int argc, char **argv)
{
        const char *path = argc > 1 ? argv[1] : find_largest_file();
        struct unwind_rules rules;
        struct unwind_table t = { 0 };
        struct elf_image img;
        struct error err = { 0 };
        double best = 1e9, libdw, readelf;

        if (elf_image_open(path, &img, &err))
                die(path, &err);
        for (int i = 0; i < RUNS; i++) {
                int64_t since = get_cpu_ns();
                double s;

                if (unwind_rules_init(&rules, &err) || unwind_table_build(&img, &rules, &t, &err))
                        die(path, &err);
                s = seconds(since);
                best = s < best ? s : best;
                if (i + 1 < RUNS) {
                        unwind_table_deinit(&t);
                        unwind_rules_deinit(&rules);
                }
        }
        if (!t.row_count) {
                fprintf(stderr, "bench_unwind: '%s' has no unwind information\n", path);
                return 1;
        }
        printf("%s: %.1f MB, %" PRIu64 " functions\n", path, (double)img.size / 1e6, t.stats.functions);
        printf("table: %zu rows, %" PRIu64 " unique rules, %.2f MB, %.2f bytes a row\n", t.row_count, t.stats.rules,
               (double)(t.row_count * sizeof *t.rows + t.page_count * sizeof *t.pages) / 1e6,
               (double)(t.row_count * sizeof *t.rows + t.page_count * sizeof *t.pages) / (double)t.row_count);
        bench_find(&t);
        libdw = bench_libdw(path, &t);
        readelf = bench_readelf(path);
        printf("build: cairn %.3f s, libdw %.3f s (%.1f times), readelf %.3f s (%.1f times)\n", best, libdw,
               libdw / best, readelf, readelf / best);
        unwind_table_deinit(&t);
        unwind_rules_deinit(&rules);
        elf_image_close(&img);
        return 0;
}
