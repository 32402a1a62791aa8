/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code and methods of HotSpot in invented memory: frames are read by the functions of the BPF program, which this file
 * compiles for user space.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sampling/runtimes/hotspot_name_cache.h"
#include "sampling/runtimes/hotspot_streams.h"
#include "tests/support/fake_memory.h"
#include "tests/support/suite.h"

static uint8_t image[0x20000];
static struct fake_memory memory;
static const struct process_memory process = { fake_memory_read, &memory };
static struct hotspot_walk walk;
static struct hotspot_objects objects;
static struct hotspot_name_cache names;
static struct hotspot_location places[LIMIT_HOTSPOT_INLINED];
static uint32_t count;
static uint64_t interval;

#define HOTSPOT_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define HOTSPOT_FUNCTION static
#include "bpf/hotspot_frame.h"

/* Where things are. The code cache has segments of 128 bytes. */
#define AT(offset) (FAKE_MEMORY_START + (offset))
#define CODE_CACHE AT(0)
#define CODE_CACHE_BYTES 0x10000u
#define BLOCK AT(0x800)
#define BLOB (BLOCK + 16)
#define CODE (BLOB + 0x100)
#define INTERPRETER AT(0x8000)
#define STUB_BLOCK AT(0xc000)
#define SEGMENTS AT(0x10000)
#define STACK AT(0x11000)
#define METHOD(n) AT(0x12000 + 0x1000 * (n))
#define CONST_METHOD(n) (METHOD(n) + 0x100)
#define CONSTANTS(n) (METHOD(n) + 0x400)
#define CLASS(n) (METHOD(n) + 0x500)
#define SYMBOL(n, number) (METHOD(n) + 0x600 + 0x80 * (number))
#define PCS AT(0x18000)
#define SCOPES AT(0x19000)
#define METADATA AT(0x1a000)
#define TEXTS AT(0x1b000)

/* Fields of a blob. */
enum { BLOB_NAME = 0, BLOB_CODE = 8, FRAME_SIZE = 16, COMPLETE = 20, DEOPT = 24, ORIGINAL_PC = 200, COMPILATION = 204 };

static void put(uint64_t addr, uint64_t value)
{
        memcpy(image + (addr - FAKE_MEMORY_START), &value, sizeof value);
}

static void put_int(uint64_t addr, uint32_t value)
{
        memcpy(image + (addr - FAKE_MEMORY_START), &value, sizeof value);
}

static void put_bytes(uint64_t addr, const void *from, size_t n)
{
        memcpy(image + (addr - FAKE_MEMORY_START), from, n);
}

static void put_text(uint64_t addr, const char *text)
{
        put_bytes(addr, text, strlen(text) + 1);
}

/* A block from the address on, of a number of segments: each leads back to the first one. */
static void put_block(uint64_t block, size_t segments)
{
        size_t first = (block - CODE_CACHE) / 128;

        for (size_t i = 0; i < segments; i++)
                image[SEGMENTS - FAKE_MEMORY_START + first + i] = (uint8_t)(i < 4 ? i : 3);
}

static void put_blob(uint64_t block, const char *name, uint64_t text, uint32_t frame_words)
{
        put_text(text, name);
        put(block + 16 + BLOB_NAME, text);
        put(block + 16 + BLOB_CODE, block + 16 + 0x100);
        put_int(block + 16 + FRAME_SIZE, frame_words);
}

static void put_symbol(uint64_t addr, const char *text)
{
        uint16_t n = (uint16_t)strlen(text);

        put_bytes(addr, &n, sizeof n);
        put_bytes(addr + 2, text, n);
}

