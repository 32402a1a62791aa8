/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampling/containers/cgroup.h"
#include "sampling/objects/proc_maps.h"
#include "sampling/processes/moved_text.h"
#include "sampling/processes/process_read.h"
#include "tests/support/suite.h"

static const char TEXT[] =
        "55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 1572871                    /usr/bin/cat\n"
        "55d0c0a02000-55d0c0a06000 r-xp 00002000 fe:01 1572871                    /usr/bin/cat\n"
        "55d0c1b00000-55d0c1b21000 rw-p 00000000 00:00 0                          [heap]\n"
        "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
        "7f0000002000-7f0000003000 r-xp 00001000 00:1f 99                         /tmp/with two blanks (deleted)\n"
        "7ffe00000000-7ffe00002000 r-xp 00000000 00:00 0                          [vdso]\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static struct proc_maps parse(const char *text)
{
        struct proc_maps m;
        struct error err;

        ck_assert_msg(proc_maps_parse(text, strlen(text), &m, &err) == ST_OK, "%s", err.text);
        return m;
}

START_TEST(only_executable_mappings_are_kept)
{
        struct proc_maps m = parse(TEXT);

        ck_assert_uint_eq(m.count, 5);
        ck_assert_str_eq(m.items[0].path, "/usr/bin/cat");
        ck_assert_uint_eq(m.items[0].start, 0x55d0c0a02000);
        ck_assert_uint_eq(m.items[0].file_offset, 0x2000);
        ck_assert_uint_eq(m.items[0].inode, 1572871);
        ck_assert_uint_eq(m.items[0].device_major, 0xfe);
        ck_assert_uint_eq(m.items[0].device_minor, 1);
        proc_maps_deinit(&m);
}
END_TEST

START_TEST(path_keeps_spaces_and_loses_deleted_suffix)
{
        struct proc_maps m = parse(TEXT);

        ck_assert_str_eq(m.items[2].path, "/tmp/with two blanks");
        ck_assert(m.items[2].deleted);
        ck_assert(!m.items[0].deleted);
        ck_assert_str_eq(m.items[1].path, "");
        proc_maps_deinit(&m);
}
END_TEST

START_TEST(mapping_end_is_exclusive)
{
        struct proc_maps m = parse(TEXT);

        ck_assert_ptr_eq(proc_maps_find(&m, 0x55d0c0a02000), &m.items[0]);
        ck_assert_ptr_eq(proc_maps_find(&m, 0x55d0c0a05fff), &m.items[0]);
        ck_assert_ptr_null(proc_maps_find(&m, 0x55d0c0a06000));
        ck_assert_ptr_null(proc_maps_find(&m, 0x55d0c0a01fff)); /* readable only */
        ck_assert_ptr_null(proc_maps_find(&m, 0));
        ck_assert_ptr_null(proc_maps_find(&m, UINT64_MAX));
        ck_assert_ptr_eq(proc_maps_find(&m, 0xffffffffff600fff), &m.items[4]);
        proc_maps_deinit(&m);
}
END_TEST

START_TEST(malformed_lines_are_refused_with_line_number)
{
        static const char *const bad[] = {
                "hello\n",
                "1000-2000 r-xp 0 0:0\n",
                "2000-1000 r-xp 0 0:0 0\n",
                "1000-1000 r-xp 0 0:0 0\n",
                "1000-2000 r-x 0 0:0 0\n",
                "10000000000000000-2 r-xp 0 0:0 0\n",
                "\n",
        };
        struct proc_maps m = { .count = 77 };
        struct error err = { 0 };

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(proc_maps_parse(bad[i], strlen(bad[i]), &m, &err) == ST_BAD_DATA, "%s", bad[i]);
        ck_assert_uint_eq(m.count, 77);
        ck_assert_int_eq(proc_maps_parse("1000-2000 r-xp 0 0:0 0\n1fff-3000 r-xp 0 0:0\n", 44, &m, &err), ST_BAD_DATA);
        ck_assert_uint_eq(err.offset, 23);
}
END_TEST

