/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of V8 in invented memory, with the layout of Node.js 18: frames are read by the functions of the BPF program,
 * which this file compiles for user space.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sampling/runtimes/v8_name_cache.h"
#include "tests/support/fake_memory.h"
#include "tests/support/suite.h"

#define SMALL_OBJECTS 0x20000
static uint8_t bytes[SMALL_OBJECTS + 64 + LIMIT_V8_LINES + 1];
static struct fake_memory memory;
static uint64_t left;
static struct v8_objects objects;
static const struct v8_heap heap = { { fake_memory_read, &memory }, &objects, &left };
static struct v8_name_cache names;
static struct v8_location places[LIMIT_V8_INLINED];
static uint32_t count;
static struct v8_walk walk;

#define V8_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define V8_FUNCTION static
#include "bpf/v8_frame.h"

/* Instance types. */
enum {
        ONE_BYTE = 8,
        TWO_BYTE = 0,
        CONS = 9,
        SLICED = 11,
        EXTERNAL = 10,
        THIN = 13,
        ODDBALL = 131,
        SHARED = 257,
        SCOPE = 256,
        SCRIPT = 170,
        BYTECODE = 195,
        CODE = 240,
        ARRAY = 179,
};

/* Where things are. Objects are words with the low bits 01. */
#define AT(offset) (FAKE_MEMORY_START + (offset))
#define MAP(type) (AT(0x100 + (type)*16) + 1)
#define OBJECT(n) (AT(0x2000 + 0x100 * (n)) + 1)
#define FUNCTION OBJECT(0)
#define SHARED_INFO OBJECT(1)
#define SCOPE_INFO OBJECT(2)
#define SCRIPT_OBJECT OBJECT(3)
#define SOURCE OBJECT(4)
#define FILE_NAME OBJECT(5)
#define NAME OBJECT(6)
#define LONG_SOURCE (AT(SMALL_OBJECTS) + 1)
#define BYTECODES OBJECT(7)
#define POSITIONS OBJECT(8)
#define OTHER_SHARED OBJECT(9)
#define OTHER_NAME OBJECT(10)
#define DEOPTIMIZATION OBJECT(11)
#define LITERALS OBJECT(12)
#define INLINING OBJECT(13)
#define CODE_POSITIONS OBJECT(14)
#define TEXT(n) OBJECT(20 + (n))
#define UNDEFINED OBJECT(30)
#define GENERATED AT(0x10000) /* an object with code, whose instructions begin 128 bytes later */
#define INSTRUCTIONS (GENERATED + 128)
#define FRAME AT(0x18000)
#define HANDLERS AT(0x19000)
#define HANDLER AT(0x1a000)

static void put(uint64_t addr, uint64_t value)
{
        memcpy(bytes + (addr - FAKE_MEMORY_START), &value, sizeof value);
}

static void put_int(uint64_t addr, uint32_t value)
{
        memcpy(bytes + (addr - FAKE_MEMORY_START), &value, sizeof value);
}

static void put_bytes(uint64_t addr, const void *from, size_t n)
{
        memcpy(bytes + (addr - FAKE_MEMORY_START), from, n);
}

static void put_object(uint64_t object, unsigned type)
{
        put_int(MAP(type) - 1 + 12, type);
        put(object - 1, MAP(type));
}

static void put_field(uint64_t object, unsigned offset, uint64_t value)
{
        put(object - 1 + offset, value);
}

static uint64_t smi(int32_t value)
{
        return (uint64_t)(uint32_t)value << 32;
}

static void put_text(uint64_t object, const char *text)
{
        put_object(object, ONE_BYTE);
        put_int(object - 1 + 12, (uint32_t)strlen(text));
        put_bytes(object - 1 + 16, text, strlen(text));
}

static void put_byte_array(uint64_t object, const uint8_t *from, size_t n)
{
        put_object(object, ODDBALL); /* the type is not looked at */
        put_field(object, 8, smi((int32_t)n));
        put_bytes(object - 1 + 16, from, n);
}

static const char source[] = "let x;\n"                /* line 1 from 0 */
                             "function f(a) {\r\n"     /* line 2 from 7 */
                             "        for (;;)\r"      /* line 3 from 24 */
                             "                g(a);\n" /* line 4 from 41 */
                             "}\n";

