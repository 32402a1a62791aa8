/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython interpreters in invented memory, walked by the functions of the BPF program, which this file compiles for
 * user space; and line tables, compared with the interpreter's own answers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/limits.h"
#include "sampling/runtimes/python_name_cache.h"
#include "tests/support/fake_memory.h"
#include "tests/support/suite.h"

static uint8_t bytes[0x10000];
static struct fake_memory memory;
static const struct process_memory process = { fake_memory_read, &memory };
static struct python_symbols symbols;
static struct python_layout layout;
static struct python_walk walk;

#define PYTHON_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define PYTHON_FUNCTION static
#include "bpf/python_run.h"

/* Where things are in the memory. */
#define AT(offset) (FAKE_MEMORY_START + (offset))
#define RUNTIME AT(0x100)
#define VERSION AT(0x1000)
#define CODE_TYPE AT(0x1100)
#define TEXT_TYPE AT(0x1200)
#define INTERPRETER AT(0x2000)
#define THREAD_STATE AT(0x4000)
#define THREAD_POINTER AT(0x5000)
#define CODE AT(0x6000)
#define NAME AT(0x6200)
#define FILE_NAME AT(0x6400)
#define LINES AT(0x6600)
#define CFRAME(n) (AT(0x7000) + 64 * (n))
#define FRAME(n) (AT(0x8000) + 96 * (n))
#define KEY 3

static void put(uint64_t addr, uint64_t value)
{
        memcpy(bytes + (addr - FAKE_MEMORY_START), &value, sizeof value);
}

static void put_byte(uint64_t addr, uint8_t value)
{
        bytes[addr - FAKE_MEMORY_START] = value;
}

static void put_text(uint64_t addr, uint32_t state, uint32_t header, const void *text, uint64_t length, size_t size)
{
        put(addr + 8, TEXT_TYPE);
        put(addr + 16, length);
        put(addr + 32, state);
        memcpy(bytes + (addr - FAKE_MEMORY_START) + header, text, size);
}

#define ASCII (1u << 2 | 1u << 5 | 1u << 6)

/* A process of 3.11 with one thread and one code object. */
static void set_up(void)
{
        static const uint8_t lines[] = { 0x80 | 14 << 3 | 0, 0x02 | 0, 0, 0, 0, /* unit 0: +1 line */
                                         0x80 | 15 << 3 | 1,                    /* units 1, 2: none */
                                         0x80 | 10 << 3 | 0, 0,        0,       /* unit 3: as before */
                                         0x80 | 13 << 3 | 0, 0x05,              /* unit 4: -2 */
                                         0x80 | 12 << 3 | 7, 0,        0 };     /* units 5 to 12: +2 */

        memset(bytes, 0, sizeof bytes);
        memory = (struct fake_memory){ bytes, sizeof bytes, 0 };
        symbols = (struct python_symbols){ RUNTIME, VERSION, CODE_TYPE, TEXT_TYPE, 0, 0 };
        put(VERSION, 0x030b02f0);
        put(CODE_TYPE + 32, 184);
        put(RUNTIME + 40, INTERPRETER);
        put(INTERPRETER + 16, THREAD_STATE);
        put(THREAD_STATE + 152, THREAD_POINTER);
        put(THREAD_STATE + 56, CFRAME(0));
        put(THREAD_POINTER, THREAD_POINTER);
        put(THREAD_POINTER + 0x310 + 16 * KEY, 1);
        put(THREAD_POINTER + 0x310 + 16 * KEY + 8, THREAD_STATE);
        put(CODE + 8, CODE_TYPE);
        put(CODE + 72, 10); /* first line */
        put(CODE + 112, FILE_NAME);
        put(CODE + 128, NAME);
        put(CODE + 136, LINES);
        put(CODE + 168, 1); /* first traceable */
        put_text(NAME, ASCII, 48, "Work.method", 11, 11);
        put_text(FILE_NAME, ASCII, 48, "/srv/app.py", 11, 11);
        put(LINES + 16, sizeof lines);
        memcpy(bytes + (LINES + 32 - FAKE_MEMORY_START), lines, sizeof lines);
}

/* A frame of 3.11, at a code unit. */
static void put_frame(uint32_t n, uint64_t previous, uint64_t unit, bool is_entry, uint8_t owner)
{
        put(FRAME(n) + 32, CODE);
        put(FRAME(n) + 48, previous);
        put(FRAME(n) + 56, CODE + 184 + 2 * unit);
        put_byte(FRAME(n) + 68, is_entry);
        put_byte(FRAME(n) + 69, owner);
}

