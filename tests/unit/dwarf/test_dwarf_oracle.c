/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares Cairn's DWARF reader with libdw: every range, frame, name, file and line of whole files. Files: this
 * program; the debug files of libc and python3.11 if installed; and the files of $CAIRN_ORACLE_FILES, separated by
 * colons (FILE or FILE,DWZ-FILE), which `make check-oracle` sets.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "symbolizer/sources/dwarf_extract.h"
#include "tests/support/compare_tables.h"
#include "tests/support/libdw_extract.h"
#include "tests/support/suite.h"

struct side {
        struct symbol_table table;
        enum symbol_quality quality;
        uint64_t damaged;
};

static void extract(const struct elf_image *img, const struct elf_image *alt, bool ours, struct side *ret)
{
        struct symbol_table_builder b;
        struct dwarf_summary summary;
        struct code_map code;
        struct error err = { 0 };
        enum status st;

        *ret = (struct side){ 0 };
        ck_assert_int_eq(code_map_from_image(img, &code, &err), ST_OK);
        symbol_table_builder_init(&b);
        if (ours) {
                st = dwarf_extract(&(struct dwarf_input){ .img = img, .altlink = alt, .code = &code }, &b, &summary,
                                   &err);
                ret->quality = summary.quality;
                ret->damaged = summary.damaged_units;
        } else {
                st = libdw_extract(img, alt, &code, &b, true, &ret->quality, &err);
        }
        ck_assert_msg(st == ST_OK, "%s: %s", img->name, err.text);
        ck_assert_int_eq(symbol_table_builder_finish(&b, &ret->table, &err), ST_OK);
        symbol_table_builder_deinit(&b);
        code_map_deinit(&code);
}

struct differing {
        const struct side *ours, *theirs;
        unsigned count;
};

static void report_difference(void *context, const struct table_difference *d)
{
        struct differing *c = context;
        char text[1000];

        if (c->count++ >= 5)
                return;
        describe_range(&c->ours->table, d->a, text, sizeof text);
        printf("# 0x%llx-0x%llx\n#   ours:  %s\n", (unsigned long long)d->start, (unsigned long long)d->end, text);
        describe_range(&c->theirs->table, d->b, text, sizeof text);
        printf("#   libdw: %s\n", text);
}

static void compare_file(const char *path, const char *alt_path)
{
        _cleanup_elf_image_ struct elf_image img = { 0 }, alt = { 0 };
        struct side ours, theirs;
        struct differing context = { &ours, &theirs, 0 };
        struct error err;
        uint64_t bytes;

        ck_assert_msg(elf_image_open(path, &img, &err) == ST_OK, "%s", err.text);
        if (alt_path)
                ck_assert_msg(elf_image_open(alt_path, &alt, &err) == ST_OK, "%s", err.text);
        extract(&img, alt_path ? &alt : NULL, true, &ours);
        extract(&img, alt_path ? &alt : NULL, false, &theirs);
        bytes = compare_tables(&ours.table, &theirs.table, report_difference, &context);
        printf("# %s: %u ranges, %u chains, %u stretches of %llu bytes differ\n", path, ours.table.range_count,
               ours.table.chain_count, context.count, (unsigned long long)bytes);
        ck_assert_uint_gt(ours.table.range_count, 0);
        ck_assert_uint_eq(ours.damaged, 0);
        ck_assert_int_eq(ours.quality, theirs.quality);
        ck_assert_uint_eq(bytes, 0);
        symbol_table_deinit(&ours.table);
        symbol_table_deinit(&theirs.table);
}

START_TEST(this_program_agrees_with_libdw)
{
        compare_file("/proc/self/exe", NULL);
}
END_TEST

static void compare_debug_file_of(const char *path)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        char hex[BUILD_ID_HEX_MAX], debug[256];

        if (elf_image_open(path, &img, NULL) || !img.build_id.size)
                return;
        build_id_hex(&img.build_id, hex);
        snprintf(debug, sizeof debug, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
        if (access(debug, R_OK) == 0)
                compare_file(debug, NULL);
}

START_TEST(debian_debug_files_agree_with_libdw)
{
        compare_debug_file_of("/lib/x86_64-linux-gnu/libc.so.6");
        compare_debug_file_of("/usr/bin/python3.11");
}
END_TEST

START_TEST(specified_files_agree_with_libdw)
{
        const char *named = getenv("CAIRN_ORACLE_FILES");
        _cleanup_free_ char *list = strdup(named ? named : "");
        char *save = NULL;

        for (char *file = strtok_r(list, ":", &save); file; file = strtok_r(NULL, ":", &save)) {
                char *alt = strchr(file, ',');

                if (alt)
                        *alt++ = 0;
                compare_file(file, alt);
        }
}
END_TEST

TEST_SUITE("dwarf_oracle", this_program_agrees_with_libdw, debian_debug_files_agree_with_libdw,
           specified_files_agree_with_libdw)