/* A function f whose bytecode has positions at 0 (in line 2), 4 (the loop) and 9 (the call in line 4). */
static void set_up(void)
{
        /* Pairs of a difference of the offset, from -1, and of the position, which is (character + 1) << 1. */
        static const uint8_t positions[] = { 1 << 1 | 1,        2 * 2 * (10 + 1), 4 << 1 | 1,
                                             2 * 2 * (32 - 10), 5 << 1,           2 * 2 * (57 - 32) };
        const uint64_t scope[] = {
                smi(0), smi(1), smi(1), TEXT(0), smi(7), NAME, smi(-1), UNDEFINED, smi(17), smi(60)
        };

        memset(bytes, 0, sizeof bytes);
        v8_name_cache_deinit(&names);
        memory = (struct fake_memory){ bytes, sizeof bytes, 0 };
        left = 1 << 20;
        objects = (struct v8_objects){ .version = 10 << 8 | 2,
                                       .string_types = 128,
                                       .shared_type = SHARED,
                                       .script_type = SCRIPT,
                                       .scope_info_type = SCOPE,
                                       .bytecode_type = BYTECODE,
                                       .code_type = CODE,
                                       .stream_type = CODE,
                                       .interpreter_data_type = 162,
                                       .debug_info_type = 156,
                                       .shared_data = 8,
                                       .shared_name = 16,
                                       .shared_script = 32,
                                       .scope_slots = 8,
                                       .scope_locals_count = 2,
                                       .scope_first_local = 3,
                                       .script_source = 8,
                                       .script_name = 16,
                                       .positions = { 1, -1 },
                                       .bytecode_lines = 32,
                                       .bytecode_start = 56,
                                       .code_deoptimization = 16,
                                       .code_lines = 24,
                                       .code_start = 128,
                                       .code_size = 40,
                                       .literals_index = 2,
                                       .function_index = 6,
                                       .inlining_index = 7 };
        for (int i = 0; i < 256; i++)
                objects.bytecode_sizes[0][i] = 2;
        put_object(UNDEFINED, ODDBALL);
        put_object(FUNCTION, 200);
        put_field(FUNCTION, 24, SHARED_INFO);
        put_object(SHARED_INFO, SHARED);
        put_field(SHARED_INFO, 8, BYTECODES);
        put_field(SHARED_INFO, 16, SCOPE_INFO);
        put_field(SHARED_INFO, 32, SCRIPT_OBJECT);
        put_object(SCOPE_INFO, SCOPE);
        put_text(TEXT(0), "variable");
        for (unsigned i = 0; i < sizeof scope / sizeof *scope; i++)
                put_field(SCOPE_INFO, 8 + 8 * i, scope[i]);
        put_field(SCOPE_INFO, 8 + 8 * sizeof scope / sizeof *scope, SCOPE_INFO);
        put_text(NAME, "f");
        put_object(SCRIPT_OBJECT, SCRIPT);
        put_field(SCRIPT_OBJECT, 8, SOURCE);
        put_field(SCRIPT_OBJECT, 16, FILE_NAME);
        put_text(SOURCE, source);
        put_text(FILE_NAME, "/srv/app.js");
        put_object(BYTECODES, BYTECODE);
        put_field(BYTECODES, 8, smi(20));
        put_field(BYTECODES, 32, POSITIONS);
        put_byte_array(POSITIONS, positions, sizeof positions);
}

static uint64_t at_bytecode(uint32_t offset)
{
        return V8_POSITION_BYTECODE | (56 - 1 + offset);
}

static uint64_t interval = 1;

static enum v8_frame_state locate(uint64_t position)
{
        return v8_name_cache_locate(&names, &heap, interval, SHARED_INFO, position, places, &count);
}

START_TEST(frame_has_name_file_line_and_start_of_its_function)
{
        set_up();
        ck_assert_int_eq(locate(at_bytecode(10)), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 1);
        ck_assert_str_eq(places[0].name, "f");
        ck_assert_str_eq(places[0].file, "/srv/app.js");
        ck_assert_uint_eq(places[0].line, 4);
        ck_assert_uint_eq(places[0].start_line, 2);
        ck_assert_int_eq(locate(at_bytecode(4)), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 3);
        ck_assert_int_eq(locate(0), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 0); /* unknown */
}
END_TEST