static void attach(void)
{
        struct runtime_refusal refusal;

        ck_assert_int_eq(python_layout_find(&process, &symbols, &layout, &refusal), PYTHON_ATTACHED);
        memset(&walk, 0, sizeof walk);
        walk.process = layout.process;
}

static enum runtime_refusal_reason refuse(void)
{
        struct runtime_refusal refusal;

        ck_assert_int_eq(python_layout_find(&process, &symbols, &layout, &refusal), PYTHON_REFUSED);
        ck_assert_uint_gt(strlen(refusal.text), 0);
        return refusal.reason;
}

START_TEST(state_is_found_by_key_of_thread_specific_data)
{
        set_up();
        attach();
        ck_assert_uint_eq(layout.process.key_offset, 0x310 + 16 * KEY + 8);
}
END_TEST

START_TEST(odd_interpreters_are_refused_with_reason)
{
        struct runtime_refusal starting;

        set_up();
        put(CODE_TYPE + 32, 200);
        ck_assert_int_eq(refuse(), REFUSAL_BUILD);
        set_up();
        put(VERSION, 0x036300f0);
        ck_assert_int_eq(refuse(), REFUSAL_VERSION);
        set_up();
        put(THREAD_POINTER, 0); /* no thread pointer */
        ck_assert_int_eq(refuse(), REFUSAL_THREADS);
        set_up();
        put(VERSION, 0x030d05f0);
        ck_assert_int_eq(refuse(), REFUSAL_MEMORY);
        memcpy(bytes + (RUNTIME - FAKE_MEMORY_START), "xdebugpy", 8);
        put(VERSION, 0x030e05f0);
        put(RUNTIME + 8, 0x030e05f0);
        put(RUNTIME + 16, 1);
        ck_assert_int_eq(refuse(), REFUSAL_BUILD);
        set_up();
        put(RUNTIME + 40, 0);
        ck_assert_int_eq(python_layout_find(&process, &symbols, &layout, &starting), PYTHON_STARTING);
}
END_TEST

START_TEST(runs_end_at_entry_frames_and_have_anchors)
{
        set_up();
        put_frame(0, FRAME(1), 3, false, 0);
        put_frame(1, FRAME(2), 4, true, 0);
        put_frame(2, 0, 5, true, 1);
        put(CFRAME(0) + 8, FRAME(0));
        put(CFRAME(0) + 16, CFRAME(1));
        attach();
        python_begin(&walk, THREAD_POINTER);
        ck_assert_uint_eq(walk.word_count, 4);
        ck_assert_uint_eq(walk.anchor, CFRAME(0));
        ck_assert_uint_eq(walk.words[0], sample_frame_pack(SAMPLE_FRAME_CPYTHON, CODE));
        ck_assert_uint_eq(walk.words[1], 184 + 2 * 3);
        python_read_run(&walk);
        ck_assert_uint_eq(walk.word_count, 2);
        ck_assert_uint_eq(walk.anchor, CFRAME(1));
        ck_assert_uint_eq(walk.words[1], (184 + 2 * 5) | PYTHON_DETAIL_GENERATOR);
        python_read_run(&walk);
        ck_assert_uint_eq(walk.word_count, 0);
        ck_assert_uint_eq(walk.anchor, 0);
        ck_assert_uint_eq(walk.is_unreadable, 0);
}
END_TEST

START_TEST(entry_frame_since_3_12_is_anchor_and_not_shown)
{
        set_up();
        put(VERSION, 0x030c01f0);
        put(CODE_TYPE + 32, 192);
        put(INTERPRETER + 72, THREAD_STATE);
        put(THREAD_STATE + 136, THREAD_POINTER);
        attach();
        put(CFRAME(0), FRAME(0));
        put(FRAME(0), CODE);
        put(FRAME(0) + 8, FRAME(1));
        put(FRAME(0) + 56, CODE + 192);
        put(FRAME(1), CODE);
        put_byte(FRAME(1) + 70, 3);
        python_begin(&walk, THREAD_POINTER);
        ck_assert_uint_eq(walk.word_count, 2);
        ck_assert_uint_eq(walk.anchor, FRAME(1));
        python_read_run(&walk);
        ck_assert_uint_eq(walk.anchor, 0);
}
END_TEST