/* Method n with 20 bytes of bytecode: line 10 + n from the start, line 12 + n from 5. */
static void put_method(unsigned n, const char *class, const char *name)
{
        const uint8_t lines[] = { 255, 0, (uint8_t)(2 * (10 + n)), 5 << 3 | 2, 0 };

        put(METHOD(n) + 8, CONST_METHOD(n));
        put(METHOD(n), INTERPRETER + 8);
        put(CONST_METHOD(n), CONSTANTS(n));
        put_int(CONST_METHOD(n) + 8, 1);                   /* flags */
        put_int(CONST_METHOD(n) + 12, 20 | 1u << 16);      /* bytes of bytecode, number of the name */
        put_int(CONST_METHOD(n) + 16, (32 + 20 + 20) / 8); /* words */
        put_bytes(CONST_METHOD(n) + 32 + 20, lines, sizeof lines);
        put(CONSTANTS(n), CLASS(n));
        put_int(CONSTANTS(n) + 8, 2); /* number of the file */
        put(CONSTANTS(n) + 16 + 8, SYMBOL(n, 0));
        put(CONSTANTS(n) + 16 + 16, SYMBOL(n, 1));
        put(CLASS(n), CONSTANTS(n));
        put(CLASS(n) + 8, SYMBOL(n, 2));
        put_symbol(SYMBOL(n, 0), name);
        put_symbol(SYMBOL(n, 1), "A.java");
        put_symbol(SYMBOL(n, 2), class);
}

/* An entry of the table of addresses. */
static void put_pc(unsigned number, int32_t offset, uint32_t scope)
{
        put_int(PCS + 16ull * number, (uint32_t)offset);
        put_int(PCS + 16ull * number + 4, scope);
}

static void put_scope(unsigned at, uint8_t caller, uint8_t method, uint8_t bytecode)
{
        const uint8_t scope[] = { caller, method, (uint8_t)(bytecode + 1) };

        put_bytes(SCOPES + at, scope, sizeof scope);
}

/* Compiled code of method 0 with a frame of 64 bytes, into which method 1 is inlined at a call with the offset 0x40. */
static void set_up(void)
{
        memset(image, 0, sizeof image);
        memset(image + (SEGMENTS - FAKE_MEMORY_START), 255, CODE_CACHE_BYTES / 128);
        memset(&walk, 0, sizeof walk);
        hotspot_name_cache_deinit(&names);
        names.work_left = 1 << 20;
        memory = (struct fake_memory){ image, sizeof image, 0 };
        interval = 1;
        put_block(BLOCK, 16);
        put_blob(BLOCK, "nmethod", TEXTS, 8);
        put_int(BLOB + COMPLETE, 16);
        put(BLOB + DEOPT, CODE + 0x200);
        put_int(BLOB + ORIGINAL_PC, 24);
        put_int(BLOB + COMPILATION, 77);
        put(BLOB + 32, METHOD(0));
        put_method(0, "a/B", "outer");
        put_method(1, "a/C+0x00007f12", "größe");
        put_pc(0, -1, 0);
        put_pc(1, 0x40, 8);
        put_pc(2, 0x60, 4);
        put(BLOB + 40, SCOPES);
        put_int(BLOB + 48, (uint32_t)(PCS - BLOB));
        put_int(BLOB + 52, (uint32_t)(PCS - BLOB) + 3 * 16);
        put_int(BLOB + 56, (uint32_t)(METADATA - BLOB));
        put_scope(4, 0, 1, 5);
        put_scope(8, 4, 2, 0);
        put(METADATA, METHOD(0));
        put(METADATA + 8, METHOD(1));
        put_block(STUB_BLOCK, 4);
        put_blob(STUB_BLOCK, "StubRoutines (1)", TEXTS + 0x40, 0);
        walk.process = (struct hotspot_process){ .heaps = { { CODE_CACHE, SEGMENTS, CODE_CACHE_BYTES, 7 } },
                                                 .code = CODE_CACHE,
                                                 .code_bytes = CODE_CACHE_BYTES,
                                                 .interpreter = INTERPRETER,
                                                 .interpreter_bytes = 0x1000,
                                                 .block_header = 16,
                                                 .blob_frame_size = FRAME_SIZE,
                                                 .blob_frame_complete = COMPLETE,
                                                 .blob_code = BLOB_CODE,
                                                 .code_is_pointer = 1,
                                                 .blob_deopt = DEOPT,
                                                 .deopt_is_pointer = 1,
                                                 .blob_original_pc = ORIGINAL_PC,
                                                 .blob_compilation = COMPILATION,
                                                 .method_entry = 0,
                                                 .method_const = 8,
                                                 .frame_bytecode = 8,
                                                 .const_bytes = 32,
                                                 .const_code_bytes = 12 };
        walk.sp = STACK;
        walk.fp = 0x1234;
        objects = (struct hotspot_objects){ .version = 17,
                                            .code = CODE_CACHE,
                                            .code_bytes = CODE_CACHE_BYTES,
                                            .blob_bytes = 256,
                                            .pc_desc_bytes = 16,
                                            .blob_name = { BLOB_NAME, 8 },
                                            .blob_code = { BLOB_CODE, 8 },
                                            .blob_frame_complete = { COMPLETE, 4 },
                                            .method = { 32, 8 },
                                            .compilation = { COMPILATION, 4 },
                                            .scopes_address = { 40, 8 },
                                            .pcs = { 48, 4 },
                                            .pcs_end = { 52, 4 },
                                            .metadata = { 56, 4 },
                                            .method_entry = { 0, 8 },
                                            .method_const = { 8, 8 },
                                            .const_constants = { 0, 8 },
                                            .const_flags = { 8, 4 },
                                            .const_code_bytes = { 12, 2 },
                                            .const_name = { 14, 2 },
                                            .const_words = { 16, 4 },
                                            .const_bytes = 32,
                                            .constants_holder = { 0, 8 },
                                            .constants_file = { 8, 2 },
                                            .constants_bytes = 16,
                                            .class_constants = { 0, 8 },
                                            .class_name = { 8, 8 },
                                            .symbol_length = { 0, 2 },
                                            .symbol_text = 2 };
}

