/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated jitdumps: code that is loaded, unloaded and moved, lines, both byte orders, and files that are not a
 * jitdump of this process.
 */
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "sampling/processes/jitdump.h"
#include "tests/support/suite.h"

#define PID 4711

static struct buf file;
static bool swapped;
static struct jitdump dump;

static void u32(uint32_t v)
{
        v = swapped ? __builtin_bswap32(v) : v;
        buf_append(&file, &v, sizeof v);
}

static void u64(uint64_t v)
{
        v = swapped ? __builtin_bswap64(v) : v;
        buf_append(&file, &v, sizeof v);
}

static void header(void)
{
        static const uint32_t words[] = { 0x4a695444, 1, 40, 62, 0, PID };

        for (size_t i = 0; i < 6; i++)
                u32(words[i]);
        u64(1);
        u64(0);
}

static void record(uint32_t id, uint32_t size)
{
        u32(id);
        u32(16 + size);
        u64(7);
}

static void load(uint64_t addr, uint64_t size, uint64_t index, const char *name)
{
        record(0, (uint32_t)(40 + strlen(name) + 1 + size));
        u32(PID);
        u32(PID);
        u64(addr);
        u64(addr);
        u64(size);
        u64(index);
        buf_append(&file, name, strlen(name) + 1);
        for (uint64_t i = 0; i < size; i++)
                buf_append_u8(&file, 0xcc);
}

static void move(uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
        record(1, 48);
        u32(PID);
        u32(PID);
        u64(from);
        u64(from);
        u64(to);
        u64(size);
        u64(index);
}

/* Two lines of a file; the file name of the second is "same as the previous". */
static void two_lines(uint64_t code, uint64_t first, uint32_t line, uint64_t second, uint32_t line2, const char *name)
{
        record(2, (uint32_t)(16 + 16 + strlen(name) + 1 + 16 + 2));
        u64(code);
        u64(2);
        u64(first);
        u32(line);
        u32(0);
        buf_append(&file, name, strlen(name) + 1);
        u64(second);
        u32(line2);
        u32(0);
        buf_append(&file, "\xff", 2);
}

static enum status feed(size_t from, uint64_t *ret)
{
        struct error err;

        return jitdump_feed(&dump, file.data + from, file.size - from, file.size - from, PID, ret, &err);
}

static void set_up(void)
{
        buf_init(&file, MiB(1));
        jitdump_init(&dump, NULL);
        header();
}

static void tear_down(void)
{
        buf_deinit(&file);
        jitdump_deinit(&dump);
}

/* "name", or "name file:line". */
static const char *at(uint64_t addr)
{
        static char text[256];
        struct jit_location p;

        if (!jitdump_find(&dump, addr, &p))
                return "none";
        if (p.line)
                snprintf(text, sizeof text, "%s %s:%u", p.name, p.file, p.line);
        else
                snprintf(text, sizeof text, "%s", p.name);
        return text;
}

START_TEST(code_has_names_and_lines_in_both_byte_orders)
{
        for (int i = 0; i < 2; i++) {
                uint64_t used = 0;

                swapped = i;
                set_up();
                load(0x1000, 0x20, 1, "plain");
                two_lines(0x2000, 0x2004, 11, 0x2010, 12, "a.js");
                load(0x2000, 0x20, 2, "JS:*f a.js:10:3");
                load(0x3000, 0x20, 3, "after");
                ck_assert_int_eq(feed(0, &used), ST_OK);
                ck_assert_uint_eq(used, file.size);
                ck_assert_str_eq(at(0xfff), "none");
                ck_assert_str_eq(at(0x1000), "plain");
                ck_assert_str_eq(at(0x1020), "none");
                ck_assert_str_eq(at(0x2000), "JS:*f a.js:10:3"); /* before the first line */
                ck_assert_str_eq(at(0x200f), "JS:*f a.js:10:3 a.js:11");
                ck_assert_str_eq(at(0x201f), "JS:*f a.js:10:3 a.js:12");
                ck_assert_str_eq(at(0x3000), "after"); /* lines apply to one code range only */
                tear_down();
        }
        swapped = false;
}
END_TEST

START_TEST(later_code_replaces_code_at_its_address)
{
        uint64_t used = 0;

        set_up();
        load(0x1000, 0x100, 1, "old");
        ck_assert_int_eq(feed(0, &used), ST_OK);
        ck_assert_str_eq(at(0x1080), "old");
        load(0x1080, 0x20, 2, "new");
        ck_assert_int_eq(feed(used, &used), ST_OK);
        ck_assert_str_eq(at(0x107f), "old");
        ck_assert_str_eq(at(0x1080), "new");
        ck_assert_str_eq(at(0x10a0), "old");
        tear_down();
}
END_TEST

