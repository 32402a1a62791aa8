/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/hostile.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/limits.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/workers/extract_worker.h"
#include "tests/support/suite.h"

#define SLOWNESS (BUILT_WITH_SANITIZER ? 8 : 1)
#define CPU_S (20.0 * SLOWNESS)
#define MEMORY_BYTES (MiB(512) * SLOWNESS)

struct symbol_table hostile_table;
struct error hostile_error;

const char hostile_names[19] = "\0from_symtab\0other";
const Elf64_Sym hostile_symbols[2] = {
        { 0 },
        { .st_name = 1,
          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
          .st_shndx = 1,
          .st_value = MADE_CODE + 0x100,
          .st_size = 0x10 },
};

/* Resources used by all workers so far. Each test has a process of its own and starts a single worker. */
static void assert_within_limits(void)
{
        struct rusage used;
        double cpu_s;

        ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
        cpu_s = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
                (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
        if (getenv("HOSTILE_VERBOSE"))
                fprintf(stderr, "%.2f s, %ld MiB, '%s' '%s'\n", cpu_s, used.ru_maxrss >> 10, hostile_error.text,
                        symbol_table_partial_text(&hostile_table));
        ck_assert_msg(cpu_s < CPU_S, "%.1f s", cpu_s);
        ck_assert_msg((size_t)used.ru_maxrss << 10 < MEMORY_BYTES, "%ld KiB", used.ru_maxrss);
}

enum status hostile_extract(int fd)
{
        struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = -1, .name = "hostile" };
        enum status st;

        symbol_table_deinit(&hostile_table);
        st = symbol_table_extract_confined(&in, NULL, &hostile_table, &hostile_error);
        extract_inputs_close(&in);
        assert_within_limits();
        return st;
}

void hostile_partial(int fd, const char *text)
{
        enum status st = hostile_extract(fd);

        ck_assert_msg(st == ST_OK, "%s", hostile_error.text);
        ck_assert_msg(strstr(symbol_table_partial_text(&hostile_table), text), "'%s'",
                      symbol_table_partial_text(&hostile_table));
}

void hostile_whole(int fd)
{
        enum status st = hostile_extract(fd);

        ck_assert_msg(st == ST_OK, "%s", hostile_error.text);
        ck_assert_str_eq(symbol_table_partial_text(&hostile_table), "");
}

void hostile_refused(int fd, const char *text)
{
        ck_assert_int_ne(hostile_extract(fd), ST_OK);
        ck_assert_msg(strstr(hostile_error.text, text), "'%s'", hostile_error.text);
}

void hostile_function(uint64_t address, const char *frames)
{
        ck_assert_str_eq(made_frames(&hostile_table, address), frames);
}

int hostile_main(const char *name, const char *argv0, const TTest *const *tests, size_t count)
{
        char program[PATH_MAX];

        snprintf(program, sizeof program, "%.*s/../../../cairn", (int)(strrchr(argv0, '/') - argv0), argv0);
        worker_set_program(program);
        return suite_run(name, tests, count);
}