START_TEST(mapping_that_grew_during_read_counts_once)
{
        struct proc_maps m = parse("1000-2000 r-xp 0 0:0 0\n1000-3000 r-xp 5000 0:1 7 /a\n2000-3000 r-xp 0 0:0 0\n"
                                   "2800-4000 r-xp 0 0:0 0\n");

        ck_assert_uint_eq(m.count, 3);
        ck_assert_uint_eq(m.items[1].start, 0x2000);
        ck_assert_uint_eq(m.items[1].file_offset, 0x6000);
        ck_assert_uint_eq(m.items[2].start, 0x3000);
        ck_assert_uint_eq(m.items[2].file_offset, 0);
        proc_maps_deinit(&m);
}
END_TEST

START_TEST(own_mappings_contain_this_function)
{
        int fd = -1;
        struct proc_maps m;
        struct error err;

        fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_msg(process_read_maps(fd, &m, &err) == ST_OK, "%s", err.text);
        close(fd);
        ck_assert_ptr_nonnull(proc_maps_find(&m, (uintptr_t)&parse));
        ck_assert_ptr_null(proc_maps_find(&m, (uintptr_t)&m)); /* the stack is not executable */
        proc_maps_deinit(&m);
}
END_TEST

START_TEST(start_time_counts_from_the_last_parenthesis)
{
        static const char stat[] = "12 (a) b (c)) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21\n";
        struct process_stat ret;

        ck_assert(process_parse_stat(stat, strlen(stat), &ret));
        ck_assert_uint_eq(ret.start_ticks, 987654);
        ck_assert_uint_eq(ret.parent, 1);
        ck_assert_int_eq(ret.state, 'R');
        ck_assert(!ret.kernel_thread);
        ret.start_ticks = 5;
        ck_assert(!process_parse_stat("12 (a) R 1 2 3", 14, &ret));
        ck_assert(!process_parse_stat("", 0, &ret));
        ck_assert_uint_eq(ret.start_ticks, 5);
}
END_TEST

#define ID64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void check_cgroup(const char *text, const char *container, const char *unit)
{
        struct cgroup_names names;

        cgroup_parse(text, strlen(text), &names);
        ck_assert_str_eq(names.container, container);
        ck_assert_str_eq(names.unit, unit);
}