static enum hotspot_frame_state locate(void)
{
        return hotspot_name_cache_locate(&names, &process, &objects, interval, walk.words[0] & SAMPLE_FRAME_ADDRESS_MAX,
                                         walk.words[1], places, &count);
}

/* Step from an interrupted pc whose instructions before and at it are given, and expect the caller in a slot. */
static void check_leaf(uint64_t pc, const char *before, size_t before_bytes, const char *next, unsigned slot)
{
        set_up();
        put_bytes(pc - before_bytes, before, before_bytes);
        put_bytes(pc, next, strlen(next));
        for (unsigned i = 0; i < 12; i++)
                put(STACK + 8ull * i, CODE_CACHE + 0x4000 + i);
        walk.pc = pc;
        walk.is_leaf = 1;
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.pc, CODE_CACHE + 0x4000 + slot);
        ck_assert_uint_eq(walk.sp, STACK + 8ull * slot + 8);
}

START_TEST(compiled_frame_is_left_by_its_size)
{
        set_up();
        walk.pc = CODE + 0x40; /* some segments after the start of the block */
        put(STACK + 64 - 16, 0x5678);
        put(STACK + 64 - 8, CODE + 0x60);
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_HOTSPOT, BLOB));
        ck_assert_uint_eq(walk.words[1], 77ull << 32 | (CODE + 0x40 - BLOB));
        ck_assert_uint_eq(walk.pc, CODE + 0x60);
        ck_assert_uint_eq(walk.sp, STACK + 64);
        ck_assert_uint_eq(walk.fp, 0x5678);
}
END_TEST