START_TEST(moved_code_keeps_name_and_lines)
{
        uint64_t used = 0;

        set_up();
        two_lines(0x1000, 0x1000, 5, 0x1010, 6, "m.js");
        load(0x1000, 0x20, 77, "mover");
        move(0x1000, 0x5000, 0x20, 77);
        move(0x5000, 0x5010, 0x20, 77); /* overlapping addresses */
        move(0x9000, 0x1000, 0x20, 99); /* unknown code */
        ck_assert_int_eq(feed(0, &used), ST_OK);
        ck_assert_uint_eq(used, file.size);
        ck_assert_str_eq(at(0x1000), "none");
        ck_assert_str_eq(at(0x500f), "none");
        ck_assert_str_eq(at(0x5010), "mover m.js:5");
        ck_assert_str_eq(at(0x502f), "mover m.js:6");
        ck_assert_uint_eq(dump.dropped, 1);
        tear_down();
}
END_TEST

/* V8 adds the size of an ELF header to the addresses of lines. */
START_TEST(line_addresses_with_elf_header_offset_are_detected)
{
        uint64_t used = 0;

        set_up();
        two_lines(0x1000, 0x1000 + 64, 5, 0x1010 + 64, 6, "v8.js");
        load(0x1000, 0x20, 1, "f");
        ck_assert_int_eq(feed(0, &used), ST_OK);
        ck_assert_str_eq(at(0x1000), "f v8.js:5");
        ck_assert_str_eq(at(0x101f), "f v8.js:6");
        tear_down();
        set_up(); /* the same offsets are used unchanged if another line is in the first bytes */
        two_lines(0x1000, 0x1000, 1, 0x1000 + 64, 2, "x.java");
        load(0x1000, 0x80, 1, "g");
        ck_assert_int_eq(feed(0, &used), ST_OK);
        ck_assert_str_eq(at(0x103f), "g x.java:1");
        ck_assert_str_eq(at(0x1040), "g x.java:2");
        tear_down();
}
END_TEST

START_TEST(invalid_lines_are_ignored)
{
        uint64_t used = 0;

        set_up();
        two_lines(0x1000, 0x1000, 5, 0x9000, 6, "far.js");
        load(0x1000, 0x20, 1, "f");
        two_lines(0x2000, 0x2000, 5, 0x1000, 6, "before.js");
        load(0x2000, 0x20, 2, "g");
        two_lines(0x7000, 0x7000, 5, 0x7008, 6, "other.js");
        load(0x3000, 0x20, 3, "h");
        record(2, 16);
        u64(0x4000);
        u64(UINT64_MAX / 8);
        load(0x4000, 0x20, 4, "i");
        ck_assert_int_eq(feed(0, &used), ST_OK);
        ck_assert_uint_eq(used, file.size);
        ck_assert_str_eq(at(0x1000), "f");
        ck_assert_str_eq(at(0x2000), "g");
        ck_assert_str_eq(at(0x3000), "h");
        ck_assert_str_eq(at(0x4000), "i");
        tear_down();
}
END_TEST

START_TEST(unknown_records_are_skipped_and_close_ends_dump)
{
        uint64_t used = 0;

        set_up();
        record(4, 8);
        u64(0);
        record(77, 0);
        load(0x1000, 0x20, 1, "f");
        record(3, 0);
        load(0x1000, 0x20, 2, "too late");
        ck_assert_int_eq(feed(0, &used), ST_OK);
        ck_assert_str_eq(at(0x1000), "f");
        ck_assert(dump.is_over);
        tear_down();
}
END_TEST

START_TEST(record_is_read_once_complete)
{
        size_t first, size;

        set_up();
        load(0x1000, 0x20, 1, "first");
        first = file.size;
        two_lines(0x2000, 0x2004, 11, 0x2010, 12, "a.js");
        load(0x2000, 0x20, 2, "second");
        size = file.size;
        for (size_t n = 0; n <= size; n++) {
                uint8_t *part =
                        malloc(n ? n : 1); /* an allocation of its own, so that AddressSanitizer detects overreads */
                uint64_t used = 0, more = 0;
                struct error err;

                memcpy(part, file.data, n);
                jitdump_deinit(&dump);
                jitdump_init(&dump, NULL);
                ck_assert_int_eq(jitdump_feed(&dump, part, n, n, PID, &used, &err), ST_OK);
                ck_assert_uint_le(used, n);
                ck_assert_str_eq(at(0x1000), n >= first ? "first" : "none");
                ck_assert_str_eq(at(0x2000), n == size ? "second" : "none");
                ck_assert_int_eq(jitdump_feed(&dump, file.data + used, size - used, size - used, PID, &more, &err),
                                 ST_OK);
                ck_assert_uint_eq(used + more, size);
                ck_assert_str_eq(at(0x1000), "first");
                ck_assert_str_eq(at(0x2005), "second a.js:11");
                free(part);
        }
        tear_down();
}
END_TEST

