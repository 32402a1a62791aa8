/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles programs in every layout produced by linkers, runs them, and reads the runtime address of one of their
 * functions and their mappings; the link-time address derived from these must be that of the symbol table.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "sampling/objects/object.h"
#include "sampling/objects/object_cache.h"
#include "sampling/objects/proc_maps.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static const char SOURCE[] =
        "#include <fcntl.h>\n"
        "#include <stdio.h>\n"
        "#include <unistd.h>\n"
        "int table[4000] = { 1 };\n"
        "__attribute__((noinline)) int where_am_i(int x) { return x * table[x]; }\n"
        "int main(void) {\n"
        "        char text[4096]; long n; int fd = open(\"/proc/self/maps\", O_RDONLY);\n"
        "        printf(\"%lx\\n\", (long)&where_am_i); fflush(stdout);\n"
        "        while ((n = read(fd, text, sizeof text)) > 0) if (write(1, text, n) != n) return 1;\n"
        "        return where_am_i(1); }\n";

static char dir[TEMPORARY_DIR_BYTES];

static void shell(const char *command, bool must)
{
        int status = system(command);

        if (must)
                ck_assert_msg(status == 0, "%s", command);
}

static uint64_t symbol_value(const char *path, const char *name)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct elf_symbol_cursor cursor;
        struct elf_symbol symbol;
        struct error err;

        ck_assert_msg(elf_image_open(path, &img, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(elf_symbols_begin(&img, elf_image_section_of_type(&img, SHT_SYMTAB), &cursor, &err), ST_OK);
        while (elf_symbols_next(&cursor, &symbol))
                if (strcmp(symbol.name, name) == 0)
                        return symbol.value;
        ck_abort_msg("no symbol %s in %s", name, path);
}

/* True if it was compared; a linker that is not installed is not an error. */
static bool compare_layout(const char *flags, bool must)
{
        char path[64], command[512], output[64];
        _cleanup_buf_ struct buf text;
        const struct proc_mapping *mapping;
        _cleanup_close_ int fd = -1;
        struct proc_maps maps;
        struct object object;
        struct error err;
        uint64_t address, here = 0;
        char *end;

        snprintf(path, sizeof path, "%s/program", dir);
        snprintf(output, sizeof output, "%s/output", dir);
        unlink(path);
        snprintf(command, sizeof command, "${CC:-cc} -O1 -g %s -o %s %s/source.c 2>/dev/null", flags, path, dir);
        shell(command, must);
        buf_init(&text, MiB(1));
        if (access(path, X_OK) < 0)
                return false;
        snprintf(command, sizeof command, "%s > %s", path, output);
        shell(command, true);
        ck_assert_int_eq(file_read(output, &text, &err), ST_OK);
        address = strtoull(buf_cstr(&text), &end, 16);
        ck_assert_msg(proc_maps_parse(end + 1, text.size - (size_t)(end + 1 - (char *)text.data), &maps, &err) == ST_OK,
                      "%s", err.text);
        mapping = proc_maps_find(&maps, address);
        ck_assert_ptr_nonnull(mapping);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_msg(object_read_fd(fd, &object, &err) == ST_OK, "%s", err.text);
        ck_assert(object_find_address(&object, address - mapping->start + mapping->file_offset, &here));
        ck_assert_msg(here == symbol_value(path, "where_am_i"), "%s: %lx is not %lx", flags, here,
                      symbol_value(path, "where_am_i"));
        proc_maps_deinit(&maps);
        object_deinit(&object);
        return true;
}

static void make_source(void)
{
        char path[64];
        struct error err;

        temporary_dir_create(dir, "test");
        snprintf(path, sizeof path, "%s/source.c", dir);
        ck_assert_int_eq(file_write_durable(path, SOURCE, strlen(SOURCE), &err), ST_OK);
}

static void remove_source(void)
{
        temporary_dir_remove(dir);
}

START_TEST(addresses_of_every_layout_match_symbol_table)
{
        make_source();
        ck_assert(compare_layout("-pie -fPIE", true));
        ck_assert(compare_layout("-no-pie -fno-pie", true));
        ck_assert(compare_layout("-pie -fPIE -Wl,-z,separate-code", true));
        ck_assert(compare_layout("-pie -fPIE -Wl,-z,noseparate-code", true));
        ck_assert(compare_layout("-no-pie -fno-pie -Wl,-z,noseparate-code -Wl,-Ttext-segment=0x10000000", true));
        ck_assert(compare_layout("-static -no-pie", true));
        ck_assert(compare_layout("-static-pie -fPIE", true));
        ck_assert(compare_layout("-pie -fPIE -Wl,-z,max-page-size=0x200000", true));
        remove_source();
}
END_TEST

/* lld gives text a p_vaddr that differs from its p_offset, and its segments share pages of the file. */
START_TEST(addresses_of_lld_and_gold_match_symbol_table)
{
        make_source();
        compare_layout("-fuse-ld=lld -pie -fPIE", false);
        compare_layout("-fuse-ld=lld -no-pie -fno-pie", false);
        compare_layout("-fuse-ld=lld -pie -fPIE -Wl,-z,separate-code", false);
        compare_layout("-fuse-ld=gold -pie -fPIE", false);
        remove_source();
}
END_TEST

/* The layout of lld, written manually for hosts without it. */
START_TEST(byte_of_shared_page_belongs_to_its_segment)
{
        struct load_segment segments[] = {
                { .offset = 0, .file_size = 0x6b4, .address = 0 },
                { .offset = 0x6c0, .file_size = 0x1b0, .address = 0x16c0, .executable = true },
                { .offset = 0x870, .file_size = 0x1c0, .address = 0x2870 },
        };
        struct object o = { .segments = segments, .segment_count = 3 };
        uint64_t address = 7;

        ck_assert(object_find_address(&o, 0x6c0, &address));
        ck_assert_uint_eq(address, 0x16c0);
        ck_assert(object_find_address(&o, 0x86f, &address));
        ck_assert_uint_eq(address, 0x186f);
        ck_assert(object_find_address(&o, 0x100, &address));
        ck_assert_uint_eq(address, 0x100);
        ck_assert(object_find_address(&o, 0x6b8, &address)); /* between two segments: a page of code */
        ck_assert_uint_eq(address, 0x16b8);
        address = 7;
        ck_assert(!object_find_address(&o, 0x2000, &address));
        ck_assert(!object_find_address(&o, UINT64_MAX, &address));
        ck_assert_uint_eq(address, 7);
}
END_TEST

START_TEST(build_id_agrees_with_elf_image)
{
        _cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct object o;
        struct error err;

        ck_assert_int_eq(object_read_fd(fd, &o, &err), ST_OK);
        ck_assert_int_eq(elf_image_open("/proc/self/exe", &img, &err), ST_OK);
        ck_assert_uint_gt(img.build_id.size, 0);
        ck_assert(build_id_equal(&o.build_id, &img.build_id));
        object_deinit(&o);
}
END_TEST

START_TEST(truncated_files_are_refused_or_read)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct error err;
        size_t refused = 0;

        ck_assert_int_eq(file_map_open("/proc/self/exe", LIMIT_OBJECT_BYTES, &map, &err), ST_OK);
        for (size_t n = 0; n < 2048; n++) {
                /* A copy of exactly its size, so that AddressSanitizer detects overreads. */
                _cleanup_free_ uint8_t *cut = malloc(n ? n : 1);
                struct object o;

                memcpy(cut, map.data, n);
                if (object_read_memory(cut, n, &o, &err) == ST_OK)
                        object_deinit(&o);
                else
                        refused++;
        }
        ck_assert_uint_ge(refused, 64); /* at least all cuts after the header */
}
END_TEST