START_TEST(frame_that_is_set_up_or_released_is_measured_by_the_instructions)
{
        check_leaf(CODE, "", 0, "\x55", 0);
        check_leaf(CODE + 1, "\x55", 1, "\x48\x83\xec\x30", 1);     /* push rbp */
        check_leaf(CODE + 5, "\x55\x48\x83\xec\x30", 5, "\x90", 7); /* sub rsp, n */
        check_leaf(CODE + 0x40, "\x90", 1, "\x90", 7);
        check_leaf(CODE + 0x40, "\x48\x83\xc4\x30", 4, "\x5d\xc3", 1);                     /* add rsp, n */
        check_leaf(CODE + 0x40, "\x48\x81\xc4\x30\0\0\0\x5d", 8, "\xc3", 0);               /* pop rbp */
        check_leaf(CODE + 0x40, "\x48\x83\xc4\x30\x5d\x49\x3b\x67\x28", 9, "\x0f\x87", 0); /* cmp rsp, [r15 + n] */
        check_leaf(CODE + 0x40, "\xc9", 1, "\x41\xf6\x47\x28\x01\x74\x16", 0); /* leave; test byte [r15 + n], 1; je */
        check_leaf(CODE + 0x40, "\xc9\x41\xf6\x47\x28\x01", 6, "\x74\x16", 0);
        check_leaf(CODE + 0x40, "\x33\xc9", 2, "\x0f\x85\x01", 7); /* xor ecx, ecx: no `leave` */
}
END_TEST

START_TEST(words_that_code_pushed_meanwhile_are_skipped)
{
        set_up();
        walk.pc = CODE + 0x40;
        walk.is_leaf = 1;
        put(STACK + 64, CODE + 0x60); /* a word higher than the size of the frame says */
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.pc, CODE + 0x60);
        ck_assert_uint_eq(walk.sp, STACK + 72);
}
END_TEST

START_TEST(deoptimized_frame_has_its_original_address)
{
        set_up();
        walk.pc = CODE + 0x200;
        put(STACK + 24, CODE + 0x40);
        put(STACK + 56, CODE + 0x60);
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.words[1], 77ull << 32 | (CODE + 0x40 - BLOB));
}
END_TEST

/* A frame of the interpreter whose frame pointer is in STACK + 0x80. */
static void put_interpreted(void)
{
        walk.pc = INTERPRETER + 0x100;
        walk.fp = STACK + 0x80;
        put(walk.fp + 8, CODE + 0x40);
        put(walk.fp, 0x5678);
        put(walk.fp - 8, STACK + 0xa0);
        put(walk.fp - 24, METHOD(0));
        put(walk.fp - 64, CONST_METHOD(0) + 32 + 5);
}

START_TEST(interpreted_frame_has_its_method_and_bytecode)
{
        set_up();
        put_interpreted();
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_HOTSPOT, METHOD(0)));
        ck_assert_uint_eq(walk.pc, CODE + 0x40);
        ck_assert_uint_eq(walk.sp, STACK + 0xa0);
        ck_assert_uint_eq(walk.fp, 0x5678);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "a/B.outer");
        ck_assert_str_eq(places[0].file, "A.java");
        ck_assert_uint_eq(places[0].line, 12);
}
END_TEST

START_TEST(interrupted_interpreter_has_the_bytecode_in_a_register)
{
        set_up();
        put_block(INTERPRETER, 8);
        put_interpreted();
        walk.is_leaf = 1;
        walk.r13 = CONST_METHOD(0) + 32 + 2;
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 10);
        /* The register is in use for something else. */
        put_interpreted();
        walk.sp = STACK;
        walk.r13 = STACK;
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_uint_eq(places[0].line, 12);
}
END_TEST

/* A method is called in the interpreter by code whose stack pointer was STACK + 0x40, and which returns to CODE + 0x40.
 */
static void set_entering(void)
{
        set_up();
        put_block(INTERPRETER, 32);
        walk.pc = INTERPRETER + 0x100;
        walk.is_leaf = 1;
        walk.rbx = METHOD(1);
        walk.r13 = STACK + 0x40;
}