START_TEST(modules_named_by_url_have_their_path)
{
        set_up();
        put_text(FILE_NAME, "file:///srv/a%20b%C3%BC.mjs");
        ck_assert_int_eq(locate(0), V8_FRAME_FOUND);
        ck_assert_str_eq(places[0].file, "/srv/a bü.mjs");
}
END_TEST

START_TEST(function_without_a_name_has_the_inferred_one)
{
        set_up();
        put_text(NAME, "");
        put_text(TEXT(1), "exports.f");
        put_field(SCOPE_INFO, 8 + 8 * 7, TEXT(1));
        ck_assert_int_eq(locate(0), V8_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "exports.f");
        ck_assert_uint_eq(places[0].start_line, 2);
        set_up();
        put_field(SHARED_INFO, 16, TEXT(0)); /* not compiled, or built in */
        ck_assert_int_eq(locate(0), V8_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "variable");
        ck_assert_uint_eq(places[0].start_line, 0);
}
END_TEST

START_TEST(moved_object_is_unreadable_and_another_one_is_read_again)
{
        set_up();
        ck_assert_int_eq(locate(0), V8_FRAME_FOUND);
        put_object(SHARED_INFO, ODDBALL);
        interval++;
        ck_assert_int_eq(locate(0), V8_FRAME_UNREADABLE);
        put_object(SHARED_INFO, SHARED);
        put_field(SHARED_INFO, 16, TEXT(0));
        interval++;
        ck_assert_int_eq(locate(0), V8_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "variable");
}
END_TEST

START_TEST(lines_that_may_not_be_read_now_are_read_later)
{
        set_up();
        left = 8;
        ck_assert_int_eq(locate(at_bytecode(10)), V8_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "f");
        ck_assert_uint_eq(places[0].line, 0);
        left = 1 << 20;
        interval++;
        ck_assert_int_eq(locate(at_bytecode(10)), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 4);
}
END_TEST

/* @return the line of a place in a script of empty lines. */
static uint32_t find_line_of_empty_ones(uint32_t lines)
{
        set_up();
        left = 4 << 20;
        put_object(LONG_SOURCE, ONE_BYTE);
        memcpy(bytes + SMALL_OBJECTS + 12, &lines, sizeof lines);
        memset(bytes + SMALL_OBJECTS + 16, '\n', lines);
        put_field(SCRIPT_OBJECT, 8, LONG_SOURCE);
        ck_assert_int_eq(locate(at_bytecode(10)), V8_FRAME_FOUND);
        return places[0].line;
}

/* Lines take four bytes of memory each, so a script of nothing else would take four times its size. */
START_TEST(number_of_lines_is_bounded)
{
        ck_assert_uint_gt(find_line_of_empty_ones(LIMIT_V8_LINES), 0);
        ck_assert_uint_eq(find_line_of_empty_ones(LIMIT_V8_LINES + 1), 0);
}
END_TEST

static void check_text(uint64_t string, const char *expected)
{
        char *text = v8_heap_read_text(&heap, string, LIMIT_V8_NAME);

        if (expected)
                ck_assert_str_eq(text, expected);
        else
                ck_assert_ptr_null(text);
        free(text);
}

START_TEST(strings_of_all_forms_become_utf_8)
{
        static const uint16_t wide[] = { 'a', 0x8a9e, 0xd83d, 0xde00, 0xd83d };

        set_up();
        put_text(TEXT(0), "gr\xf6\xdf"
                          "e");
        check_text(TEXT(0), "größe");
        put_object(TEXT(1), TWO_BYTE);
        put_int(TEXT(1) - 1 + 12, 5);
        put_bytes(TEXT(1) - 1 + 16, wide, sizeof wide);
        check_text(TEXT(1), "a語😀\xef\xbf\xbd");
        put_object(TEXT(2), CONS);
        put_int(TEXT(2) - 1 + 12, 10);
        put_field(TEXT(2), 16, TEXT(0));
        put_field(TEXT(2), 24, TEXT(1));
        check_text(TEXT(2), "größea語😀\xef\xbf\xbd");
        put_object(TEXT(3), SLICED);
        put_int(TEXT(3) - 1 + 12, 3);
        put_field(TEXT(3), 16, TEXT(0));
        put_field(TEXT(3), 24, smi(1));
        check_text(TEXT(3), "röß");
        put_object(TEXT(4), THIN);
        put_int(TEXT(4) - 1 + 12, 3);
        put_field(TEXT(4), 16, TEXT(3));
        check_text(TEXT(4), "röß");
        put_object(TEXT(5), EXTERNAL);
        put_int(TEXT(5) - 1 + 12, 4);
        put_field(TEXT(5), 24, TEXT(0) - 1 + 16);
        check_text(TEXT(5), "größ");
        check_text(SHARED_INFO, NULL);
}
END_TEST

