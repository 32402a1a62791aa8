/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sampling/processes/kallsyms.h"
#include "sampling/processes/kernel.h"
#include "tests/support/suite.h"

static const char TEXT[] = "ffffffff81000000 T startup_64\n"
                           "ffffffff81000000 T _stext\n"
                           "ffffffff81000000 T _text\n"
                           "ffffffff81000200 t __helper\n"
                           "ffffffff81000200 t helper\n"
                           "ffffffff81000300 W weak_name\n"
                           "ffffffff81000300 t local_name\n"
                           "ffffffff81000400 T last_one\n"
                           "ffffffff81000500 D some_data\n"
                           "ffffffff81000600 d more_data\n"
                           "0000000000001000 A fixed_percpu_data\n"
                           "ffffffffc0002000 t module_start\t[ext4]\n"
                           "ffffffffc0002100 t module_next\t[ext4]\n"
                           "ffffffffc0001000 t other_module\t[xfs]\n"
                           "garbage\n"
                           "ffffffffc0009000 t bpf_prog_6deef7357e7b4530_sd\t[bpf]\n";

static struct kallsyms table;

static struct kernel_symbol find(uint64_t addr)
{
        struct kernel_symbol s = { .name = "none", .module = "none" };
        struct error err;

        if (!table.count)
                ck_assert_msg(kallsyms_parse(TEXT, strlen(TEXT), &table, &err) == ST_OK, "%s", err.text);
        (void)!kallsyms_find(&table, addr, &s);
        return s;
}

START_TEST(symbol_ends_at_next_symbol)
{
        ck_assert_str_eq(find(0xffffffff810001ff).name, "startup_64");
        ck_assert_str_eq(find(0xffffffff81000200).name, "helper");
        ck_assert_str_eq(find(0xffffffff81000400).name, "last_one");
        ck_assert_str_eq(find(0xffffffff810004ff).name, "last_one");
}
END_TEST

START_TEST(data_symbol_ends_code)
{
        ck_assert_str_eq(find(0xffffffff81000500).name, "none");
        ck_assert_str_eq(find(0xffffffff81000700).name, "none");
        ck_assert_str_eq(find(0xfff).name, "none");
        ck_assert_str_eq(find(0).name, "none");
}
END_TEST

START_TEST(preferred_name_of_several_wins)
{
        ck_assert_str_eq(find(0xffffffff81000000).name, "startup_64"); /* fewer underscores */
        ck_assert_str_eq(find(0xffffffff81000210).name, "helper");
        ck_assert_str_eq(find(0xffffffff81000310).name, "local_name"); /* local before weak */
}
END_TEST

START_TEST(unsorted_modules_are_distinguished)
{
        ck_assert_str_eq(find(0xffffffffc0002050).name, "module_start");
        ck_assert_str_eq(find(0xffffffffc0002050).module, "ext4");
        ck_assert_str_eq(find(0xffffffffc0001050).module, "xfs");
        ck_assert_str_eq(find(0xffffffffc0009000).module, "bpf");
        ck_assert_str_eq(find(0xffffffff81000000).module, "");
        ck_assert_uint_eq(find(0xffffffff81000000).module_index, 0);
        ck_assert_uint_ne(find(0xffffffffc0001050).module_index, find(0xffffffffc0002050).module_index);
}
END_TEST

START_TEST(symbol_does_not_extend_over_gap)
{
        ck_assert_str_eq(find(0xffffffffc0009000 + (2 << 20)).name, "none");
        ck_assert_str_eq(find(UINT64_MAX).name, "none");
}
END_TEST

START_TEST(text_address_is_that_of_text_symbol)
{
        (void)find(0);
        ck_assert_uint_eq(table.text_addr, 0xffffffff81000000);
}
END_TEST

START_TEST(hidden_addresses_are_reported)
{
        static const char hidden[] = "0000000000000000 T startup_64\n0000000000000000 t helper\n";
        struct kallsyms k = { .count = 3 };
        struct error err = { 0 };

        ck_assert_int_eq(kallsyms_parse(hidden, strlen(hidden), &k, &err), ST_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(err.text, "kptr_restrict"));
        ck_assert_uint_eq(k.count, 3);
        ck_assert_int_eq(kallsyms_parse("", 0, &k, &err), ST_NOT_FOUND);
}
END_TEST

START_TEST(kernel_relocation_offset_is_read)
{
        static const char note[] = "OSRELEASE=6.1.0\nPAGESIZE=4096\nKERNELOFFSET=1e600000\nNUMBER(x)=1\n";
        uint64_t shift = 3;

        ck_assert(kernel_parse_shift(note, strlen(note), &shift));
        ck_assert_uint_eq(shift, 0x1e600000);
        shift = 3;
        ck_assert(!kernel_parse_shift("PAGESIZE=4096\n", 14, &shift));
        ck_assert(!kernel_parse_shift("KERNELOFFSET=\n", 14, &shift));
        ck_assert(!kernel_parse_shift("XKERNELOFFSET=1\n", 16, &shift));
        ck_assert_uint_eq(shift, 3);
}
END_TEST

TEST_SUITE("kallsyms", symbol_ends_at_next_symbol, data_symbol_ends_code, preferred_name_of_several_wins,
           unsorted_modules_are_distinguished, symbol_does_not_extend_over_gap, text_address_is_that_of_text_symbol,
           hidden_addresses_are_reported, kernel_relocation_offset_is_read)
