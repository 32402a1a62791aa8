/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of kernel modules, with a directory tree like /sys/module, and names of code that the kernel maps into
 * processes.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampling/objects/vdso.h"
#include "common/clock.h"
#include "sampling/processes/kernel.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];

static void put(const char *name, const void *content, size_t n)
{
        char path[256];
        int fd;

        snprintf(path, sizeof path, "%s/%s", dir, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, content, n), (ssize_t)n);
        close(fd);
}

static void section(const char *name, const char *address)
{
        char path[64];

        snprintf(path, sizeof path, "sections/%s", name);
        put(path, address, strlen(address));
}

/* With a build-id note as written by linkers. */
static void set_up(void)
{
        static const uint8_t note[] = { 4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 0x01 };
        char path[128];

        temporary_dir_create(dir, "test");
        snprintf(path, sizeof path, "%s/sections", dir);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        snprintf(path, sizeof path, "%s/notes", dir);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        put("notes/.note.gnu.build-id", note, sizeof note);
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

START_TEST(module_address_is_offset_in_text)
{
        struct kernel_module m;
        uint64_t address = 7;

        set_up();
        section(".text", "0xffffffffc0a10000\n");
        section(".text.unlikely", "0xffffffffc0a14000\n");
        section(".init.text", "0xffffffffc0b00000\n");
        section(".data", "0xffffffffc0a20000\n");
        section(".note.gnu.build-id", "0xffffffffc0a00000\n");
        kernel_module_read(dir, &m);
        ck_assert_uint_eq(m.build_id.size, 4);
        ck_assert(kernel_module_find_address(&m, 0xffffffffc0a10000, &address));
        ck_assert_uint_eq(address, 0);
        ck_assert(kernel_module_find_address(&m, 0xffffffffc0a13fff, &address));
        ck_assert_uint_eq(address, 0x3fff);
        /* Code outside of .text has no address in the module's file. */
        ck_assert(!kernel_module_find_address(&m, 0xffffffffc0a14000, &address));
        ck_assert(!kernel_module_find_address(&m, 0xffffffffc0b00010, &address));
        ck_assert(!kernel_module_find_address(&m, 0xffffffffc0a0ffff, &address));
        ck_assert_uint_eq(address, 0x3fff);
        tear_down();
}
END_TEST

START_TEST(hidden_module_addresses_are_unknown)
{
        struct kernel_module m;
        uint64_t address;

        set_up();
        section(".text", "0x0000000000000000\n");
        kernel_module_read(dir, &m);
        ck_assert(!kernel_module_find_address(&m, 0xffffffffc0a10000, &address));
        section(".text", "nonsense");
        kernel_module_read(dir, &m);
        ck_assert(!kernel_module_find_address(&m, 0xffffffffc0a10000, &address));
        tear_down();
        kernel_module_read("/sys/module/no-such-module", &m);
        ck_assert(!kernel_module_find_address(&m, 0xffffffffc0a10000, &address));
}
END_TEST

#define HOUR_NS ((int64_t)3600 * 1000000000)

START_TEST(addresses_without_objects_are_named)
{
        static const char text[] = "ffffffff81000000 T _text\nffffffff81800000 T _etext\n"
                                   "ffffffffc0000000 t xfs_read\t[no-such-module]\n"
                                   "ffffffffc0100000 t bpf_prog_6deef7357e7b4530_sd_devices\t[bpf]\n";
        struct kernel k = {
                .has_symbols = true, .has_shift = true, .read_at_ns = monotonic_ns(), .reread_ns = HOUR_NS
        };
        struct kernel_location place;
        struct error err;

        ck_assert_int_eq(kallsyms_parse(text, strlen(text), &k.symbols, &err), ST_OK);
        k.modules = calloc(k.symbols.module_count, sizeof *k.modules);
        place = kernel_locate(&k, 0xffffffff81000010);
        ck_assert_str_eq(place.name, "_text");
        ck_assert_uint_eq(place.address, 0xffffffff81000010);
        place = kernel_locate(&k, 0xffffffff81200000); /* more than a symbol spans */
        ck_assert_str_eq(place.name, "[kernel]");
        ck_assert_ptr_null(place.module);
        place = kernel_locate(&k, 0xffffffffb0000000);
        ck_assert_str_eq(place.name, "[kernel: unloaded]");
        place = kernel_locate(&k, 0xffffffffc0000020); /* a module whose other attributes are not shown */
        ck_assert_str_eq(place.name, "xfs_read");
        ck_assert_ptr_null(place.module);
        place = kernel_locate(&k, 0xffffffffc0100020);
        ck_assert_str_eq(place.name, "bpf_prog_6deef7357e7b4530_sd_devices");
        ck_assert_ptr_null(place.module);
        kernel_deinit(&k);
}
END_TEST

START_TEST(symbols_are_read_again_for_an_unknown_address)
{
        static const char text[] = "ffffffff81000000 T _text\nffffffff81000010 T _etext\n";
        struct kernel k = { .has_symbols = true, .reread_ns = HOUR_NS };
        struct error err;

        ck_assert_int_eq(kallsyms_parse(text, strlen(text), &k.symbols, &err), ST_OK);
        k.modules = calloc(k.symbols.module_count, sizeof *k.modules);
        k.read_at_ns = monotonic_ns();
        kernel_locate(&k, 0xffffffffb0000000);
        ck_assert_uint_eq(k.symbols.count, 2); /* not yet */
        k.read_at_ns -= k.reread_ns;
        kernel_locate(&k, 0xffffffff81000004);
        ck_assert_uint_eq(k.symbols.count, 2); /* it has a symbol */
        kernel_locate(&k, 0xffffffffb0000000);
        if (geteuid() == 0)
                ck_assert_uint_gt(k.symbols.count, 1000); /* this kernel's */
        ck_assert_int_gt(k.read_at_ns, monotonic_ns() - HOUR_NS / 2);
        kernel_deinit(&k);
}
END_TEST

START_TEST(this_kernel_has_a_build_id)
{
        struct build_id id;

        if (access("/sys/kernel/notes", R_OK) < 0)
                return;
        ck_assert(kernel_read_notes_build_id("/sys/kernel/notes", &id));
        ck_assert_uint_eq(id.size, 20);
}
END_TEST

START_TEST(vdso_functions_are_named)
{
        const void *image;
        size_t size;
        struct code_names names;
        const struct named_range *s;
        bool found = false;

        if (!vdso_get_image(&image, &size))
                return; /* absent under some emulators */
        code_names_init(&names, NULL);
        vdso_add_names(&names);
        for (uint64_t address = 0; address < size && !found; address++) {
                s = code_names_find(&names, address);
                found = s && strstr(code_names_get_text(&names, s), "clock_gettime");
                if (found)
                        ck_assert_int_eq(strncmp(code_names_get_text(&names, s), "__", 2), 0); /* the longest name */
        }
        ck_assert(found);
        code_names_deinit(&names);
}
END_TEST

START_TEST(vsyscalls_are_named_by_offset)
{
        ck_assert_str_eq(vsyscall_find_name(0), "gettimeofday");
        ck_assert_str_eq(vsyscall_find_name(0x405), "time");
        ck_assert_str_eq(vsyscall_find_name(0x800), "getcpu");
        ck_assert_ptr_null(vsyscall_find_name(0xc00));
}
END_TEST

TEST_SUITE("agent_kernel", module_address_is_offset_in_text, hidden_module_addresses_are_unknown,
           addresses_without_objects_are_named, symbols_are_read_again_for_an_unknown_address,
           this_kernel_has_a_build_id, vdso_functions_are_named, vsyscalls_are_named_by_offset)