START_TEST(endless_strings_end)
{
        set_up();
        put_object(TEXT(0), CONS);
        put_int(TEXT(0) - 1 + 12, 100);
        put_field(TEXT(0), 16, TEXT(0));
        put_field(TEXT(0), 24, TEXT(0));
        check_text(TEXT(0), NULL);
        put_object(TEXT(1), SLICED);
        put_int(TEXT(1) - 1 + 12, 100);
        put_field(TEXT(1), 16, TEXT(1));
        check_text(TEXT(1), NULL);
        ck_assert_uint_lt(memory.reads, 10000);
}
END_TEST

START_TEST(both_formats_of_position_tables_are_read)
{
        static const uint8_t one_mark[] = { 0x01, 0x04, 0x05, 0x90, 0x01 },
                             two_marks[] = { 0x02, 0x04, 0x0b, 0x90, 0x01 };
        const struct v8_position_format old = { 1, -1 }, new = { 2, -1 }, oldest = { 1, 0 };

        ck_assert_int_eq(v8_positions_find(&old, one_mark, 5, -1).offset, 0);
        ck_assert_int_eq(v8_positions_find(&old, one_mark, 5, 0).offset, 0);
        ck_assert_int_eq(v8_positions_find(&old, one_mark, 5, 1).offset, 36);
        ck_assert_int_eq(v8_positions_find(&oldest, one_mark, 5, 1).offset, 0);
        ck_assert_int_eq(v8_positions_find(&oldest, one_mark, 5, 2).offset, 36);
        ck_assert_int_eq(v8_positions_find(&new, two_marks, 5, 0).offset, 0);
        ck_assert_int_eq(v8_positions_find(&new, two_marks, 5, 1).offset, 36);
        ck_assert_int_eq(v8_positions_find(&old, one_mark, 4, 1).offset, -1); /* cut off */
        ck_assert_int_eq(v8_positions_find(&old, NULL, 0, 1).offset, -1);
        ck_assert_int_eq(v8_position_decode((uint64_t)8 << 31 | 6 << 1).inlining, 7);
        ck_assert_int_eq(v8_position_decode(1).offset, -1);
}
END_TEST

/* Code of f in which `other` is inlined at the call in line 4. */
static void put_code(void)
{
        /* Address 8: in f, line 2; 16: in `other`, at character 3 of the script. */
        static const uint8_t positions[] = { 9 << 1, 2 * 2 * 11, 8 << 1, 0, 0, 0, 0, 0, 0, 0 };
        uint8_t table[sizeof positions];
        uint64_t change = (((uint64_t)1 << 31 | 2 * 4) - 2 * 11) << 1;
        size_t n = 3;

        memcpy(table, positions, sizeof table);
        for (; change; change >>= 7)
                table[n++] = (uint8_t)((change & 127) | (change >> 7 ? 128 : 0));
        put_text(OTHER_NAME, "other");
        put_object(OTHER_SHARED, SHARED);
        put_field(OTHER_SHARED, 16, OTHER_NAME);
        put_field(OTHER_SHARED, 32, SCRIPT_OBJECT);
        put_object(GENERATED + 1, CODE);
        put_int(GENERATED + 40, 64);
        put(GENERATED + 16, DEOPTIMIZATION);
        put(GENERATED + 24, CODE_POSITIONS);
        put_byte_array(CODE_POSITIONS, table, n);
        put_object(DEOPTIMIZATION, ARRAY);
        put_field(DEOPTIMIZATION, 8, smi(8));
        put_field(DEOPTIMIZATION, 16 + 8 * 2, LITERALS);
        put_field(DEOPTIMIZATION, 16 + 8 * 6, SHARED_INFO);
        put_field(DEOPTIMIZATION, 16 + 8 * 7, INLINING);
        put_object(LITERALS, ARRAY);
        put_field(LITERALS, 8, smi(1));
        put_field(LITERALS, 16, OTHER_SHARED);
        put_object(INLINING, ARRAY);
        put_field(INLINING, 8, smi(16));
        put_field(INLINING, 16, (57 + 1) << 1);
        put_field(INLINING, 24, 0);
}