static void check_entering(uint64_t fp)
{
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_HOTSPOT, METHOD(1)));
        ck_assert_uint_eq(walk.words[1], HOTSPOT_INTERPRETED);
        ck_assert_uint_eq(walk.pc, CODE + 0x40);
        ck_assert_uint_eq(walk.sp, STACK + 0x40);
        ck_assert_uint_eq(walk.fp, fp);
}

START_TEST(interpreted_method_without_a_frame_yet_is_in_registers)
{
        set_entering(); /* called: locals are below the caller's stack pointer */
        put(STACK, CODE + 0x40);
        check_entering(0x1234);
        set_entering(); /* pop rax */
        walk.rax = CODE + 0x40;
        put(STACK, 0x99);
        check_entering(0x1234);
        set_entering(); /* push rax; push rbp */
        walk.rax = CODE + 0x40;
        put(STACK, 0x1234);
        put(STACK + 8, CODE + 0x40);
        check_entering(0x1234);
}
END_TEST

START_TEST(interpreted_method_whose_frame_is_not_whole_is_in_a_register)
{
        set_entering(); /* mov rbp, rsp: words of an earlier call are below */
        put_interpreted();
        put(walk.fp, 0x5678);
        walk.sp = walk.fp;
        walk.r13 = STACK + 0xa0;
        walk.rbx = METHOD(1);
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_HOTSPOT, METHOD(1)));
        ck_assert_uint_eq(walk.sp, STACK + 0xa0);
        ck_assert_uint_eq(walk.fp, 0x5678);
        set_entering(); /* push r13, and it is the bytecode from now on */
        put_interpreted();
        walk.sp = walk.fp - 8;
        walk.r13 = CONST_METHOD(1) + 32;
        walk.rbx = METHOD(1);
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_HOTSPOT, METHOD(1)));
        ck_assert_uint_eq(walk.sp, STACK + 0xa0);
        put_interpreted(); /* elsewhere it is unknown */
        walk.pc = INTERPRETER + 0x800;
        walk.sp = walk.fp - 8;
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_LOST);
}
END_TEST

/* In the code of `invokeinterface` the register has the abstract method until the one to call is found. */
START_TEST(method_in_the_register_is_no_frame_before_its_entry)
{
        set_up();
        put_block(INTERPRETER, 32);
        put_interpreted();
        walk.pc = INTERPRETER + 0x900;
        walk.is_leaf = 1;
        walk.rbx = METHOD(1);
        put(STACK, CODE + 0x60); /* the call has pushed where it returns to */
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_HOTSPOT, METHOD(0)));
        ck_assert_uint_eq(walk.pc, CODE + 0x40);
}
END_TEST

START_TEST(interpreted_method_that_returns_has_its_caller_in_registers)
{
        static const char leave[] = "\xc9\x41\x5d\x48\x8b\xe3\x41\xff\xe5"; /* leave; pop r13; mov rsp, rbx; jmp r13 */

        for (unsigned at = 1; at < sizeof leave - 1; at += at == 1 ? 2 : 3) { /* after each of the first three */
                set_up();
                put_block(INTERPRETER, 32);
                put_blob(INTERPRETER, "Interpreter", TEXTS, 0);
                walk.pc = INTERPRETER + 0x900;
                put_bytes(walk.pc - at, leave, sizeof leave - 1);
                walk.is_leaf = 1;
                walk.rbx = STACK + 0x40;
                walk.sp = at == 6 ? walk.rbx : STACK + 8ull * (at > 1);
                put(at == 1 ? STACK : STACK + 0x50, CODE + 0x40);
                walk.r13 = at == 1 ? CONST_METHOD(0) : CODE + 0x40;
                ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
                ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_HOTSPOT, INTERPRETER + 16));
                ck_assert_uint_eq(walk.pc, CODE + 0x40);
                ck_assert_uint_eq(walk.sp, STACK + 0x40);
                ck_assert_uint_eq(walk.fp, 0x1234);
        }
}
END_TEST

