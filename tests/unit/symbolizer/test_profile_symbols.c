/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolization of profiles from files: addresses in folded stacks, translation of offsets to addresses, files of a
 * directory.
 */
#include <check.h>
#include <string.h>

#include "profile-formats/folded.h"
#include "symbolizer/workers/object_facts.h"
#include "tests/support/suite.h"

static void assert_address(const char *text, uint64_t address, const char *object)
{
        struct folded_address a;

        ck_assert_msg(folded_parse_address(text, strlen(text), &a), "%s", text);
        ck_assert_uint_eq(a.address, address);
        ck_assert_uint_eq(a.object_size, strlen(object));
        ck_assert_int_eq(memcmp(a.object, object, a.object_size), 0);
}

START_TEST(every_form_of_address_is_parsed)
{
        struct folded_address a;
        static const char by_id[] = "[00112233445566778899aabbccddeeff+0x10]";

        assert_address("0x1f2c", 0x1f2c, "");
        assert_address("0xFFFFffff81000000", 0xffffffff81000000, "");
        assert_address("[/lib/libfoo.so+0x1f2c]", 0x1f2c, "/lib/libfoo.so");
        assert_address("[libstdc++.so.6+0x1]", 1, "libstdc++.so.6");
        assert_address("/lib/libfoo.so+0x1f2c", 0x1f2c, "/lib/libfoo.so");
        assert_address("0x1f2c [libfoo.so]", 0x1f2c, "libfoo.so");
        ck_assert(folded_parse_address(by_id, strlen(by_id), &a));
        ck_assert_uint_eq(a.build_id.size, 16);
}
END_TEST

START_TEST(names_are_not_addresses)
{
        static const char *const names[] = { "",          "main",         "0x",        "0xg1",   "malloc+0x20",
                                             "[unknown]", "[a+0x]",       "[+0x10]",   "0x12 [", "0x12 ",
                                             "0x12 []",   "[0x12]",       "0x1 2 [a]", "[a+12]", "0x11223344556677889",
                                             "/lib/a+0x", "operator+/0x1" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                struct folded_address a;

                ck_assert_msg(!folded_parse_address(names[i], strlen(names[i]), &a), "%s", names[i]);
        }
}
END_TEST

START_TEST(equal_stacks_are_merged)
{
        static const char text[] = "a;[/x+0x1];b 1\na;0x2;c_[k] 2\na;[/x+0x1];b 4\n";
        _cleanup_buf_ struct buf b;
        struct profile p;

        buf_init(&b, 4096);
        ck_assert_int_eq(folded_decode_addresses(text, strlen(text), NULL, &p, NULL), ST_OK);
        ck_assert_int_eq(folded_encode(&p, NULL, NULL, &b, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&b), "a;0x1 [x];b 5\na;0x2;c_[k] 2\n");
        profile_deinit(&p);
}
END_TEST

static const struct object_facts program = {
        .is_elf = true,
        .has_code = true,
        .segment_count = 2,
        .segments = { { 0, 0x1000, 0x400000, 0x1000, false }, { 0x1000, 0x2000, 0x402000, 0x2100, true } },
};
static const struct object_facts debug_file = {
        .is_elf = true,
        .segment_count = 2,
        .segments = { { 0, 0x400, 0, 0x1000, false }, { 0x400, 0, 0x2040, 0x1fd0, true } },
};

START_TEST(offsets_are_translated_by_their_segment)
{
        const struct object_mapping any = { 0 };
        uint64_t address = 7;

        ck_assert(object_facts_translate_offset(&program, &any, 0x1234, &address));
        ck_assert_uint_eq(address, 0x402234);
        ck_assert(!object_facts_translate_offset(&program, &any, 0x3000, &address));
        ck_assert_uint_eq(address, 0x402234); /* unchanged on failure */
}
END_TEST

START_TEST(offset_past_file_end_may_be_a_code_address)
{
        const struct object_mapping any = { 0 };
        uint64_t address;

        ck_assert(object_facts_translate_offset(&program, &any, 0x402010, &address));
        ck_assert_uint_eq(address, 0x402010);
        ck_assert(!object_facts_translate_offset(&program, &any, 0x400010, &address)); /* not executable */
}
END_TEST

START_TEST(debug_file_requires_mapping_of_all_its_code)
{
        const struct object_mapping whole = { 0x1000, 0x3000 }, part = { 0x1000, 0x1000 }, unknown = { 0x1000, 0 };
        uint64_t address;

        ck_assert(object_facts_translate_offset(&debug_file, &whole, 0x1044, &address));
        ck_assert_uint_eq(address, 0x2044);
        ck_assert(!object_facts_translate_offset(&debug_file, &part, 0x1044, &address));
        ck_assert(!object_facts_translate_offset(&debug_file, &unknown, 0x1044, &address));
        ck_assert(!object_facts_translate_offset(&debug_file, &whole, 0x4000, &address));
        ck_assert(!object_facts_translate_offset(&debug_file, &whole, 0xfff, &address));
}
END_TEST

TEST_SUITE("profile_symbols", every_form_of_address_is_parsed, names_are_not_addresses, equal_stacks_are_merged,
           offsets_are_translated_by_their_segment, offset_past_file_end_may_be_a_code_address,
           debug_file_requires_mapping_of_all_its_code)