START_TEST(inlined_functions_precede_their_caller)
{
        set_up();
        put_code();
        ck_assert_int_eq(locate(INSTRUCTIONS + 12), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(places[0].line, 2);
        ck_assert_int_eq(locate(INSTRUCTIONS + 20), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 2);
        ck_assert_str_eq(places[0].name, "other");
        ck_assert_uint_eq(places[0].line, 1);
        ck_assert_str_eq(places[1].name, "f");
        ck_assert_uint_eq(places[1].line, 4);
        /* A return address belongs to the instruction before it. */
        ck_assert_int_eq(locate(INSTRUCTIONS + 16), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_eq(locate((INSTRUCTIONS + 16) | V8_POSITION_EXACT), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 2);
}
END_TEST

START_TEST(code_of_another_function_is_the_caller_without_a_frame_yet)
{
        set_up();
        put_code();
        put_field(DEOPTIMIZATION, 16 + 8 * 6, OTHER_SHARED);
        put_byte_array(CODE_POSITIONS, (const uint8_t[]){ 0 }, 0);
        ck_assert_int_eq(locate((INSTRUCTIONS + 2) | V8_POSITION_EXACT), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 2);
        ck_assert_str_eq(places[0].name, "other");
        ck_assert_str_eq(places[1].name, "f");
        ck_assert_uint_eq(places[1].line, 0);
        /* Not interrupted there: the code was replaced. */
        ck_assert_int_eq(locate(INSTRUCTIONS + 4), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 1);
        ck_assert_str_eq(places[0].name, "f");
}
END_TEST

START_TEST(inlining_in_a_cycle_ends)
{
        set_up();
        put_code();
        put_field(INLINING, 16, (uint64_t)1 << 31); /* a call in itself */
        ck_assert_int_eq(locate(INSTRUCTIONS + 20), V8_FRAME_FOUND);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(places[1].line, 0);
}
END_TEST

START_TEST(baseline_code_has_the_lines_of_its_bytecode)
{
        /* The prologue has 4 bytes of code, then each instruction of 2 bytes of bytecode has 4. */
        static const uint8_t ends[] = { 4, 4, 4, 4, 4, 4, 4 };

        set_up();
        put_code();
        put(GENERATED + 16, BYTECODES);
        put_byte_array(CODE_POSITIONS, ends, sizeof ends);
        for (unsigned i = 0; i < 20; i++)
                bytes[BYTECODES - 1 + 56 + i - FAKE_MEMORY_START] = 9; /* no prefix */
        ck_assert_int_eq(locate((INSTRUCTIONS + 4) | V8_POSITION_EXACT), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 2); /* offset 0 */
        ck_assert_int_eq(locate((INSTRUCTIONS + 12) | V8_POSITION_EXACT), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 3); /* offset 4 */
        ck_assert_int_eq(locate(INSTRUCTIONS + 28), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 4); /* offset 10 */
        ck_assert_int_eq(locate((INSTRUCTIONS + 1) | V8_POSITION_EXACT), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 0); /* before it */
        objects.bytecode_sizes[0][9] = 0;
        interval++;
        ck_assert_int_eq(locate((INSTRUCTIONS + 12) | V8_POSITION_EXACT), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 0);
}
END_TEST

START_TEST(loop_statement_is_no_line_in_maglev_code)
{
        static const uint8_t at_loop[] = { 1 << 1, 0x84, 0x01 }; /* 2 * 2 * (32 + 1) */

        set_up();
        put_code();
        put_byte_array(CODE_POSITIONS, at_loop, sizeof at_loop);
        ck_assert_int_eq(locate(INSTRUCTIONS + 12), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 3);
        objects.code_flags = 48;
        objects.maglev_kind = 11;
        put_int(GENERATED + 48, 0x120 | 11);
        interval++;
        ck_assert_int_eq(locate(INSTRUCTIONS + 12), V8_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 0);
}
END_TEST

static void put_frame(uint64_t offset, uint64_t array, uint64_t context)
{
        put(FRAME - 40, offset);
        put(FRAME - 32, array);
        put(FRAME - 16, FUNCTION);
        put(FRAME - 8, context);
        memset(&walk, 0, sizeof walk);
        walk.layout =
                (struct v8_layout){ .shared_type = SHARED, .map_type = 12, .function_shared = 24, .fp_bytecode = 32 };
        walk.fp = FRAME;
        walk.pc = HANDLER + 10;
}

START_TEST(frame_of_the_interpreter_has_its_bytecode_offset)
{
        set_up();
        put_frame(smi(60), BYTECODES, UNDEFINED);
        ck_assert_int_eq(v8_read_frame(&walk, 0, 0, 0), 1);
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_V8, SHARED_INFO));
        ck_assert_uint_eq(walk.words[1], V8_POSITION_BYTECODE | 60);
        ck_assert_uint_eq(walk.keeps_native, 0);
}
END_TEST

