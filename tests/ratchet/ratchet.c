/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one path of the benchmark of instruction counts:
 *
 *      ratchet --list      the names of all paths
 *      ratchet NAME        prepares the inputs of a path, then runs it in count_instructions()
 *
 * tests/ratchet/run counts the instructions of count_instructions() with callgrind. The program is linked with
 * --wrap=getrandom: keys of hash tables and ids are the same in each run.
 */
#include "tests/ratchet/ratchet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/files/file.h"
#include "tests/support/random_table.h"

void require_true(bool condition, const char *what)
{
        if (condition)
                return;
        fprintf(stderr, "ratchet: %s\n", what);
        exit(EXIT_FAILURE);
}

void require_ok(enum status st, const struct error *err)
{
        require_true(st == ST_OK, err->text);
}

static char directory[] = "/tmp/cairn-ratchet-XXXXXX";

static void remove_ratchet_directory(void)
{
        if (file_remove_tree(directory, NULL))
                fprintf(stderr, "ratchet: cannot remove %s\n", directory);
}

const char *ratchet_directory(void)
{
        static bool is_made;

        if (!is_made)
                require_true(mkdtemp(directory) && atexit(remove_ratchet_directory) == 0, "cannot make a directory");
        is_made = true;
        return directory;
}

uint32_t draw_below(uint32_t below)
{
        static uint64_t state = 1;

        return (uint32_t)(random_next(&state) % below);
}

ssize_t __wrap_getrandom(void *ret, size_t n, unsigned flags);

ssize_t __wrap_getrandom(void *ret, size_t n, unsigned flags)
{
        static uint64_t state = 2;
        uint8_t *bytes = ret;

        (void)flags;
        for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t)random_next(&state);
        return (ssize_t)n;
}

/* callgrind counts what this function calls. */
__attribute__((noinline)) static void count_instructions(void (*run)(void))
{
        run();
        __asm__ volatile("" ::: "memory"); /* no tail call */
}

int main(int argc, char **argv)
{
        static const struct ratchet_path *const groups[] = { symbol_paths, extract_paths, unwind_paths, profile_paths,
                                                             store_paths };

        require_true(argc == 2, "usage: ratchet --list | NAME");
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
                for (const struct ratchet_path *p = groups[i]; p->name; p++) {
                        if (strcmp(argv[1], "--list") == 0)
                                puts(p->name);
                        if (strcmp(argv[1], p->name) != 0)
                                continue;
                        p->prepare();
                        count_instructions(p->run);
                        return EXIT_SUCCESS;
                }
        }
        return strcmp(argv[1], "--list") == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