START_TEST(endless_chain_ends_the_walk)
{
        set_up();
        put_frame(0, FRAME(0), 3, false, 0);
        put(CFRAME(0) + 8, FRAME(0));
        attach();
        memory.reads = 0;
        python_begin(&walk, THREAD_POINTER);
        ck_assert_uint_le(memory.reads, PYTHON_RUN_MAX + 8);
        ck_assert_uint_eq(walk.word_count, PYTHON_WORDS_MAX);
        ck_assert_uint_eq(walk.is_unreadable, 1);
        python_read_run(&walk);
        ck_assert_uint_eq(walk.anchor, 0);
}
END_TEST

START_TEST(state_of_another_thread_is_not_used)
{
        set_up();
        put_frame(0, 0, 3, true, 0);
        put(CFRAME(0) + 8, FRAME(0));
        attach();
        put(THREAD_STATE + 152, THREAD_POINTER + 0x100);
        python_begin(&walk, THREAD_POINTER);
        ck_assert_uint_eq(walk.word_count, 0);
        ck_assert_uint_eq(walk.anchor, 0);
}
END_TEST

/* Locate the frame of the code object at a unit. */
static enum python_frame_state locate(struct python_name_cache *n, uint64_t interval, int64_t unit,
                                      struct python_location *ret)
{
        return python_name_cache_locate(n, &process, &layout.objects, interval, CODE, (uint64_t)(184 + 2 * unit), ret);
}

START_TEST(frame_has_qualified_name_file_and_line)
{
        const uint32_t lines[] = { 11, 0, 0, 11, 9, 11, 11, 11, 11, 11, 11, 11, 11, 0 };
        struct python_name_cache names = { .work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK };
        struct python_location place;

        set_up();
        attach();
        for (int64_t unit = 1; unit < 14; unit++) {
                ck_assert_int_eq(locate(&names, 1, unit, &place), PYTHON_FRAME_FOUND);
                ck_assert_str_eq(place.name, "Work.method");
                ck_assert_str_eq(place.file, "/srv/app.py");
                ck_assert_uint_eq(place.line, lines[unit]);
        }
        ck_assert_int_eq(locate(&names, 1, 0, &place), PYTHON_FRAME_INCOMPLETE);
        ck_assert_int_eq(locate(&names, 1, -1, &place), PYTHON_FRAME_INCOMPLETE);
        python_name_cache_deinit(&names);
}
END_TEST

/* As of the body of a large generated module. */
START_TEST(frame_with_a_large_line_table_has_no_line)
{
        struct python_name_cache names = { .work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK };
        struct python_location place;

        set_up();
        attach();
        put(LINES + 16, LIMIT_PYTHON_LINE_TABLE + 1);
        ck_assert_int_eq(locate(&names, 1, 3, &place), PYTHON_FRAME_FOUND);
        ck_assert_str_eq(place.name, "Work.method");
        ck_assert_uint_eq(place.line, 0);
        python_name_cache_deinit(&names);
}
END_TEST

/* As of a process that invents code objects with the largest line tables, one for each frame. */
START_TEST(work_for_names_and_lines_is_limited)
{
        static uint8_t large[2 * LIMIT_PYTHON_LINE_TABLE];
        struct python_name_cache names = { .work_left = MiB(1) };
        struct python_location place;

        set_up();
        attach();
        memcpy(large, bytes, sizeof bytes);
        memory = (struct fake_memory){ large, sizeof large, 0 };
        memset(large + (LINES + 32 - FAKE_MEMORY_START), 0x80, LIMIT_PYTHON_LINE_TABLE);
        memcpy(large + (LINES + 16 - FAKE_MEMORY_START), &(uint64_t){ LIMIT_PYTHON_LINE_TABLE }, 8);
        for (int64_t unit = 1; unit < 100; unit++) { /* each decodes the table to its end */
                ck_assert_int_eq(locate(&names, 1, 1000000 + unit, &place), PYTHON_FRAME_FOUND);
                ck_assert_str_eq(place.name, "Work.method");
        }
        ck_assert_uint_lt(names.work_left, LIMIT_PYTHON_LINE_TABLE);
        memory.reads = 0;
        for (uint64_t i = 1; i < 100; i++) /* other code objects, which are not cached */
                ck_assert_int_ne(
                        python_name_cache_locate(&names, &process, &layout.objects, 1, CODE + 8 * i, 184, &place),
                        PYTHON_FRAME_FOUND);
        names.work_left = 0;
        ck_assert_int_eq(python_name_cache_locate(&names, &process, &layout.objects, 1, CODE + 4096, 184, &place),
                         PYTHON_FRAME_LIMIT);
        names.work_left = MiB(1);
        ck_assert_int_eq(locate(&names, 2, 3, &place), PYTHON_FRAME_FOUND);
        python_name_cache_deinit(&names);
}
END_TEST