/* pop rax; mov r13, rsp; sub rsp, n; and what an earlier call left on the stack is an address of code. */
START_TEST(adapter_has_the_return_address_in_a_register)
{
        static const char adapter[] = "\x58\x4c\x8b\xec\x48\x83\xec\x20";

        for (unsigned at = 0; at < sizeof adapter; at += at ? at == 1 ? 3 : 4 : 1) { /* before and after each of them */
                set_up();
                walk.pc = STUB_BLOCK + 0x120;
                put_bytes(walk.pc - at, adapter, sizeof adapter - 1);
                walk.is_leaf = 1;
                walk.rax = at ? CODE + 0x40 : CODE + 0x60;
                walk.r13 = at > 1 ? STACK + 0x20 : 0x777;
                walk.sp = at == 8 ? STACK : STACK + 0x20 - (at ? 0 : 8);
                put(walk.sp, at ? CODE + 0x60 : CODE + 0x40);
                ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
                ck_assert_uint_eq(walk.pc, CODE + 0x40);
                ck_assert_uint_eq(walk.sp, STACK + 0x20);
        }
}
END_TEST

START_TEST(stub_for_exceptions_has_the_caller_in_a_register)
{
        static const struct {
                const char *before, *next;
        } codes[] = {
                { "\x90", "\x52" },                                 /* push rdx */
                { "\x48\x83\xc4\x10\x5d\x5a", "\x41\xff\xe2" },     /* add rsp, 16; pop rbp; pop rdx; jmp r10 */
                { "\x48\x83\xc4\x08\x5a\x4c\x8b\xc0", "\x49\x8b" }, /* add rsp, 8; pop rdx; mov r8, rax; mov */
                { "\x49\x8b\xc6\x5a", "\xff\xe3" },                 /* mov rax, r14; pop rdx; jmp rbx */
        };

        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
                set_up();
                walk.pc = STUB_BLOCK + 0x120;
                put_bytes(walk.pc - strlen(codes[i].before), codes[i].before, strlen(codes[i].before));
                put_bytes(walk.pc, codes[i].next, strlen(codes[i].next));
                walk.is_leaf = 1;
                walk.rdx = CODE + 0x40;
                put(STACK + 8, CODE + 0x60); /* what an earlier call left */
                ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
                ck_assert_uint_eq(walk.pc, CODE + 0x40);
                ck_assert_uint_eq(walk.sp, STACK);
        }
}
END_TEST

START_TEST(frames_that_lead_nowhere_are_lost)
{
        set_up();
        put_interpreted();
        put(walk.fp - 8, walk.fp); /* the caller's stack pointer is inside of the frame */
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_LOST);
        put_interpreted();
        put(walk.fp - 64, STACK); /* no bytecode of the method */
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_LOST);
        walk.pc = CODE_CACHE + 0x6000; /* a free segment */
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_NO_FRAME);
        image[SEGMENTS - FAKE_MEMORY_START + 1] = 2; /* before the heap */
        walk.pc = CODE_CACHE + 128;
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_NO_FRAME);
        walk.pc = BLOB; /* a frame of 32 GB */
        put_int(BLOB + FRAME_SIZE, UINT32_MAX);
        walk.fp = 0;
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_LOST);
}
END_TEST

START_TEST(stub_returns_to_the_nearest_address_of_code)
{
        set_up();
        walk.pc = STUB_BLOCK + 0x120;
        walk.is_leaf = 1;
        put(STACK + 8, CODE + 0x40);
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.pc, CODE + 0x40);
        ck_assert_uint_eq(walk.sp, STACK + 16);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "StubRoutines (1)");
        set_up();
        walk.pc = STUB_BLOCK + 0x120; /* a caller: by its frame pointer */
        walk.fp = STACK + 0x20;
        put(walk.fp, 0x5678);
        put(walk.fp + 8, 0x99999); /* C++ */
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_uint_eq(walk.pc, 0x99999);
}
END_TEST

