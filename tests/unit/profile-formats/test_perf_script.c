/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "profile-formats/perf_script.h"
#include "tests/support/suite.h"

static struct profile decode_text(const char *text)
{
        struct profile p;
        struct error err = { 0 };

        ck_assert_msg(!perf_script_decode(text, strlen(text), 0, &p, &err), "%s in:\n%s", err.text, text);
        return p;
}

static const char *get_label(const struct profile *p, const struct profile_sample *s, const char *key)
{
        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_label *l = &p->labels.items[s->first_label + i];

                if (strcmp(profile_text(p, l->key), key) == 0)
                        return profile_text(p, l->value);
        }
        return "-";
}

/* "FUNCTION@FILE" of each frame, leaf first. */
static void describe_stack(const struct profile *p, const struct profile_sample *s, char *to, size_t size)
{
        const struct profile_stack *stack = &p->stacks.items[s->stack];
        size_t used = 0;

        *to = 0;
        for (uint32_t i = 0; i < stack->location_count; i++) {
                const struct profile_location *l =
                        &p->locations.items[p->stack_locations.items[stack->first_location + i]];
                const char *file = l->mapping == PROFILE_NONE ? ""
                                                              : profile_text(p, p->mappings.items[l->mapping].file),
                           *name = l->line_count ? profile_text(p, p->lines.items[l->first_line].function) : "?";

                used += (size_t)snprintf(to + used, size - used, "%s%s@%s", i ? " " : "", name, file);
                ck_assert_uint_lt(used, size);
        }
}

/* The text has one sample. */
static void expect_sample(const char *text, const char *comm, const char *pid, const char *type, const char *stack)
{
        _cleanup_profile_ struct profile p = decode_text(text);
        char found[512];

        ck_assert_msg(p.samples.count == 1, "%u samples in:\n%s", p.samples.count, text);
        describe_stack(&p, p.samples.items, found, sizeof found);
        ck_assert_str_eq(get_label(&p, p.samples.items, "comm"), comm);
        ck_assert_str_eq(get_label(&p, p.samples.items, "pid"), pid);
        ck_assert_str_eq(profile_text(&p, p.types.items[p.samples.items[0].type].id), type);
        ck_assert_str_eq(found, stack);
}

#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define STACK "\t    1145 hot+0xc (/bin/e)\n"

START_TEST(paths_and_symbols_may_have_parentheses)
{
        static const struct {
                const char *frame, *found;
        } frames[] = {
                { "[unknown] (/memfd:doublemapper (deleted))", "?@/memfd:doublemapper (deleted)" },
                { "Foo.Bar+0x10 (/usr/sbin/nginx (deleted))", "Foo.Bar@/usr/sbin/nginx (deleted)" },
                { "main+0x20 (/opt/My App (x86)/bin/app)", "main@/opt/My App (x86)/bin/app" },
                { "f(int (*)(int)) const+0x3 (/bin/a)", "f(int (*)(int)) const@/bin/a" },
                { "operator() (.isra.0)+0x33 (/bin/a (1) (deleted))", "operator() (.isra.0)@/bin/a (1) (deleted)" },
                { "g+0x20 (/opt/a)b/app)", "g@/opt/a)b/app" },
                { "h+0x20 (/opt/a(b/app)", "h@/opt/a(b/app" },
                { "Java_a+0x1 ([JIT app cache])", "Java_a@[JIT app cache]" },
                { "main+0x20 (/bin/a+0x1145)", "main@/bin/a" },
                { "f(int)", "f(int)@" },
                /* without the field sym */
                { "(/bin/a)", "?@/bin/a" },
                { "([kernel.kallsyms])", "?@[kernel.kallsyms]" },
                { "(/memfd:a (deleted))", "?@/memfd:a (deleted)" },
        };

        for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
                char text[256];

                snprintf(text, sizeof text, "x 7 1.5: 9 cpu-clock:\n\t7f0000001000 %s\n\n", frames[i].frame);
                expect_sample(text, "x", "7", CPU, frames[i].found);
        }
}
END_TEST

START_TEST(paths_may_have_line_ends)
{
        expect_sample("x 7 1.5: 9 cpu-clock:\n\t1145 hot+0xc (/a\n\nb c\nd/e)\n\t1146 g+0x1 (/bin/e)\n\n", "x", "7",
                      CPU, "hot@/a\n\nb c\nd/e g@/bin/e");
        expect_sample("x 7 1.5: 9 cpu-clock: 1145 hot+0xc (/a\nb/e)\n", "x", "7", CPU, "hot@/a\nb/e");
        expect_sample(
                "x 7 1.4: PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0x2000 fd:01 12 0]: r-xp /a\nb\nlong directory/e\n"
                "x\ny 8 1.5: 9 cpu-clock:\n\t1145 hot+0xc (/a\nb\nlong directory/e)\n\n",
                "x\ny", "8", CPU, "hot@/a\nb\nlong directory/e");
        /* a path without an end does not take the next frame */
        expect_sample("x 7 1.5: 9 cpu-clock:\n\t1145 hot (/a\n\t1146 g+0x1 (/bin/e)\n\n", "x", "7", CPU,
                      "hot (/a@ g@/bin/e");
}
END_TEST