START_TEST(reused_address_is_read_again_in_next_interval)
{
        struct python_name_cache names = { .work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK };
        struct python_location place;

        set_up();
        attach();
        ck_assert_int_eq(locate(&names, 1, 3, &place), PYTHON_FRAME_FOUND);
        put_text(NAME + 0x80, ASCII, 48, "another", 7, 7);
        put(CODE + 128, NAME + 0x80);
        ck_assert_int_eq(locate(&names, 2, 3, &place), PYTHON_FRAME_FOUND);
        ck_assert_str_eq(place.name, "another");
        put(CODE + 8, TEXT_TYPE); /* freed: another object is there */
        ck_assert_int_eq(locate(&names, 3, 3, &place), PYTHON_FRAME_FREED);
        ck_assert_uint_eq(names.bytes, 0);
        set_up();
        put(NAME + 8, CODE_TYPE); /* the name is no string */
        ck_assert_int_eq(locate(&names, 4, 3, &place), PYTHON_FRAME_UNREADABLE);
        python_name_cache_deinit(&names);
}
END_TEST

START_TEST(names_of_all_widths_become_utf_8)
{
        static const uint8_t latin[] = { 0x67, 0xfc };
        static const uint16_t two[] = { 0x4f60, 0xd800 };
        static const uint32_t four[] = { 0x1f40d, 0x110000 };
        struct python_name_cache names = { .work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK };
        struct python_location place;

        set_up();
        attach();
        put_text(NAME, 1u << 2 | 1u << 5, 72, latin, 2, sizeof latin);
        ck_assert_int_eq(locate(&names, 1, 3, &place), PYTHON_FRAME_FOUND);
        ck_assert_str_eq(place.name, "g\xc3\xbc");
        python_name_cache_deinit(&names);
        names.work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK;
        put_text(NAME, 2u << 2 | 1u << 5, 72, two, 2, sizeof two);
        ck_assert_int_eq(locate(&names, 1, 3, &place), PYTHON_FRAME_FOUND);
        ck_assert_str_eq(place.name, "\xe4\xbd\xa0\xef\xbf\xbd");
        python_name_cache_deinit(&names);
        names.work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK;
        put_text(NAME, 4u << 2 | 1u << 5, 72, four, 2, sizeof four);
        ck_assert_int_eq(locate(&names, 1, 3, &place), PYTHON_FRAME_FOUND);
        ck_assert_str_eq(place.name, "\xf0\x9f\x90\x8d\xef\xbf\xbd");
        python_name_cache_deinit(&names);
        names.work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK;
        put(NAME + 16, UINT64_MAX); /* cut at the limit */
        ck_assert_int_eq(locate(&names, 1, 3, &place), PYTHON_FRAME_FOUND);
        ck_assert_uint_le(strlen(place.name), 4 * LIMIT_PYTHON_NAME);
        python_name_cache_deinit(&names);
}
END_TEST

/* Of every code object of the standard library, a table of an interpreter's lines: format, bytes, first line, and the
   line of each unit (0: none). */
