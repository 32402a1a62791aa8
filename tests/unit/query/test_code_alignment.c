/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of two builds beside each other: without addresses, by functions, and of random code all once, in order,
 * with as many equal ones as in a longest common subsequence. */
#include <stdlib.h>
#include <string.h>

#include "query/engine/code_alignment.h"
#include "tests/support/random_draw.h"
#include "tests/support/suite.h"

#define MOST_INSTRUCTIONS 60
#define MOST_RANGES 4

/* Code of one side, of instructions that are words of a text, as in "push;call f;jmp". */
struct made_code {
        struct code_range ranges[MOST_RANGES];
        struct code_instruction instructions[MOST_INSTRUCTIONS];
        const char *range_names[MOST_RANGES];
        const char *target_names[MOST_INSTRUCTIONS];
        char texts[MOST_INSTRUCTIONS][40];
        struct disassembly code;
};

static struct made_code sides[2];
static struct code_alignment alignment;
static struct work_meter meter;

static enum status no_interruption(void *context, struct error *err)
{
        (void)context;
        (void)err;
        return ST_OK;
}

static void start_code(struct made_code *m)
{
        *m = (struct made_code){ 0 };
        m->code = (struct disassembly){ .ranges = m->ranges, .instructions = m->instructions };
}

static struct code_instruction *add_instruction(struct made_code *m, const char *mnemonic, const char *operands)
{
        const uint32_t i = m->code.instruction_count++;

        ck_assert_uint_lt(i, MOST_INSTRUCTIONS);
        ck_assert_uint_gt(m->code.range_count, 0);
        snprintf(m->texts[i], sizeof m->texts[i], "%s", operands);
        m->instructions[i] = (struct code_instruction){
                .address = 0x1000 + 4 * (uint64_t)i, .mnemonic = mnemonic, .operands = m->texts[i], .size = 4
        };
        m->ranges[m->code.range_count - 1].count++;
        return &m->instructions[i];
}

static void add_range(struct made_code *m, const char *name)
{
        m->range_names[m->code.range_count] = name;
        m->ranges[m->code.range_count++].first = m->code.instruction_count;
}

static void align_sides(void)
{
        struct code_side both[2];
        struct error err;

        for (unsigned i = 0; i < 2; i++)
                both[i] = (struct code_side){ &sides[i].code, sides[i].range_names, sides[i].target_names };
        work_meter_init(&meter, no_interruption, NULL);
        ck_assert_msg(code_alignment_make(both, &meter, &alignment, &err) == ST_OK, "%s", err.text);
}

static void end_alignment(void)
{
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), alignment.memory.bytes);
        code_alignment_deinit(&alignment);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
}

/* ---- without addresses ---- */

static void check_text(const struct code_instruction *in, const char *target_name, const char *expected)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 1000);
        code_put_without_addresses(in, target_name, &b);
        ck_assert_str_eq(buf_cstr(&b), expected);
}

START_TEST(addresses_are_left_out_and_constants_are_not)
{
        struct code_instruction in = { .address = 0x401000, .mnemonic = "mov", .flow = FLOW_NEXT };

        in.operands = "dword ptr [rbp - 0x14], edi";
        check_text(&in, NULL, "mov dword ptr [rbp - 0x14], edi");
        in.operands = "r8d, 0xff";
        check_text(&in, NULL, "mov r8d, 0xff");
        in.operands = "edi, 0x402010"; /* of a program at a fixed address */
        check_text(&in, NULL, "mov edi, *");
        in.operands = "rax, 0xdeadbeefcafe";
        check_text(&in, NULL, "mov rax, 0xdeadbeefcafe");
        in.has_target = true;
        in.target = 0x404014;
        in.operands = "dword ptr [rip + 0x2ed3], 0x10";
        check_text(&in, NULL, "mov dword ptr [rip + *], 0x10");
        in.operands = "$0x10, 0x2ed3(%rip)";
        check_text(&in, NULL, "mov $0x10, *(%rip)");
        in.operands = "dword ptr [rip - 0x2ed3], 0x10";
        check_text(&in, NULL, "mov dword ptr [rip + *], 0x10");
        in.operands = "$-0x10, -0x2ed3(%rip)";
        check_text(&in, NULL, "mov $-0x10, *(%rip)");
        in.operands = "";
        check_text(&in, NULL, "mov ");
}
END_TEST

START_TEST(a_branch_has_the_name_of_another_function_and_no_address_within_its_own)
{
        struct code_instruction in = {
                .address = 0x1000, .target = 0x1180, .has_target = true, .mnemonic = "call", .flow = FLOW_CALL
        };

        in.operands = "0x1180";
        check_text(&in, "hash", "call hash");
        check_text(&in, NULL, "call *");
        in.mnemonic = "cbz";
        in.operands = "w0, #0x1180";
        check_text(&in, NULL, "cbz w0, #*");
}
END_TEST

/* ---- functions ---- */

static void check_pair(uint32_t i, uint32_t before, uint32_t after)
{
        ck_assert_uint_lt(i, alignment.pair_count);
        ck_assert_uint_eq(alignment.pairs[i].before, before);
        ck_assert_uint_eq(alignment.pairs[i].after, after);
}

static void add_functions(struct made_code *m, const char *first, const char *second, const char *third)
{
        const char *const names[] = { first, second, third };

        start_code(m);
        for (unsigned i = 0; i < 3 && names[i]; i++) {
                add_range(m, names[i]);
                add_instruction(m, "ret", "");
        }
}