START_TEST(dump_of_another_process_is_refused)
{
        struct error err;
        uint64_t used = 0;

        set_up();
        load(0x1000, 0x20, 1, "f");
        ck_assert_int_eq(jitdump_feed(&dump, file.data, file.size, file.size, PID + 1, &used, &err), ST_BAD_DATA);
        ck_assert(dump.is_over);
        tear_down();
        set_up();
        file.data[4] = 3; /* version */
        ck_assert_int_eq(feed(0, &used), ST_BAD_DATA);
        tear_down();
        set_up();
        file.data[0] ^= 1;
        ck_assert_int_eq(feed(0, &used), ST_BAD_DATA);
        tear_down();
        set_up();
        u32(0);
        u32(15); /* a record shorter than its header */
        u64(0);
        ck_assert_int_eq(feed(0, &used), ST_BAD_DATA);
        tear_down();
}
END_TEST

START_TEST(budget_bounds_code_of_all_processes)
{
        struct code_budget budget = { .max = 4096 };
        struct jitdump other;
        uint64_t used = 0;
        struct error err;

        set_up();
        for (uint64_t i = 0; i < 100; i++)
                load(0x1000 + 0x20 * i, 0x20, i, "a name that takes some room");
        jitdump_deinit(&dump);
        jitdump_init(&dump, &budget);
        jitdump_init(&other, &budget);
        ck_assert_int_eq(feed(0, &used), ST_OK);
        ck_assert_uint_eq(used, file.size);
        ck_assert_uint_gt(dump.dropped, 0);
        ck_assert_uint_le(budget.used, budget.max);
        ck_assert_str_eq(at(0x1000), "a name that takes some room");
        ck_assert_int_eq(jitdump_feed(&other, file.data, file.size, file.size, PID, &used, &err), ST_OK);
        ck_assert_uint_ge(other.dropped, 99);
        jitdump_deinit(&other);
        tear_down();
        ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(growing_file_is_read_within_limit)
{
        char path[] = "/tmp/cairn-test-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path);
        uint64_t left = MiB(1);
        struct error err;

        unlink(path);
        set_up();
        load(0x1000, 0x20, 1, "f");
        load(0x100000, 600000, 2, "large"); /* its code is larger than the read window and is skipped */
        load(0x2000, 0x20, 3, "g");
        ck_assert_int_eq(write(fd, file.data, file.size), (ssize_t)file.size);
        ck_assert_msg(jitdump_refresh(&dump, fd, PID, getuid(), &left, &err) == ST_OK, "%s", err.text);
        ck_assert_str_eq(at(0x1000), "f");
        ck_assert_str_eq(at(0x100000 + 599999), "large");
        ck_assert_str_eq(at(0x2000), "g");
        ck_assert_uint_le(left, MiB(1) - KiB(256));
        left = 0;
        load(0x3000, 0x20, 4, "h");
        ck_assert_int_eq(pwrite(fd, file.data, file.size, 0), (ssize_t)file.size);
        ck_assert_int_eq(jitdump_refresh(&dump, fd, PID, getuid(), &left, &err), ST_OK);
        ck_assert_str_eq(at(0x3000), "none");
        left = MiB(1);
        ck_assert_int_eq(jitdump_refresh(&dump, fd, PID, getuid(), &left, &err), ST_OK);
        ck_assert_str_eq(at(0x3000), "h");
        if (getuid() == 0) {
                ck_assert_int_eq(fchown(fd, 1234, 1234), 0);
                ck_assert_int_eq(jitdump_refresh(&dump, fd, PID, 1000, &left, &err), ST_UNSUPPORTED);
        }
        tear_down();
}
END_TEST

TEST_SUITE("agent_jit", code_has_names_and_lines_in_both_byte_orders, later_code_replaces_code_at_its_address,
           moved_code_keeps_name_and_lines, line_addresses_with_elf_header_offset_are_detected,
           invalid_lines_are_ignored, unknown_records_are_skipped_and_close_ends_dump, record_is_read_once_complete,
           dump_of_another_process_is_refused, budget_bounds_code_of_all_processes, growing_file_is_read_within_limit)