START_TEST(interrupted_handler_has_the_offset_in_registers)
{
        set_up();
        put_frame(smi(60), BYTECODES, UNDEFINED);
        walk.is_leaf = 1;
        bytes[BYTECODES + 64 - FAKE_MEMORY_START] = 5;
        put(HANDLERS + 5 * 8, HANDLER);
        ck_assert_int_eq(v8_read_frame(&walk, 64, BYTECODES, HANDLERS), 1);
        ck_assert_uint_eq(walk.words[1], V8_POSITION_BYTECODE | 64);
        ck_assert_uint_eq(walk.keeps_native, 0);
        /* The registers are in use for something else. */
        ck_assert_int_eq(v8_read_frame(&walk, 64, FUNCTION, HANDLERS), 1);
        ck_assert_uint_eq(walk.words[1], 0);
        ck_assert_uint_eq(walk.keeps_native, 1);
        ck_assert_int_eq(v8_read_frame(&walk, 63, BYTECODES, HANDLERS), 1);
        ck_assert_uint_eq(walk.words[1], 0);
}
END_TEST

START_TEST(frame_of_generated_code_has_its_address)
{
        set_up();
        put_frame(0, 0, UNDEFINED);
        walk.is_generated = 1;
        walk.pc = INSTRUCTIONS + 4;
        ck_assert_int_eq(v8_read_frame(&walk, 0, 0, 0), 1);
        ck_assert_uint_eq(walk.words[1], INSTRUCTIONS + 4);
        walk.is_leaf = 1;
        ck_assert_int_eq(v8_read_frame(&walk, 0, 0, 0), 1);
        ck_assert_uint_eq(walk.words[1], (INSTRUCTIONS + 4) | V8_POSITION_EXACT);
}
END_TEST

START_TEST(other_frames_stay_native)
{
        set_up();
        put_frame(smi(60), BYTECODES, 22); /* a Smi: the kind of a stub's frame */
        ck_assert_int_eq(v8_read_frame(&walk, 0, 0, 0), 0);
        put_frame(smi(60), BYTECODES, UNDEFINED);
        put_object(SHARED_INFO, SCRIPT);
        ck_assert_int_eq(v8_read_frame(&walk, 0, 0, 0), 0);
        put_object(SHARED_INFO, SHARED);
        walk.fp = AT(sizeof bytes + 1000);
        ck_assert_int_eq(v8_read_frame(&walk, 0, 0, 0), 0);
}
END_TEST

TEST_SUITE("v8", frame_has_name_file_line_and_start_of_its_function, modules_named_by_url_have_their_path,
           function_without_a_name_has_the_inferred_one, moved_object_is_unreadable_and_another_one_is_read_again,
           lines_that_may_not_be_read_now_are_read_later, number_of_lines_is_bounded, strings_of_all_forms_become_utf_8,
           endless_strings_end, both_formats_of_position_tables_are_read, inlined_functions_precede_their_caller,
           code_of_another_function_is_the_caller_without_a_frame_yet, inlining_in_a_cycle_ends,
           baseline_code_has_the_lines_of_its_bytecode, loop_statement_is_no_line_in_maglev_code,
           frame_of_the_interpreter_has_its_bytecode_offset, interrupted_handler_has_the_offset_in_registers,
           frame_of_generated_code_has_its_address, other_frames_stay_native)
