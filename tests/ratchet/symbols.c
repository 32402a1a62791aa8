/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that read and write symbols: the command symbolize, and the index. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/symbols/symbol_cache.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "symbol-index/index_load.h"
#include "symbol-index/lookup.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/formats/symcache.h"
#include "tests/ratchet/ratchet.h"
#include "tests/support/elf_maker.h"
#include "tests/support/random_table.h"

#define BASE 0x400000
#define RANGES 20000
#define FUNCTIONS 2000
#define SYMBOLIZED 50000
#define LOOKED_UP 200000

static struct symbol_table table;

static void prepare_table(void)
{
        table = random_table(&(struct random_table_spec){ .seed = 1,
                                                          .range_count = RANGES,
                                                          .function_count = FUNCTIONS,
                                                          .file_count = 100,
                                                          .base = BASE,
                                                          .version = 1,
                                                          .quality = QUALITY_DWARF });
        table.is_complete = true;
}

/* ---- cairn symbolize, with the symcache of its file in the cache ---- */

static char object_path[128];

static void write_object(void)
{
        static const uint8_t code[16];
        const struct elf_maker_section sections[] = {
                { 0 },
                { .name = ".text",
                  .type = SHT_PROGBITS,
                  .flags = SHF_ALLOC | SHF_EXECINSTR,
                  .address = BASE,
                  .content = code,
                  .size = sizeof code },
        };
        const struct elf_maker maker = {
                .is_64 = true, .type = ET_DYN, .machine = EM_X86_64, .sections = sections, .section_count = 2
        };
        _cleanup_buf_ struct buf file;
        struct error err;

        buf_init(&file, KiB(64));
        elf_make(&maker, &file);
        snprintf(object_path, sizeof object_path, "%s/object", ratchet_directory());
        require_ok(file_write_durable(object_path, file.data, file.size, &err), &err);
}

/* The cache stores nothing for a file that has just been written. */
static void open_settled_cache(const struct extract_inputs *in, struct symbol_cache *cache)
{
        for (;;) {
                symbol_cache_open(in, cache);
                require_true(cache->directory_fd >= 0, "there is no symbol cache");
                if (cache->is_settled)
                        return;
                symbol_cache_close(cache);
                usleep(10000);
        }
}

static void cache_symbols(void)
{
        const struct debug_file_search search = { .directory = ratchet_directory() };
        struct extract_inputs in;
        struct symbol_cache cache;
        struct symcache symcache;
        struct error err;
        int fd = memfd_create("symcache", MFD_CLOEXEC);

        require_ok(symcache_write(&table, fd, &err), &err);
        require_ok(symcache_open(fd, "symcache", &symcache, &err), &err);
        require_ok(extract_inputs_search(object_path, &search, &in, &err), &err);
        open_settled_cache(&in, &cache);
        symbol_cache_put(&cache, &symcache, LIMIT_SYMBOL_CACHE_BYTES);
        symbol_cache_close(&cache);
        extract_inputs_close(&in);
        symcache_close(&symcache);
        close(fd);
}

/* Random addresses as standard input; standard output is discarded. */
static void write_addresses(void)
{
        uint64_t span = table.ranges[RANGES - 1].end - BASE;
        _cleanup_buf_ struct buf text;
        int fd = memfd_create("addresses", MFD_CLOEXEC);
        struct error err;

        buf_init(&text, MiB(4));
        for (int i = 0; i < SYMBOLIZED; i++)
                buf_printf(&text, "0x%llx\n", BASE + (unsigned long long)(draw_below(UINT32_MAX) % span));
        require_ok(buf_status(&text, &err, "addresses"), &err);
        require_ok(file_write_all(fd, text.data, text.size, "addresses", &err), &err);
        require_true(lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO, "no standard input");
        require_true(dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO) == STDOUT_FILENO, "no output");
}

static void prepare_symbolize(void)
{
        char cache[128];

        snprintf(cache, sizeof cache, "%s/cache", ratchet_directory());
        require_true(mkdir(cache, 0700) == 0 && setenv("CAIRN_CACHE_DIR", cache, 1) == 0, "no cache directory");
        prepare_table();
        write_object();
        cache_symbols();
        write_addresses();
}

/* In place of the one in cli/main.c. */
int command_fail(const char *name, enum status st, const struct error *err)
{
        (void)name;
        require_ok(st, err);
        return EXIT_FAILURE;
}

static void run_symbolize(const char *format)
{
        char *arguments[] = { "symbolize", "-e", object_path, "--no-debuginfod", "--format", (char *)format, NULL };

        require_true(command_symbolize(6, arguments) == 0, "symbolize failed");
}

static void run_symbolize_text(void)
{
        run_symbolize("llvm");
}

static void run_symbolize_json(void)
{
        run_symbolize("json");
}

/* ---- the index ---- */

static struct symbol_index *symbols;
static struct symbol_key *keys;

static void prepare_index_build(void)
{
        struct error err;

        prepare_table();
        require_ok(symbol_index_open(ratchet_directory(), false, &symbols, &err), &err);
}

static void run_index_build(void)
{
        uint64_t generation;
        struct error err;
        bool replaced;

        require_ok(symbol_index_load(symbols, &table, &replaced, &generation, &err), &err);
}

static void prepare_lookup(void)
{
        uint64_t span;

        prepare_index_build();
        run_index_build();
        span = table.ranges[RANGES - 1].end - BASE;
        keys = calloc(LOOKED_UP, sizeof *keys);
        require_true(keys, "out of memory");
        for (size_t i = 0; i < LOOKED_UP; i++)
                keys[i] = (struct symbol_key){ .build_id = &table.build_id,
                                               .address = BASE + draw_below(UINT32_MAX) % span };
}

static void run_lookup(void)
{
        struct symbol_batch batch = { 0 };
        struct symbol_view *view;
        struct error err;

        require_ok(symbol_view_begin(symbols, &view, &err), &err);
        require_ok(symbol_view_lookup(view, keys, LOOKED_UP, &batch, &err), &err);
        symbol_view_end(view);
        symbol_batch_deinit(&batch);
}

const struct ratchet_path symbol_paths[] = {
        { "symbolize-text", prepare_symbolize, run_symbolize_text },
        { "symbolize-json", prepare_symbolize, run_symbolize_json },
        { "lookup", prepare_lookup, run_lookup },
        { "index-build", prepare_index_build, run_index_build },
        { NULL },
};