#define PRINT_LINES                                                                                                    \
        "import sys, types, glob, os, dis\n"                                                                           \
        "old = sys.version_info < (3, 11)\n"                                                                           \
        "def lines_of(c):\n"                                                                                           \
        "    if not old: return [p[0] or 0 for p in c.co_positions()]\n"                                               \
        "    if sys.version_info >= (3, 10):\n"                                                                        \
        "        spans = list(c.co_lines())\n"                                                                         \
        "    else:\n"                                                                                                  \
        "        s = list(dis.findlinestarts(c)) + [(len(c.co_code), 0)]\n"                                            \
        "        spans = [(a[0], b[0], a[1]) for a, b in zip(s, s[1:])]\n"                                             \
        "    return [l or 0 for a, b, l in spans for _ in range(a, b, 2)]\n"                                           \
        "kind = 0 if not old else 1 if sys.version_info >= (3, 10) else 2\n"                                           \
        "def walk(c):\n"                                                                                               \
        "    t = c.co_lnotab if kind == 2 else c.co_linetable\n"                                                       \
        "    print(kind, t.hex() or '-', c.co_firstlineno, *lines_of(c))\n"                                            \
        "    [walk(k) for k in c.co_consts if isinstance(k, types.CodeType)]\n"                                        \
        "top = os.path.dirname(os.__file__)\n"                                                                         \
        "files = sorted(glob.glob(top + '/*.py'))[:int(sys.argv[1])]\n"                                                \
        "if len(files) > 100: files += sorted(glob.glob(top + '/[a-z]*/**/*.py', recursive=True))\n"                   \
        "for f in files:\n"                                                                                            \
        "    try: c = compile(open(f, encoding='utf-8').read(), f, 'exec')\n"                                          \
        "    except (SyntaxError, ValueError): continue\n"                                                             \
        "    walk(c)\n"

/* The number of units compared. */
static size_t compare_lines(const char *command)
{
        FILE *python = popen(command, "r");
        _cleanup_free_ char *text = NULL;
        size_t size = 0, units = 0;
        static uint8_t table[262144];

        ck_assert_ptr_nonnull(python);
        while (getline(&text, &size, python) > 0) {
                char *at = text + 2, *end = strchr(at, ' ');
                enum python_lines format = (enum python_lines)(text[0] - '0');
                size_t n = 0;
                uint32_t first;

                for (; at < end && *at != '-'; at += 2, n++) {
                        unsigned byte;

                        ck_assert_uint_lt(n, sizeof table);
                        ck_assert_int_eq(sscanf(at, "%2x", &byte), 1);
                        table[n] = (uint8_t)byte;
                }
                first = (uint32_t)strtoul(end, &end, 10);
                for (uint64_t unit = 0; *end == ' '; unit++, units++)
                        ck_assert_uint_eq(strtoul(end, &end, 10), python_line_find(format, table, n, first, unit));
        }
        pclose(python);
        return units;
}

/* CAIRN_PYTHONS: further interpreters, of which the whole standard library is compared. */
START_TEST(lines_agree_with_interpreter)
{
        const char *more = getenv("CAIRN_PYTHONS");
        _cleanup_free_ char *list = strdup(more ? more : "");
        char command[8192], *rest = list;

        snprintf(command, sizeof command, "python3 -c \"%s\" 40", PRINT_LINES);
        ck_assert_uint_gt(compare_lines(command), 50000);
        for (const char *python; (python = strtok_r(rest, " ", &rest));) {
                size_t units;

                snprintf(command, sizeof command, "%s -W ignore -c \"%s\" 100000", python, PRINT_LINES);
                units = compare_lines(command);
                ck_assert_uint_gt(units, 500000);
                fprintf(stderr, "%s: %zu units\n", python, units);
        }
}
END_TEST

/* A process of 3.10, whose version is known by the members of its code objects. */
static void set_up_3_10(void)
{
        set_up();
        symbols.version = 0;
        put(CODE_TYPE + 32, 176);
        put(CODE_TYPE + 240, AT(0x1300)); /* members: name, type, offset */
        put(AT(0x1300), AT(0x1400));
        put(AT(0x1300) + 40, AT(0x1420));
        memcpy(bytes + 0x1400, "co_posonlyargcount", 19);
        memcpy(bytes + 0x1420, "co_linetable", 13);
        put(RUNTIME + 32, INTERPRETER);
        put(INTERPRETER + 8, THREAD_STATE);
        put(THREAD_STATE + 176, THREAD_POINTER);
        put(THREAD_STATE + 24, FRAME(0));
        put(THREAD_STATE + 48, CFRAME(0));
        put(CFRAME(0) + 8, CFRAME(1));
        for (uint32_t i = 0; i < 2; i++) {
                put(FRAME(2 * i) + 24, i ? 0 : FRAME(2));
                put(FRAME(2 * i) + 32, CODE);
                put(FRAME(2 * i) + 96, 3 + i);
        }
        put(CODE + 40, 10);
        put(CODE + 104, FILE_NAME);
        put(CODE + 112, NAME);
        put(CODE + 120, LINES);
        put(LINES + 16, 6);
        memcpy(bytes + (LINES + 32 - FAKE_MEMORY_START), (const int8_t[]){ 6, 1, 2, -128, 4, 2 }, 6);
}