static void set_compiled(uint64_t pc, uint32_t compilation, uint32_t flags)
{
        walk.words[0] = sample_frame_pack(SAMPLE_FRAME_HOTSPOT, BLOB);
        walk.words[1] = (uint64_t)compilation << 32 | flags | (pc - BLOB);
}

START_TEST(inlined_methods_precede_their_caller)
{
        set_up();
        set_compiled(CODE + 0x40, 77, 0);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_uint_eq(count, 2);
        ck_assert_str_eq(places[0].name, "a/C.größe");
        ck_assert_uint_eq(places[0].line, 11);
        ck_assert_str_eq(places[1].name, "a/B.outer");
        ck_assert_uint_eq(places[1].line, 12);
        set_compiled(CODE + 0x41, 77, HOTSPOT_CODE_EXACT); /* the next entry counts */
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_uint_eq(count, 1);
        set_compiled(CODE + 2, 77, HOTSPOT_CODE_EXACT); /* before its frame is set up */
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(places[0].line, 10);
}
END_TEST

START_TEST(replaced_and_freed_code_is_told_apart_from_the_sampled_one)
{
        set_up();
        set_compiled(CODE + 0x40, 76, 0);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FREED);
        put_pc(0, 0, 0); /* the tables were freed */
        set_compiled(CODE + 0x40, 77, 0);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FREED);
        put_text(TEXTS, "I2C/C2I adapters"); /* a stub took its place */
        put_int(BLOB + COMPILATION, 0x909090);
        set_compiled(CODE + 0x50, 77, 0);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FREED);
        put(BLOB, 0);
        set_compiled(CODE + 0x60, 77, 0);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_UNREADABLE);
}
END_TEST

START_TEST(scopes_in_a_cycle_end)
{
        set_up();
        put_scope(4, 8, 1, 5);
        set_compiled(CODE + 0x40, 77, 0);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_uint_le(count, LIMIT_HOTSPOT_INLINED);
        ck_assert_uint_lt(memory.reads, 500);
}
END_TEST

START_TEST(other_method_at_the_address_is_read_again)
{
        set_up();
        put_interpreted();
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        put(METHOD(0) + 8, CONST_METHOD(1));
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "a/B.outer"); /* in the same interval */
        interval++;
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
        ck_assert_str_eq(places[0].name, "a/C.größe");
        put(CLASS(1), 0);
        put(METHOD(0), 0); /* neither its class nor its entry tell that it is one */
        interval++;
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_UNREADABLE);
}
END_TEST

START_TEST(names_past_the_limit_of_an_interval_are_read_later)
{
        set_up();
        put_interpreted();
        ck_assert_int_eq(hotspot_read_frame(&walk), HOTSPOT_STEPPED);
        names.work_left = 600;
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_LIMIT);
        names.work_left = 1 << 20;
        interval++;
        ck_assert_int_eq(locate(), HOTSPOT_FRAME_FOUND);
}
END_TEST

START_TEST(numbers_of_both_bases_are_decoded)
{
        static const uint8_t data[] = { 191, 192, 1, 255, 255, 255, 255, 255 };
        struct reader r;
        uint32_t n;

        reader_init(&r, data, sizeof data);
        ck_assert(hotspot_read_number(&r, 0, &n));
        ck_assert_uint_eq(n, 191);
        ck_assert(hotspot_read_number(&r, 0, &n));
        ck_assert_uint_eq(n, 192 + 64);
        ck_assert(hotspot_read_number(&r, 0, &n)); /* five bytes, whatever the last one is */
        ck_assert(!hotspot_read_number(&r, 0, &n));
        reader_init(&r, data, sizeof data);
        ck_assert(hotspot_read_number(&r, 1, &n));
        ck_assert_uint_eq(n, 190);
        ck_assert(hotspot_read_number(&r, 1, &n));
        ck_assert_uint_eq(n, 191);
}
END_TEST