START_TEST(containers_and_units_are_derived_from_cgroup)
{
        check_cgroup("0::/system.slice/docker-" ID64 ".scope\n", ID64, "");
        check_cgroup("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID64 ".scope\n", ID64, "");
        check_cgroup("12:cpu:/docker/" ID64 "\n11:memory:/docker/" ID64 "\n", ID64, "");
        check_cgroup("0::/system.slice/ssh.service\n", "", "ssh.service");
        check_cgroup("0::/user.slice/user-0.slice/session-3.scope\n", "", "session-3.scope");
        check_cgroup("0::/docker-" ID64 "0.scope\n", "", "docker-" ID64 "0.scope"); /* 65 digits are not an id */
        check_cgroup("0::/\n", "", "");
        check_cgroup("", "", "");
}
END_TEST

/* ---- moved text ---- */

static struct load_segment segments[] = { { 0, 0x600, 0x400000, false },
                                          { 0x1000, 0x5234, 0x402000, true }, /* other distance, as by lld */
                                          { 0x7000, 0x500, 0x408000, false },
                                          { 0x7e10, 0x300, 0x409e10, false } };
static struct object program = { .segments = segments, .segment_count = 4 };

static const struct object *find_program(void *context, const struct proc_mapping *m)
{
        (void)context;
        return strcmp(m->path, "/bin/p") == 0 ? &program : NULL;
}

/* The executable mappings after the assignment: "START-END OFFSET PATH" for those of a file, else "START-END". */
static void moved_text_is(const char *text, const char *want)
{
        struct proc_maps m = parse(text);
        const struct object **objects = calloc(m.count, sizeof *objects);
        char got[600] = "";
        size_t n = 0;

        for (size_t i = 0; i < m.count; i++)
                objects[i] = find_program(NULL, &m.items[i]);
        moved_text_assign(&m, &objects, find_program, NULL);
        for (size_t i = 0; i < m.count; i++) {
                n += (size_t)snprintf(got + n, sizeof got - n, "%" PRIx64 "-%" PRIx64, m.items[i].start,
                                      m.items[i].end);
                if (objects[i])
                        n += (size_t)snprintf(got + n, sizeof got - n, " %" PRIx64 " %s", m.items[i].file_offset,
                                              m.items[i].path);
                n += (size_t)snprintf(got + n, sizeof got - n, ";");
        }
        ck_assert_str_eq(got, want);
        free(objects);
        proc_maps_deinit(&m);
}

#define HEADER "400000-401000 r--p 00000000 fe:01 7  /bin/p\n"
#define DATA                                                                                                           \
        "408000-409000 r--p 00007000 fe:01 7  /bin/p\n"                                                                \
        "409000-40b000 rw-p 00007000 fe:01 7  /bin/p\n"

START_TEST(code_in_a_segment_belongs_to_its_file)
{
        moved_text_is(HEADER "402000-408000 r-xp 00000000 00:00 0 \n" DATA, "402000-408000 1000 /bin/p;");
        moved_text_is(HEADER "402000-408000 rwxp 00000000 00:00 0  [anon:huge]\n", "402000-408000 1000 /bin/p;");
        moved_text_is("402000-408000 r-xp 00000000 00:00 0 \n" DATA, "402000-408000 1000 /bin/p;");
        moved_text_is(HEADER "402000-408000 r-xp 00000000 00:01 9  /memfd:text (deleted)\n",
                      "402000-408000 1000 /bin/p;");
        moved_text_is(HEADER "402000-408000 r-xs 00000000 00:0f 9  /anon_hugepage (deleted)\n" DATA,
                      "402000-408000 1000 /bin/p;");
        moved_text_is(HEADER "402000-408000 r-xp 00000000 00:0f 9  /mnt/huge/text (deleted)\n" DATA,
                      "402000-408000 1000 /bin/p;");
        moved_text_is("55000-56000 r--p 00000000 fe:01 7  /bin/p\n" /* any bias */
                      "57000-5d000 r-xp 00000000 00:00 0 \n",
                      "57000-5d000 1000 /bin/p;");
}
END_TEST

START_TEST(each_moved_part_belongs_to_the_file)
{
        moved_text_is(HEADER "402000-403000 r-xp 00001000 fe:01 7  /bin/p\n"
                             "403000-404000 r-xp 00000000 00:00 0 \n"
                             "404000-405000 rwxp 00000000 00:00 0 \n"
                             "405000-408000 r-xp 00004000 fe:01 7  /bin/p\n",
                      "402000-403000 1000 /bin/p;403000-404000 2000 /bin/p;404000-405000 3000 /bin/p;"
                      "405000-408000 4000 /bin/p;");
}
END_TEST

START_TEST(code_around_a_segment_stays_without_file)
{
        moved_text_is(HEADER "401000-400a000 r-xp 00000000 00:00 0 \n",
                      "401000-402000;402000-408000 1000 /bin/p;408000-400a000;");
        moved_text_is(HEADER DATA "40b000-40c000 r-xp 00000000 00:00 0 \n", "40b000-40c000;");
        moved_text_is("402000-403000 r-xp 00000000 00:00 0 \n", "402000-403000;");
        moved_text_is("400000-401000 r--p 00000000 fe:01 8  /bin/data\n402000-403000 r-xp 00000000 00:00 0 \n",
                      "402000-403000;");
}
END_TEST

TEST_SUITE("proc_maps", only_executable_mappings_are_kept, path_keeps_spaces_and_loses_deleted_suffix,
           mapping_end_is_exclusive, malformed_lines_are_refused_with_line_number,
           mapping_that_grew_during_read_counts_once, own_mappings_contain_this_function,
           start_time_counts_from_the_last_parenthesis, containers_and_units_are_derived_from_cgroup,
           code_in_a_segment_belongs_to_its_file, each_moved_part_belongs_to_the_file,
           code_around_a_segment_stays_without_file)
