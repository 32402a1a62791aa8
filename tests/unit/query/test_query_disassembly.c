/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of instructions: docs/formats/query-api.md. tests/e2e/query/disassembly.t tests the instructions themselves. */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "disassembler/disassembly.h"
#include "query/engine/source_lines.h"
#include "query/query.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static struct store_fixture f;

static void set_up(void)
{
        store_fixture_begin(&f);
}

static void tear_down(void)
{
        store_fixture_end(&f);
}

/* A call at 0x100 of five bytes, and its return address. */
static enum status disassemble_call(void *context, const struct query_code_request *request, struct disassembly *ret,
                                    struct error *err)
{
        struct code_range range = { .start = 0x100, .end = 0x106, .symbol = "f", .count = 2 };
        struct code_instruction items[2] = {
                { .address = 0x100,
                  .target = 0x100,
                  .bytes = (const uint8_t *)"\xe8\xfb\xff\xff\xff",
                  .size = 5,
                  .flow = FLOW_CALL,
                  .has_target = true,
                  .mnemonic = "call",
                  .operands = "0x100" },
                { .address = 0x105, .bytes = (const uint8_t *)"\xc3", .size = 1, .mnemonic = "ret", .operands = "" },
        };
        const struct disassembly from = {
                .ranges = &range, .instructions = items, .range_count = 1, .instruction_count = 2
        };
        _cleanup_buf_ struct buf b;

        (void)context;
        ck_assert_uint_ge(request->address_count, 1);
        buf_init(&b, KiB(1));
        disassembly_write(&from, &b);
        return disassembly_read(b.data, b.size, ret, err);
}

static enum status look_up_nothing(void *context, const struct build_id *id, const uint64_t *addresses, size_t count,
                                   struct arena *texts, struct code_place *ret, struct error *err)
{
        (void)context;
        (void)id;
        (void)addresses;
        (void)texts;
        (void)err;
        for (size_t i = 0; i < count; i++)
                ret[i] = (struct code_place){ .function = "", .file = "", .outer = "" };
        return ST_OK;
}

static const char *get_param(void *context, const char *name)
{
        (void)context;
        return strcmp(name, "function_name") == 0 ? "f" : strcmp(name, "format") == 0 ? "csv" : NULL;
}

/* A function that calls itself, sampled at its call: callers and the leaf have the address of the call's last byte. */
START_TEST(recursion_counts_once_per_instruction)
{
        static const struct query_code code = { .disassemble = disassemble_call, .look_up = look_up_nothing };
        const struct query_input in = { .param = get_param, .now_unix_ns = STORE_FIXTURE_T0 + 1000, .code = &code };
        _cleanup_buf_ struct buf answer;
        struct query_answer info;
        struct test_profile t;
        struct error err;
        bool duplicate;
        uint32_t stack[3];

        test_profile_init(&t, STORE_FIXTURE_ID, "app");
        stack[0] = test_named_location(&t, true, 0x100, "f", "f.c", 1);
        stack[1] = stack[2] = test_named_location(&t, true, 0x104, "f", "f.c", 1);
        test_sample(&t, STORE_FIXTURE_T0, 7, stack, 3, NULL);
        test_sample(&t, STORE_FIXTURE_T0, 2, stack + 1, 1, NULL);
        check_ok(profile_store_append(f.store, &t.p, store_fixture_batch_id(1), &duplicate, &err), &err);
        test_profile_deinit(&t);
        buf_init(&answer, MiB(1));
        check_ok(query_run(f.store, "disassembly", &in, &answer, &info, &err), &err);
        ck_assert_ptr_nonnull(strstr(buf_cstr(&answer), ",0x100,e8fbffffff,call,0x100,9,9,"));
        ck_assert_ptr_nonnull(strstr(buf_cstr(&answer), ",0x105,c3,ret,,0,0,"));
}
END_TEST

#define LINES 200000

static enum status read_many_lines(void *context, const struct build_id *id, const char *path, bool may_fetch,
                                   struct buf *ret, struct error *err)
{
        (void)context;
        (void)id;
        (void)path;
        (void)may_fetch;
        (void)err;
        for (unsigned i = 1; i < LINES; i++)
                buf_printf(ret, "line %u\r\n", i);
        return buf_append_str(ret, "the last");
}

/* Adjacent instructions of an optimized function come from all over a file. */
START_TEST(source_lines_are_found_in_any_order)
{
        static const struct query_sources sources = { .read = read_many_lines };
        const struct build_id id = { .size = 1 };
        struct source_lines s;
        size_t n = 0;

        source_lines_load(&s, &sources, &id, "/x.c", false);
        ck_assert_int_eq(s.state, ST_OK);
        for (unsigned i = 0; i < 100000; i++) {
                ck_assert_mem_eq(source_lines_get(&s, LINES, &n), "the last", 8);
                ck_assert_uint_eq(n, 8);
                ck_assert_mem_eq(source_lines_get(&s, 1 + i, &n), "line ", 5);
        }
        ck_assert_mem_eq(source_lines_get(&s, 17, &n), "line 17", 7);
        ck_assert_uint_eq(n, 7);
        ck_assert_ptr_null(source_lines_get(&s, 0, &n));
        ck_assert_ptr_null(source_lines_get(&s, LINES + 1, &n));
        source_lines_deinit(&s);
        source_lines_deinit(&s);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("query disassembly", recursion_counts_once_per_instruction, source_lines_are_found_in_any_order)