START_TEST(processes_may_have_any_name_or_none)
{
        expect_sample(" 9211   803.218: 9 cpu-clock:\n" STACK, "-", "9211", CPU, "hot@/bin/e");
        expect_sample("my proc 5 9211/9212 [001] 803.218: 9 cpu-clock:\n" STACK, "my proc 5", "9211", CPU,
                      "hot@/bin/e");
        expect_sample("x 9211 [001] U   803.218: 9 cpu-clock:\n" STACK, "x", "9211", CPU, "hot@/bin/e");
        expect_sample("x   803.218: 9 cpu-clock:\n" STACK, "x", "-", CPU, "hot@/bin/e");
        expect_sample("803.218: 9 cpu-clock:\n" STACK, "-", "-", CPU, "hot@/bin/e");
        expect_sample("# x 9211 803.218: 9 cpu-clock:\n" STACK, "# x", "9211", CPU, "hot@/bin/e");
        expect_sample("# captured on : 12 1.5\n#\n#x 9211 803.218: cpu-clock:\n" STACK, "#x", "9211",
                      "process_cpu:samples:count:cpu:nanoseconds", "hot@/bin/e");
        expect_sample("a\nb 9211 803.218: 9 cpu-clock:\n" STACK, "a\nb", "9211", CPU, "hot@/bin/e");
        expect_sample("a\n\nb c\nd 9211 803.218: 9 cpu-clock:\n" STACK, "a\n\nb c\nd", "9211", CPU, "hot@/bin/e");
        expect_sample("x 7 803.1: PERF_RECORD_COMM exec: a\nb:7/7\n\nz 7 803.218: 9 cpu-clock:\n" STACK, "z", "7", CPU,
                      "hot@/bin/e");
        expect_sample("\xe6\x97\xa5\xe6\x9c 7 803.218: 9 cpu-clock:\n" STACK, "\xe6\x97\xa5\xef\xbf\xbd\xef\xbf\xbd",
                      "7", CPU, "hot@/bin/e");
}
END_TEST

START_TEST(events_of_all_kinds_are_samples)
{
        expect_sample("x 7 [000] 1.5: sched:sched_switch: prev_comm=x prev_pid=7 ==> next_comm=y next_pid=18\n" STACK,
                      "x", "7", "perf:sched_sched_switch:samples::", "hot@/bin/e");
        expect_sample("x 7 1.5: raw_syscalls:sys_enter: NR 16 (b, 2400, 0, 7f42de22b5e0, 1, 0)\n", "x", "7",
                      "perf:raw_syscalls_sys_enter:samples::", "");
        expect_sample("x 7 1.5: raw_syscalls:sys_enter: NR 16 (b, 1) ffffffff81417d70 enter ([kernel.kallsyms])\n", "x",
                      "7", "perf:raw_syscalls_sys_enter:samples::", "enter@[kernel.kallsyms]");
        expect_sample("x 7 1.5: 1 probe_libc:malloc: (7f12aabbccdd)\n" STACK, "x", "7",
                      "perf:probe_libc_malloc:count::", "hot@/bin/e");
        expect_sample("x 7 1.5: 3 probe:ab:\n" STACK, "x", "7", "perf:probe_ab:count::", "hot@/bin/e");
        expect_sample("x 7 1.5: 3 cycles:ppp:\n" STACK, "x", "7", "perf:cycles:count::", "hot@/bin/e");
        expect_sample("x 7 1.5: 3\n" STACK, "x", "7", "perf:event:count::", "hot@/bin/e");
        expect_sample("x 7 1.5: 3 cpu-clock/period=3/:\n" STACK, "x", "7", CPU, "hot@/bin/e");
}
END_TEST