START_TEST(mapped_file_is_cached_for_ended_processes)
{
        _cleanup_close_ int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_buf_ struct buf text;
        struct object_cache cache = { 0 };
        const struct proc_mapping *mapping = NULL;
        const struct object *vdso = NULL, *own;
        struct proc_maps maps;
        struct error err;

        buf_init(&text, MiB(1));
        ck_assert_int_eq(file_read("/proc/self/maps", &text, &err), ST_OK);
        ck_assert_int_eq(proc_maps_parse((char *)text.data, text.size, &maps, &err), ST_OK);
        mapping = proc_maps_find(&maps, (uintptr_t)&make_source);
        own = object_cache_get(&cache, proc_fd, mapping);
        ck_assert_ptr_nonnull(own);
        ck_assert_ptr_eq(object_cache_get(&cache, proc_fd, mapping), own); /* read only once */
        ck_assert_uint_eq(cache.count, 1);
        for (size_t i = 0; i < maps.count; i++)
                if (strcmp(maps.items[i].path, "[vdso]") == 0)
                        vdso = object_cache_get(&cache, proc_fd, &maps.items[i]);
        ck_assert_ptr_nonnull(vdso);
        ck_assert_uint_gt(vdso->build_id.size, 0);
        /* The process has ended: the cached result for the same mapping is used. */
        ck_assert_ptr_eq(object_cache_get(&cache, -1, mapping), own);
        proc_maps_deinit(&maps);
        object_cache_deinit(&cache);
}
END_TEST

TEST_SUITE("agent_object", addresses_of_every_layout_match_symbol_table, addresses_of_lld_and_gold_match_symbol_table,
           byte_of_shared_page_belongs_to_its_segment, build_id_agrees_with_elf_image,
           truncated_files_are_refused_or_read, mapped_file_is_cached_for_ended_processes)