START_TEST(greatest_bytecode_up_to_ours_has_the_line)
{
        /* 0: line 4, 8: line 9, then back to 3: line 2 */
        static const uint8_t table[] = { 0 << 3 | 4, 8 << 3 | 5, 255, 9, 13, 0, 77 };

        ck_assert_uint_eq(hotspot_measure_lines(table, sizeof table, 0), 6);
        ck_assert_uint_eq(hotspot_measure_lines(table, 5, 0), 0); /* the end is missing */
        ck_assert_uint_eq(hotspot_find_line(table, 6, 0, 0), 4);
        ck_assert_uint_eq(hotspot_find_line(table, 6, 0, 2), 4);
        ck_assert_uint_eq(hotspot_find_line(table, 6, 0, 7), 2);
        ck_assert_uint_eq(hotspot_find_line(table, 6, 0, 100), 9);
        ck_assert_uint_eq(hotspot_find_line(table, 0, 0, 0), 0);
}
END_TEST

/* ---- tables for debuggers ---- */

static enum hotspot_attach find_layout(struct runtime_refusal *refusal)
{
        const struct hotspot_symbols s = { AT(0), AT(8), AT(16), AT(24) };
        struct hotspot_layout layout;

        return hotspot_layout_find(&process, &s, &layout, refusal);
}

START_TEST(tables_that_do_not_end_or_lack_fields_are_refused)
{
        struct runtime_refusal refusal;

        set_up();
        memset(image, 0, sizeof image);
        ck_assert_int_eq(find_layout(&refusal), HOTSPOT_STARTING); /* the pointers are not set yet */
        put(AT(0), AT(0x1000));
        put(AT(8), AT(0x2000));
        put(AT(16), 56);
        put(AT(24), 40);
        ck_assert_int_eq(find_layout(&refusal), HOTSPOT_REFUSED);
        ck_assert_int_eq(refusal.reason, REFUSAL_BUILD);
        put(AT(16), 48);
        ck_assert_int_eq(find_layout(&refusal), HOTSPOT_STARTING); /* they are empty */
        memset(image + 0x1000, 0x01, sizeof image - 0x1000);
        ck_assert_int_eq(find_layout(&refusal), HOTSPOT_REFUSED);
        ck_assert_int_eq(refusal.reason, REFUSAL_MEMORY);
        put(AT(0), UINT64_MAX - 8);
        ck_assert_int_eq(find_layout(&refusal), HOTSPOT_REFUSED);
}
END_TEST

TEST_SUITE("hotspot", compiled_frame_is_left_by_its_size,
           frame_that_is_set_up_or_released_is_measured_by_the_instructions,
           words_that_code_pushed_meanwhile_are_skipped, deoptimized_frame_has_its_original_address,
           interpreted_frame_has_its_method_and_bytecode, interrupted_interpreter_has_the_bytecode_in_a_register,
           interpreted_method_without_a_frame_yet_is_in_registers,
           interpreted_method_whose_frame_is_not_whole_is_in_a_register,
           interpreted_method_that_returns_has_its_caller_in_registers, adapter_has_the_return_address_in_a_register,
           stub_for_exceptions_has_the_caller_in_a_register, method_in_the_register_is_no_frame_before_its_entry,
           frames_that_lead_nowhere_are_lost, stub_returns_to_the_nearest_address_of_code,
           inlined_methods_precede_their_caller, replaced_and_freed_code_is_told_apart_from_the_sampled_one,
           scopes_in_a_cycle_end, other_method_at_the_address_is_read_again,
           names_past_the_limit_of_an_interval_are_read_later, numbers_of_both_bases_are_decoded,
           greatest_bytecode_up_to_ours_has_the_line, tables_that_do_not_end_or_lack_fields_are_refused)
