/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of the disassembly worker: each file of the corpus is accepted or refused according to its folder. */
#include <dirent.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "disassembler/disassembly.h"
#include "tests/support/suite.h"

static enum status read_corpus_file(const char *dir, const char *name, struct disassembly *ret)
{
        _cleanup_free_ char *path = path_join(dir, name);
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, MiB(1));
        ck_assert_msg(file_read(path, &b, &err) == ST_OK, "%s", err.text);
        return disassembly_read(b.data, b.size, ret, &err);
}

static unsigned count_corpus(const char *dir, bool good)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        struct dirent *entry;
        unsigned count = 0;

        ck_assert_ptr_nonnull(d);
        while ((entry = readdir(d))) {
                _cleanup_disassembly_ struct disassembly code = { .range_count = 77 };

                if (entry->d_name[0] == '.')
                        continue;
                ck_assert_msg((read_corpus_file(dir, entry->d_name, &code) == ST_OK) == good, "%s/%s", dir,
                              entry->d_name);
                if (!good)
                        ck_assert_uint_eq(code.range_count, 77); /* unchanged on failure */
                count++;
        }
        return count;
}

START_TEST(good_answers_are_read_and_bad_ones_refused)
{
        ck_assert_uint_ge(count_corpus("tests/corpus/disassembly/good", true), 3);
        ck_assert_uint_ge(count_corpus("tests/corpus/disassembly/bad", false), 13);
}
END_TEST

START_TEST(an_answer_is_read_as_it_was_written)
{
        struct code_range range = { .start = 0x10, .end = 0x20, .symbol = "f", .count = 2, .is_cut = true };
        struct code_instruction items[2] = {
                { .address = 0x10, .bytes = (const uint8_t *)"\x90", .size = 1, .mnemonic = "nop", .operands = "" },
                { .address = 0x11,
                  .target = 0x16,
                  .bytes = (const uint8_t *)"\xe8\0\0\0\0",
                  .size = 5,
                  .flow = FLOW_CALL,
                  .has_target = true,
                  .mnemonic = "call",
                  .operands = "0x16" },
        };
        const struct disassembly from = {
                .ranges = &range, .instructions = items, .range_count = 1, .instruction_count = 2
        };
        _cleanup_disassembly_ struct disassembly to = { 0 };
        _cleanup_buf_ struct buf b;

        buf_init(&b, KiB(1));
        disassembly_write(&from, &b);
        ck_assert_int_eq(disassembly_read(b.data, b.size, &to, NULL), ST_OK);
        ck_assert_uint_eq(to.range_count, 1);
        ck_assert_str_eq(to.ranges[0].symbol, "f");
        ck_assert(to.ranges[0].is_cut);
        ck_assert_uint_eq(to.instructions[1].target, 0x16);
        ck_assert_int_eq(to.instructions[1].flow, FLOW_CALL);
        ck_assert_str_eq(to.instructions[1].operands, "0x16");
        ck_assert_mem_eq(to.instructions[1].bytes, "\xe8\0\0\0\0", 5);
        for (size_t cut = 0; cut < b.size; cut++)
                ck_assert_int_ne(disassembly_read(b.data, cut, &to, NULL), ST_OK);
}
END_TEST

TEST_SUITE("disassembly", good_answers_are_read_and_bad_ones_refused, an_answer_is_read_as_it_was_written)