START_TEST(unused_fields_are_skipped)
{
        expect_sample("x 7 1.5: 9 cpu-clock:    0   1e05080021 |OP N/A|LVL N/A or N/A|LCK N/A|BLK  N/A      0\n" STACK
                      " ABI:2    AX:0x6e1872    IP:0x564b8fa01148           3f2a0 N/A 4K\n insn: 48 01 c2\n  3f2a0\n\n",
                      "x", "7", CPU, "hot@/bin/e");
        expect_sample("x 7 1.5: 9 cpu-clock:   7f12  1e05080021 |OP N/A|LVL N/A   0   55796bc4f145 hot+0xc (/bin/e)\n",
                      "x", "7", CPU, "hot@/bin/e");
        expect_sample("x 7 1.5: 9 cpu-clock:   jmp   1145 hot+0xc (/bin/e) 0x1/0x2/P/-/-/0\n", "x", "7", CPU,
                      "hot@/bin/e");
        expect_sample("x 7 1.5: 9 cpu-clock:  1145 hot+0xc (/bin/e)  0x1/0x2/P/-/-/0  a+0x1/b+0x2/M/X/A/12 \n", "x",
                      "7", CPU, "hot@/bin/e");
        expect_sample("x 7 1.5: 9 cpu-clock:  1145 f(int)+0xc (/b (1)) =>     55e0 g+0x0 (/c d)\n", "x", "7", CPU,
                      "f(int)@/b (1)");
        expect_sample("x 7 1.5: 9 cpu-clock:  1145 (a) => b+0x1 (/bin/e)\n", "x", "7", CPU, "(a) => b@/bin/e");
        expect_sample("e 7 1.4: PERF_RECORD_NAMESPACES 7/7 - nr_namespaces: 7\n\t\t[0/net: 4/0xf0000075, 1/uts: "
                      "4/0xeffffffe,\n\t\t 2/ipc: 4/0xefffffff]\n"
                      "x 7 1.5: 9 cpu-clock:\n" STACK,
                      "x", "7", CPU, "hot@/bin/e");
        expect_sample("x 7 1.5: 9 cpu-clock:\n" STACK "\n|5        hot();\n|6  }\nPERF_RECORD_FINISHED_ROUND\n", "x",
                      "7", CPU, "hot@/bin/e");
}
END_TEST

START_TEST(source_lines_belong_to_the_frame_before)
{
        _cleanup_profile_ struct profile p =
                decode_text("x 7 1.5: 9 cpu-clock:\n"
                            "\t 1145 inner (inlined)\n  e.h:7\n\t 1145 hot+0xc (/bin/e)\n  my e.c:3\n"
                            "\t 2724a main+0x7a (/bin/e)\n  ??:0\n\n");
        const struct profile_location *l = p.locations.items;

        ck_assert_uint_eq(p.locations.count, 2);
        ck_assert_uint_eq(l[0].line_count, 2);
        ck_assert_str_eq(profile_text(&p, p.lines.items[l[0].first_line].file), "e.h");
        ck_assert_int_eq(p.lines.items[l[0].first_line].line, 7);
        ck_assert_str_eq(profile_text(&p, p.lines.items[l[0].first_line + 1].file), "my e.c");
        ck_assert_int_eq(p.lines.items[l[0].first_line + 1].line, 3);
        ck_assert_str_eq(profile_text(&p, p.lines.items[l[1].first_line].file), "");
}
END_TEST

START_TEST(only_one_clock_is_cpu_time)
{
        _cleanup_profile_ struct profile p = decode_text(
                "x 7 1.5: 9 task-clock:\n" STACK "x 7 1.5: 9 cpu-clock:\n" STACK "x 7 1.6: 9 task-clock:\n" STACK);

        ck_assert_uint_eq(p.samples.count, 3);
        ck_assert_str_eq(profile_text(&p, p.types.items[p.samples.items[0].type].id), CPU);
        ck_assert_str_eq(profile_text(&p, p.types.items[p.samples.items[1].type].id), "perf:cpu-clock:nanoseconds::");
        ck_assert_uint_eq(p.samples.items[2].type, p.samples.items[0].type);
}
END_TEST

START_TEST(missing_field_is_named)
{
        static const struct {
                const char *text, *message;
        } texts[] = {
                { "x 7   20000000 cpu-clock:\n" STACK,
                  "line 1 of perf script output: a header without the field time" },
                { "x 7/7\n" STACK, "a header without the field time; print it with 'perf script -F +time'" },
                { "x 7 1.5: 9 cpu-clock:\n" STACK "\n" STACK,
                  "line 4 of perf script output: neither a header nor a frame" },
                { "x 7 1.5: 9 cpu-clock:\n" STACK "odd line\n",
                  "line 3 of perf script output: neither a header nor a frame: 'odd line'" },
                { "a\nb 7 1.5: 9 cpu-clock:\n" STACK "odd line\n",
                  "line 4 of perf script output: neither a header nor a frame: 'odd line'" },
        };

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                struct error err = { 0 };
                struct profile p;

                ck_assert_int_eq(perf_script_decode(texts[i].text, strlen(texts[i].text), 0, &p, &err), ST_BAD_DATA);
                ck_assert_msg(strstr(err.text, texts[i].message), "'%s' in '%s'", texts[i].message, err.text);
        }
}
END_TEST

TEST_SUITE("perf script", paths_and_symbols_may_have_parentheses, paths_may_have_line_ends,
           processes_may_have_any_name_or_none, events_of_all_kinds_are_samples, unused_fields_are_skipped,
           source_lines_belong_to_the_frame_before, only_one_clock_is_cpu_time, missing_field_is_named)