START_TEST(functions_are_partners_by_name_or_because_no_others_are_left)
{
        add_functions(&sides[0], "a", "b", "c");
        add_functions(&sides[1], "c", "a", "renamed");
        align_sides();
        ck_assert_uint_eq(alignment.pair_count, 3);
        check_pair(0, 2, 0);
        check_pair(1, 0, 1);
        check_pair(2, 1, 2);
        end_alignment();

        add_functions(&sides[0], "a", "gone", "lost");
        add_functions(&sides[1], "new", "a", NULL);
        align_sides();
        ck_assert_uint_eq(alignment.pair_count, 4);
        check_pair(0, NO_CODE, 0);
        check_pair(1, 0, 1);
        check_pair(2, 1, NO_CODE);
        check_pair(3, 2, NO_CODE);
        ck_assert_uint_eq(alignment.rows[alignment.pairs[0].first].before, NO_CODE);
        ck_assert_uint_eq(alignment.rows[alignment.pairs[0].first].after, 0);
        ck_assert_uint_eq(alignment.rows[alignment.pairs[3].first].before, 2);
        end_alignment();
}
END_TEST

START_TEST(a_side_without_code_leaves_the_other_alone)
{
        start_code(&sides[0]);
        add_functions(&sides[1], "a", NULL, NULL);
        align_sides();
        ck_assert_uint_eq(alignment.pair_count, 1);
        ck_assert_uint_eq(alignment.row_count, 1);
        check_pair(0, NO_CODE, 0);
        end_alignment();
}
END_TEST

/* ---- random code ---- */

static size_t draw_code(struct made_code *m, unsigned kinds, char *letters)
{
        static const char *const mnemonics[] = { "push", "mov", "add", "sub", "xor", "cmp", "ret", "nop" };
        const size_t count = (size_t)(draw_uniform() * MOST_INSTRUCTIONS);

        start_code(m);
        add_range(m, "work");
        for (size_t i = 0; i < count; i++) {
                const unsigned kind = (unsigned)(draw_uniform() * kinds);

                letters[i] = (char)kind;
                add_instruction(m, mnemonics[kind], "eax");
        }
        return count;
}

static unsigned count_common(const char *before, size_t n, const char *after, size_t m)
{
        unsigned best[MOST_INSTRUCTIONS + 1][MOST_INSTRUCTIONS + 1] = { 0 };

        for (size_t i = 1; i <= n; i++)
                for (size_t k = 1; k <= m; k++)
                        best[i][k] = before[i - 1] == after[k - 1]     ? best[i - 1][k - 1] + 1
                                     : best[i - 1][k] > best[i][k - 1] ? best[i - 1][k]
                                                                       : best[i][k - 1];
        return best[n][m];
}

/* @return the number of rows with equal instructions. */
static unsigned check_rows(const char *before, size_t n, const char *after, size_t m)
{
        uint32_t next[2] = { 0 };
        unsigned equal = 0;

        for (uint32_t i = 0; i < alignment.row_count; i++) {
                const struct code_row *r = &alignment.rows[i];

                ck_assert(r->before != NO_CODE || r->after != NO_CODE);
                if (r->before != NO_CODE)
                        ck_assert_uint_eq(r->before, next[0]++);
                if (r->after != NO_CODE)
                        ck_assert_uint_eq(r->after, next[1]++);
                if (r->before == NO_CODE || r->after == NO_CODE) {
                        ck_assert(!r->is_changed);
                        continue;
                }
                ck_assert(r->is_changed == (before[r->before] != after[r->after]));
                equal += !r->is_changed;
        }
        ck_assert_uint_eq(next[0], n);
        ck_assert_uint_eq(next[1], m);
        return equal;
}

static bool has_unique(const char *before, size_t n, const char *after, size_t m, unsigned kinds)
{
        for (unsigned kind = 0; kind < kinds; kind++) {
                size_t counts[2] = { 0 };

                for (size_t i = 0; i < n; i++)
                        counts[0] += (unsigned)before[i] == kind;
                for (size_t i = 0; i < m; i++)
                        counts[1] += (unsigned)after[i] == kind;
                if (counts[0] == 1 && counts[1] == 1)
                        return true;
        }
        return false;
}

/* Addresses differ in all of them, since instructions are at other places. */
START_TEST(each_instruction_is_in_one_row_and_as_many_are_equal_as_can_be)
{
        char before[MOST_INSTRUCTIONS], after[MOST_INSTRUCTIONS];
        unsigned complete = 0;

        random_state = 11;
        for (unsigned round = 0; round < 1000; round++) {
                const unsigned kinds = 1 + round % 8;
                const size_t n = draw_code(&sides[0], kinds, before), m = draw_code(&sides[1], kinds, after);
                const unsigned most = count_common(before, n, after, m);
                unsigned equal;

                align_sides();
                equal = check_rows(before, n, after, m);
                ck_assert_uint_le(equal, most);
                if (kinds <= 2 && !has_unique(before, n, after, m, kinds)) {
                        ck_assert_uint_eq(equal, most);
                        complete++;
                }
                end_alignment();
        }
        ck_assert_uint_gt(complete, 50);
}
END_TEST

TEST_SUITE("code alignment", addresses_are_left_out_and_constants_are_not,
           a_branch_has_the_name_of_another_function_and_no_address_within_its_own,
           functions_are_partners_by_name_or_because_no_others_are_left, a_side_without_code_leaves_the_other_alone,
           each_instruction_is_in_one_row_and_as_many_are_equal_as_can_be)