START_TEST(each_frame_before_3_11_is_a_run_with_anchor)
{
        struct python_name_cache names = { .work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK };
        struct python_location place;

        set_up_3_10();
        attach();
        python_begin(&walk, THREAD_POINTER);
        ck_assert_uint_eq(walk.word_count, 2);
        ck_assert_uint_eq(walk.anchor, CFRAME(0));
        ck_assert_uint_eq(walk.words[1], 3);
        python_read_run(&walk);
        ck_assert_uint_eq(walk.anchor, CFRAME(1));
        ck_assert_uint_eq(walk.words[1], 4);
        ck_assert_int_eq(python_name_cache_locate(&names, &process, &layout.objects, 1, CODE, 3, &place),
                         PYTHON_FRAME_FOUND);
        ck_assert_uint_eq(place.line, 0); /* the second range has none */
        ck_assert_int_eq(python_name_cache_locate(&names, &process, &layout.objects, 1, CODE, 4, &place),
                         PYTHON_FRAME_FOUND);
        ck_assert_uint_eq(place.line, 13);
        python_name_cache_deinit(&names);
}
END_TEST

START_TEST(frames_of_3_9_replace_the_loop_by_its_address)
{
        set_up_3_10();
        put(AT(0x1300) + 40, 0); /* no co_linetable */
        symbols.eval = AT(0x9000);
        symbols.eval_bytes = 0x100;
        put(FRAME(0) + 104, 6);
        attach();
        python_begin(&walk, THREAD_POINTER);
        ck_assert_uint_eq(walk.words[1], 6);
        ck_assert(python_is_activation(&walk, 0x7000, 0x7100, AT(0x9000)));
        ck_assert(python_is_activation(&walk, 0x7000, 0x7100, AT(0x90ff)));
        ck_assert(!python_is_activation(&walk, 0x7000, 0x7100, AT(0x9100)));
        symbols.eval = 0;
        ck_assert_int_eq(refuse(), REFUSAL_SYMBOLS);
        put(AT(0x1300), 0);
        ck_assert_int_eq(refuse(), REFUSAL_VERSION);
}
END_TEST

/* As with musl, and in 3.15. */
START_TEST(state_without_key_is_searched_in_all_interpreters)
{
        set_up();
        put(THREAD_POINTER + 0x310 + 16 * KEY + 8, 0);
        put(INTERPRETER, INTERPRETER + 0x100); /* a second one */
        put(INTERPRETER + 0x110, THREAD_STATE + 0x400);
        put(THREAD_STATE + 0x408, THREAD_STATE + 0x800);
        put(THREAD_STATE + 0x800 + 152, THREAD_POINTER + 0x800);
        attach();
        ck_assert_uint_eq(layout.process.key_offset, 0);
        walk.thread_pointer = THREAD_POINTER + 0x800;
        python_search_state(&walk);
        ck_assert_uint_eq(walk.state, THREAD_STATE + 0x800);
        walk.thread_pointer = THREAD_POINTER + 0x900; /* a thread that never ran Python */
        python_search_state(&walk);
        ck_assert_uint_eq(walk.state, 0);
        put(THREAD_STATE + 8, THREAD_STATE); /* an endless list */
        memory.reads = 0;
        python_search_state(&walk);
        ck_assert_uint_eq(walk.state, 0);
        ck_assert_uint_le(memory.reads, 2 * PYTHON_THREADS_MAX + 2);
}
END_TEST

TEST_SUITE("python", state_is_found_by_key_of_thread_specific_data, odd_interpreters_are_refused_with_reason,
           runs_end_at_entry_frames_and_have_anchors, entry_frame_since_3_12_is_anchor_and_not_shown,
           endless_chain_ends_the_walk, state_of_another_thread_is_not_used, frame_has_qualified_name_file_and_line,
           frame_with_a_large_line_table_has_no_line, work_for_names_and_lines_is_limited,
           reused_address_is_read_again_in_next_interval, names_of_all_widths_become_utf_8,
           lines_agree_with_interpreter, each_frame_before_3_11_is_a_run_with_anchor,
           frames_of_3_9_replace_the_loop_by_its_address, state_without_key_is_searched_in_all_interpreters)
