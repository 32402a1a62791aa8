/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of stacks in the BPF program's format, from this process, to a profile: adjustment of return addresses,
 * truncation, and names.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "sampling/processes/process_read.h"
#include "sampling/profile_build.h"
#include "sampling/samplers/sample_counts.h"
#include "sampling/samplers/sample_frame.h"
#include "sampling/processes/wait_reason.h"
#include "tests/support/suite.h"

#define PERIOD_NS 52631578

static struct process_table processes;
static struct kernel kernel;
static struct label_options choice;
static struct relabel_rules rules;
static struct labels labels;
static struct profile profile;
static struct profile_build_stats stats;

static struct sample_process self(void)
{
        _cleanup_buf_ struct buf text;
        struct process_stat stat;
        struct error err;

        buf_init(&text, KiB(64));
        ck_assert_int_eq(file_read("/proc/self/stat", &text, &err), ST_OK);
        ck_assert(process_parse_stat((char *)text.data, text.size, &stat));
        return (struct sample_process){ .tgid = (uint32_t)getpid(), .start_boot_ns = process_start_ns(&stat) };
}

static void set_up(void)
{
        struct error err;

        process_table_init(&processes);
        ck_assert_msg(labels_init(&labels, &choice, &err) == ST_OK, "%s", err.text);
}

/* One sample of this process, with a count of three. */
static void build(const uint64_t *user, uint32_t user_count, const uint64_t *kernel_frames, uint32_t kernel_count,
                  uint32_t flags)
{
        uint64_t frames[64];
        struct sample_stack stacks[2] = { { .number = 1, .frame_count = kernel_count, .end = SAMPLE_END_UNKNOWN },
                                          { .number = 2, .first_frame = kernel_count, .frame_count = user_count } };
        struct sample_count count = { .count = 3,
                                      .key = { .process = self(),
                                               .comm = "a-thread",
                                               .flags = flags,
                                               .kernel_stack = kernel_count ? 1 : 0,
                                               .user_stack = user_count ? 2 : 0 } };
        struct sample_batch batch = { .counts = &count,
                                      .count_count = 1,
                                      .stacks = stacks,
                                      .stack_count = 2,
                                      .frames = frames,
                                      .frame_count = kernel_count + user_count };
        const struct profile_context c = { .processes = &processes,
                                           .kernel = &kernel,
                                           .labels = &labels,
                                           .period_ns = PERIOD_NS,
                                           .time_unix_ns = 5,
                                           .duration_ns = 7 };
        struct error err;

        for (uint32_t i = 0; i < kernel_count + user_count; i++)
                frames[i] = i < kernel_count ? kernel_frames[i] : user[i - kernel_count];
        set_up();
        stats = (struct profile_build_stats){ 0 };
        ck_assert_msg(profile_build(&c, &batch, &profile, &stats, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(profile.samples.count, 1);
}

static void done(void)
{
        profile_deinit(&profile);
        process_table_deinit(&processes);
}

static const struct profile_location *frame(uint32_t i)
{
        const struct profile_stack *s = &profile.stacks.items[profile.samples.items[0].stack];

        ck_assert_uint_lt(i, s->location_count);
        return &profile.locations.items[profile.stack_locations.items[s->first_location + i]];
}

static uint32_t depth(void)
{
        return profile.stacks.items[profile.samples.items[0].stack].location_count;
}

static const char *frame_name(uint32_t i)
{
        const struct profile_location *l = frame(i);

        return l->line_count ? profile_text(&profile, profile.lines.items[l->first_line].function) : "";
}

static const char *label(const char *key)
{
        const struct profile_sample *s = &profile.samples.items[0];

        for (uint32_t i = 0; i < s->label_count; i++)
                if (strcmp(profile_text(&profile, profile.labels.items[s->first_label + i].key), key) == 0)
                        return profile_text(&profile, profile.labels.items[s->first_label + i].value);
        return "none";
}

/* The link-time address of a function of this program, from a profile with a single leaf frame. */
static uint64_t own_address(uint64_t addr)
{
        uint64_t ret;

        build(&addr, 1, NULL, 0, 0);
        ck_assert_int_eq(frame(0)->kind, ADDRESS_OBJECT);
        ret = frame(0)->address;
        done();
        return ret;
}

START_TEST(reused_pid_of_selected_process_is_excluded)
{
        const struct sample_process now = self();
        struct sample_process before = now;

        before.start_boot_ns -= 1000000000;
        process_table_init(&processes);
        processes.lives = &before;
        processes.life_count = 1;
        ck_assert(process_table_get(&processes, &now, "name")->is_excluded);
        ck_assert_uint_eq(processes.excluded, 1);
        process_table_deinit(&processes);
        process_table_init(&processes);
        processes.lives = &now;
        processes.life_count = 1;
        ck_assert(!process_table_get(&processes, &now, "name")->is_excluded);
        ck_assert_uint_eq(processes.excluded, 0);
        process_table_deinit(&processes);
}
END_TEST

#define HERE(function, offset) ((uint64_t)(uintptr_t)(function) + (offset))

START_TEST(caller_addresses_are_decremented_and_leaf_is_not)
{
        const uint64_t user[] = { HERE(build, 8), HERE(frame, 8), HERE(label, 8) };
        uint64_t leaf = own_address(user[0]), caller = own_address(user[1]);

        build(user, 3, NULL, 0, 0);
        ck_assert_uint_eq(depth(), 3);
        ck_assert_uint_eq(frame(0)->address, leaf);
        ck_assert_uint_eq(frame(1)->address, caller - 1);
        ck_assert_uint_gt(profile.mappings.items[frame(0)->mapping].build_id.size, 0);
        ck_assert_uint_eq(frame(0)->mapping, frame(2)->mapping);
        ck_assert_uint_eq(frame(0)->line_count, 0); /* resolved by the service */
        done();
}
END_TEST

START_TEST(leaf_in_system_call_is_decremented)
{
        const uint64_t user[] = { HERE(build, 8), HERE(frame, 8) };
        uint64_t leaf = own_address(user[0]);

        build(user, 2, NULL, 0, SAMPLE_IN_SYSCALL);
        ck_assert_uint_eq(frame(0)->address, leaf - 1);
        done();
        build(user, 2, NULL, 0, 0); /* a page fault: the address of the instruction itself */
        ck_assert_uint_eq(frame(0)->address, leaf);
        done();
}
END_TEST

START_TEST(stack_ends_before_caller_outside_code)
{
        int on_the_stack;
        const uint64_t user[] = { HERE(build, 8), HERE(frame, 8), (uint64_t)(uintptr_t)&on_the_stack, HERE(label, 8) };

        build(user, 4, NULL, 0, 0);
        ck_assert_uint_eq(depth(), 2);
        ck_assert_uint_eq(stats.no_code_frames, 1);
        done();
        build(user + 2, 1, NULL, 0, 0); /* a leaf is always kept */
        ck_assert_uint_eq(depth(), 1);
        ck_assert_str_eq(frame_name(0), "[unmapped]");
        ck_assert_int_eq(frame(0)->kind, ADDRESS_NONE);
        done();
}
END_TEST

START_TEST(kernel_frames_come_first_with_name_and_link_time_address)
{
        static const char text[] = "ffffffff91000000 T _text\nffffffff91000000 T first\nffffffff91000100 t second\n";
        const uint64_t kernel_frames[] = { 0xffffffff91000010, 0xffffffff91000100, 0xffffffff91000180 };
        const uint64_t user[] = { HERE(build, 8) };
        struct error err;

        ck_assert_int_eq(kallsyms_parse(text, strlen(text), &kernel.symbols, &err), ST_OK);
        kernel.has_symbols = kernel.has_shift = true;
        kernel.shift = 0x10000000;
        kernel.build_id = (struct build_id){ .size = 3, .bytes = { 0xab, 0xcd, 0xef } };
        build(user, 1, kernel_frames, 3, 0);
        ck_assert_uint_eq(depth(), 4);
        ck_assert_int_eq(frame(0)->frame_type, PROFILE_FRAME_KERNEL);
        ck_assert_uint_eq(frame(0)->address, 0xffffffff81000010);
        ck_assert_str_eq(frame_name(0), "first");
        ck_assert_str_eq(frame_name(1),
                         "first"); /* a return address at the start of second() belongs to a call in first() */
        ck_assert_uint_eq(frame(1)->address, 0xffffffff810000ff);
        ck_assert_str_eq(frame_name(2), "second");
        ck_assert(build_id_equal(&profile.mappings.items[frame(0)->mapping].build_id, &kernel.build_id));
        ck_assert_int_eq(frame(3)->frame_type, PROFILE_FRAME_NATIVE);
        done();
        kernel.has_shift = false; /* then no address with the wrong location may be used */
        build(user, 1, kernel_frames, 3, 0);
        ck_assert_int_eq(frame(0)->kind, ADDRESS_NONE);
        ck_assert_str_eq(frame_name(0), "first");
        ck_assert_uint_eq(stats.kernel_name_only, 3);
        done();
        kallsyms_deinit(&kernel.symbols);
}
END_TEST

START_TEST(frames_of_runtimes_are_two_words)
{
        const uint64_t user[] = { sample_frame_pack(SAMPLE_FRAME_KERNEL - 1, 0x1000), HERE(build, 8),
                                  sample_frame_pack(SAMPLE_FRAME_KERNEL - 1, 0x1000), HERE(frame, 8), HERE(label, 8) };
        uint64_t caller = own_address(user[4]);
        struct sample_frame f;

        build(user, 5, NULL, 0, 0);
        ck_assert_uint_eq(depth(), 3); /* the words that look like code are details of frames */
        ck_assert_str_eq(frame_name(0), "[unknown runtime]");
        ck_assert_int_eq(frame(0)->frame_type, PROFILE_FRAME_UNKNOWN);
        ck_assert_uint_eq(frame(2)->address, caller - 1);
        ck_assert_int_eq(frame(2)->frame_type, PROFILE_FRAME_NATIVE);
        done();
        build(user, 3, NULL, 0, 0); /* the second frame lacks its detail */
        ck_assert_uint_eq(depth(), 1);
        done();
        ck_assert_uint_eq(sample_frame_unpack(user, 2, &f), 2);
        ck_assert_uint_eq(f.kind, SAMPLE_FRAME_KERNEL - 1);
        ck_assert_uint_eq(f.address, 0x1000);
        ck_assert_uint_eq(f.detail, user[1]);
        ck_assert_uint_eq(sample_frame_unpack(user, 0, &f), 0);
}
END_TEST

START_TEST(pc_that_is_no_user_address_stays_native)
{
        const uint64_t pcs[] = { 0xffffffffff600000, 0x0200000000001000, SAMPLE_FRAME_ADDRESS_MAX, 0x7fffffffffff };

        for (size_t i = 0; i < 4; i++) {
                uint64_t word = sample_frame_pack_native(pcs[i], i % 2);
                struct sample_frame f;

                ck_assert_uint_eq(sample_frame_unpack(&word, 1, &f), 1);
                ck_assert_uint_eq(f.kind, SAMPLE_FRAME_NATIVE);
                ck_assert_uint_eq(f.is_exact != 0, i % 2);
                ck_assert_uint_eq(f.address, i < 3 ? SAMPLE_FRAME_ADDRESS_MAX : pcs[i]);
                build(&word, 1, NULL, 0, 0);
                ck_assert_str_eq(frame_name(0), "[unmapped]");
                done();
        }
}
END_TEST

START_TEST(ended_process_keeps_time_and_thread_name)
{
        uint64_t user[] = { HERE(build, 8), HERE(frame, 8) };
        struct sample_stack stack = { .number = 2, .frame_count = 2 };
        struct sample_count count = {
                .count = 2,
                .key = { .process = { .tgid = 0x7ffffff0, .start_boot_ns = 1 }, .comm = "short-lived", .user_stack = 2 }
        };
        struct sample_batch batch = {
                .counts = &count, .count_count = 1, .stacks = &stack, .stack_count = 1, .frames = user, .frame_count = 2
        };
        const struct profile_context c = {
                .processes = &processes, .kernel = &kernel, .labels = &labels, .period_ns = PERIOD_NS
        };
        struct error err;

        set_up();
        ck_assert_int_eq(profile_build(&c, &batch, &profile, &stats, &err), ST_OK);
        ck_assert_str_eq(frame_name(0), "[exited]");
        ck_assert_uint_eq(depth(), 1);
        ck_assert_str_eq(label("process.executable.name"), "short-lived");
        ck_assert_int_eq(profile.samples.items[0].value, 2 * PERIOD_NS);
        ck_assert_uint_eq(processes.unreadable, 1);
        done();
}
END_TEST

START_TEST(jit_code_is_named_by_perf_map)
{
        void *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const uint64_t user[] = { HERE(build, 8), (uint64_t)(uintptr_t)code + 0x20,
                                  (uint64_t)(uintptr_t)code + 0x1000 };
        char path[64];
        FILE *f;

        ck_assert_ptr_ne(code, MAP_FAILED);
        snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
        f = fopen(path, "we");
        fprintf(f, "%lx 20 jitted function\n", (unsigned long)(uintptr_t)code);
        fclose(f);
        build(user, 3, NULL, 0, 0);
        unlink(path);
        ck_assert_uint_eq(depth(), 3);
        ck_assert_str_eq(frame_name(1), "jitted function"); /* its end is a return address of a call in it */
        ck_assert_str_eq(frame_name(2), "[jit]");
        ck_assert_int_eq(frame(1)->kind, ADDRESS_NONE);
        ck_assert_uint_eq(stats.jit_frames, 1);
        done();
        munmap(code, 8192);
}
END_TEST

START_TEST(replaced_jit_code_is_renamed_in_next_interval)
{
        void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const struct sample_process id = self();
        static const char *const names[] = { "before", "after" };
        char path[64];

        snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
        set_up();
        for (int i = 0; i < 2; i++) {
                FILE *f = fopen(path, "ae");
                struct user_location place;

                fprintf(f, "%lx 20 %s\n", (unsigned long)(uintptr_t)code, names[i]);
                fclose(f);
                process_table_begin_drain(&processes);
                place = process_table_locate(&processes, process_table_get(&processes, &id, "x"),
                                             (uint64_t)(uintptr_t)code);
                ck_assert_int_eq(place.kind, USER_LOCATION_NAMED);
                ck_assert_str_eq(place.jit.name, names[i]);
        }
        unlink(path);
        process_table_deinit(&processes);
        munmap(code, 4096);
}
END_TEST

START_TEST(samples_have_labels_and_type)
{
        static const char *items[] = { "env=prod", "host.name=mine" };
        const uint64_t user[] = { HERE(build, 8) };
        char comm[32] = "", program[4096] = "";
        FILE *f = fopen("/proc/self/comm", "re");

        ck_assert_int_gt(readlink("/proc/self/exe", program, sizeof program - 1), 0);
        ck_assert_ptr_nonnull(fgets(comm, sizeof comm, f));
        fclose(f);
        comm[strcspn(comm, "\n")] = 0;
        choice.own = (struct option_list){ items, 2 };
        build(user, 1, NULL, 0, 0);
        ck_assert_str_eq(label("thread.name"), "a-thread");
        ck_assert_str_eq(label("process.executable.name"), comm);
        ck_assert_str_eq(label("process.executable.path"), program);
        ck_assert_str_eq(label("service.name"), comm);
        ck_assert_str_eq(label("env"), "prod");
        ck_assert_str_eq(label("host.name"), "mine"); /* labels given by the user take precedence */
        ck_assert_str_eq(label("process.pid"), "none");
        ck_assert_str_eq(profile_text(&profile, profile.types.items[0].id),
                         "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        ck_assert_int_eq(profile.types.items[0].period, PERIOD_NS);
        ck_assert_int_eq(profile.samples.items[0].value, 3 * (int64_t)PERIOD_NS);
        ck_assert_int_eq(profile.samples.items[0].time_unix_ns, 5);
        ck_assert_int_eq(profile.samples.items[0].duration_ns, 7);
        done();
}
END_TEST

/* A wait for a futex and the run queue after it, and a tick of the same thread. */
START_TEST(waits_have_a_type_and_labels_of_their_own)
{
        const struct sample_key tick = { .process = self(), .comm = "thread" };
        const struct sample_weight wait = { .blocked_ns = 700, .queued_ns = 50 };
        struct sample_key key = tick;
        struct sample_count counts[2 * SAMPLE_COUNTS_MAX];
        struct sample_batch batch = { .counts = counts };
        const struct profile_context c = {
                .processes = &processes, .kernel = &kernel, .labels = &labels, .period_ns = PERIOD_NS
        };
        struct error err;

        key.flags = SAMPLE_OFF_CPU;
        key.wait_reason = WAIT_FUTEX;
        key.futex = 0x7f00abc0;
        batch.count_count = sample_split(&key, &wait, counts);
        ck_assert_uint_eq(batch.count_count, 2);
        batch.count_count += sample_split(&tick, &(struct sample_weight){ 0 }, counts + 2);
        ck_assert_uint_eq(batch.count_count, 3);
        set_up();
        ck_assert_int_eq(profile_build(&c, &batch, &profile, &stats, &err), ST_OK);
        ck_assert_uint_eq(profile.samples.count, 3);
        ck_assert_str_eq(profile_text(&profile, profile.types.items[profile.samples.items[0].type].id),
                         "off_cpu:off_cpu:nanoseconds::");
        ck_assert_int_eq(profile.samples.items[0].value, 700);
        ck_assert_str_eq(label("cairn.wait.reason"), "futex");
        ck_assert_str_eq(label("cairn.wait.futex"), "0x7f00abc0");
        ck_assert_int_eq(profile.samples.items[1].value, 50);
        ck_assert_uint_eq(profile.samples.items[1].type, profile.samples.items[0].type);
        ck_assert_int_eq(profile.samples.items[2].value, PERIOD_NS);
        ck_assert_str_eq(profile_text(&profile, profile.types.items[profile.samples.items[2].type].id),
                         "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        done();
}
END_TEST

/* Two ticks of one stack: one while two threads ran, one while three did; and a tick whose threads were not counted. */
START_TEST(latency_is_a_share_of_each_tick)
{
        const struct sample_key tick = { .process = self(), .comm = "thread" };
        const struct profile_context c = {
                .processes = &processes, .kernel = &kernel, .labels = &labels, .period_ns = PERIOD_NS
        };
        const struct sample_frames none = { 0 };
        _cleanup_sample_batch_ struct sample_batch batch = { 0 };
        struct sample_counts all = { 0 };
        struct sample_count counts[SAMPLE_COUNTS_MAX];
        int64_t latency = 0;
        struct error err;

        for (uint64_t running = 2; running <= 3; running++) {
                ck_assert_uint_eq(sample_split(&tick, &(struct sample_weight){ .running = running }, counts), 1);
                ck_assert_int_eq(sample_counts_add(&all, counts, &none, &none), STAT_SAMPLES);
        }
        sample_counts_take(&all, &batch);
        set_up();
        ck_assert_int_eq(profile_build(&c, &batch, &profile, &stats, &err), ST_OK);
        ck_assert_uint_eq(profile.samples.count, 2);
        ck_assert_int_eq(profile.samples.items[0].value, 2 * (int64_t)PERIOD_NS);
        ck_assert_str_eq(profile_text(&profile, profile.types.items[profile.samples.items[0].type].id),
                         "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        latency = profile.samples.items[1].value;
        ck_assert_int_ge(latency * 6, 5 * (int64_t)PERIOD_NS);
        ck_assert_int_lt((latency - 1) * 6, 5 * (int64_t)PERIOD_NS);
        ck_assert_str_eq(profile_text(&profile, profile.types.items[profile.samples.items[1].type].id),
                         "process_cpu:latency:nanoseconds:cpu:nanoseconds");
        ck_assert_uint_eq(profile.samples.items[1].stack, profile.samples.items[0].stack);
        done();
}
END_TEST

START_TEST(latency_of_many_threads_is_not_lost)
{
        const struct sample_key tick = { .comm = "thread" };
        struct sample_count count[SAMPLE_COUNTS_MAX];

        ck_assert_uint_eq(sample_split(&tick, &(struct sample_weight){ .running = UINT64_MAX }, count), 1);
        ck_assert_uint_eq(count[0].latency, 1);
        ck_assert_uint_eq(sample_split(&tick, &(struct sample_weight){ .running = 1 }, count), 1);
        ck_assert_uint_eq(count[0].latency, SAMPLE_LATENCY_WHOLE);
        ck_assert_uint_eq(sample_split(&tick, &(struct sample_weight){ 0 }, count), 1);
        ck_assert_uint_eq(count[0].latency, 0); /* not measured */
}
END_TEST

START_TEST(every_reason_to_wait_has_a_name)
{
        for (unsigned i = WAIT_NONE + 1; i < WAIT_REASON_COUNT; i++) {
                ck_assert_ptr_nonnull(wait_reason_name(i));
                ck_assert_str_ne(wait_reason_name(i), "");
        }
        ck_assert_str_eq(wait_reason_name(WAIT_REASON_COUNT), "");
}
END_TEST

START_TEST(kernel_threads_of_one_kind_share_name)
{
        struct sample_count count = {
                .count = 1,
                .key = { .process = { .tgid = 0x7ffffff0 }, .comm = "kworker/3:1-evn", .flags = SAMPLE_KERNEL_THREAD }
        };
        struct sample_batch batch = { .counts = &count, .count_count = 1 };
        const struct profile_context c = {
                .processes = &processes, .kernel = &kernel, .labels = &labels, .period_ns = PERIOD_NS
        };
        struct error err;

        set_up();
        ck_assert_int_eq(profile_build(&c, &batch, &profile, &stats, &err), ST_OK);
        ck_assert_str_eq(label("process.executable.name"), "kworker");
        ck_assert_str_eq(label("thread.name"), "kworker/3:1-evn");
        ck_assert_str_eq(frame_name(0), "[no stack]");
        done();
}
END_TEST

/* Two samples of one stack, by two threads. */
static enum status build_threads(struct error *err)
{
        uint64_t user[] = { HERE(build, 8) };
        struct sample_stack stack = { .number = 2, .frame_count = 1 };
        struct sample_count counts[] = {
                { .count = 2, .key = { .process = self(), .comm = "one", .user_stack = 2 } },
                { .count = 5, .key = { .process = self(), .comm = "two", .user_stack = 2 } },
        };
        struct sample_batch batch = {
                .counts = counts, .count_count = 2, .stacks = &stack, .stack_count = 1, .frames = user, .frame_count = 1
        };
        const struct profile_context c = {
                .processes = &processes, .kernel = &kernel, .labels = &labels, .rules = &rules, .period_ns = PERIOD_NS
        };

        stats = (struct profile_build_stats){ 0 };
        return profile_build(&c, &batch, &profile, &stats, err);
}

START_TEST(samples_with_equal_labels_are_merged)
{
        static const char *drop[] = { "thread.name" };
        struct error err;

        set_up();
        ck_assert_int_eq(build_threads(&err), ST_OK);
        ck_assert_uint_eq(profile.samples.count, 2);
        done();
        choice.drop = (struct option_list){ drop, 1 };
        set_up();
        ck_assert_int_eq(build_threads(&err), ST_OK);
        ck_assert_uint_eq(profile.samples.count, 1);
        ck_assert_int_eq(profile.samples.items[0].value, 7 * (int64_t)PERIOD_NS);
        done();
}
END_TEST

static void finish_rules(struct relabel_rule *items, size_t count)
{
        struct error err;

        rules = (struct relabel_rules){ items, count };
        for (size_t i = 0; i < count; i++)
                ck_assert_msg(relabel_rule_finish(&items[i], &err) == ST_OK, "%s", err.text);
}

static struct relabel_rule make_rule(enum relabel_action action, const char *source, const char *pattern,
                                     const char *target)
{
        struct relabel_rule r = { .action = action,
                                  .sources = calloc(1, sizeof *r.sources),
                                  .source_count = 1,
                                  .pattern = strdup(pattern),
                                  .target_label = target ? strdup(target) : NULL };

        r.sources[0] = strdup(source);
        return r;
}

START_TEST(relabel_rules_drop_and_rename_samples)
{
        struct relabel_rule items[] = {
                make_rule(RELABEL_DROP, "thread.name", "o.e", NULL),
                make_rule(RELABEL_REPLACE, "thread.name", "(.*)", "__temporary"),
                make_rule(RELABEL_REPLACE, "__temporary", "t(.)o", "letter"),
        };
        struct error err;

        finish_rules(items, 3);
        set_up();
        ck_assert_int_eq(build_threads(&err), ST_OK);
        ck_assert_uint_eq(profile.samples.count, 1);
        ck_assert_int_eq(profile.samples.items[0].value, 5 * (int64_t)PERIOD_NS);
        ck_assert_uint_eq(stats.relabel_dropped_samples, 2);
        ck_assert_str_eq(label("letter"), "w");
        ck_assert_str_eq(label("thread.name"), "two");
        ck_assert_str_eq(label("__temporary"), "none");
        done();
        for (size_t i = 0; i < 3; i++)
                relabel_rule_deinit(&items[i]);
        rules = (struct relabel_rules){ 0 };
}
END_TEST

START_TEST(samples_with_equal_relabeled_labels_are_merged)
{
        struct relabel_rule items[] = { make_rule(RELABEL_LABEL_DROP, "thread.name", "thread\\..*", NULL) };
        struct error err;

        finish_rules(items, 1);
        set_up();
        ck_assert_int_eq(build_threads(&err), ST_OK);
        ck_assert_uint_eq(profile.samples.count, 1);
        ck_assert_int_eq(profile.samples.items[0].value, 7 * (int64_t)PERIOD_NS);
        done();
        relabel_rule_deinit(&items[0]);
        rules = (struct relabel_rules){ 0 };
}
END_TEST

static unsigned told;

static void on_excluded(void *ctx, const struct sample_process *id)
{
        (void)ctx;
        ck_assert_uint_eq(id->tgid, (uint32_t)getpid());
        told++;
}

START_TEST(excluded_processes_are_reported_to_sampler_and_counted)
{
        static const char *only[] = { "another" };
        const struct process_filter filter = { .only_process = { only, 1 } };
        struct error err;

        set_up();
        processes.filter = &filter;
        processes.on_excluded = on_excluded;
        ck_assert_int_eq(build_threads(&err), ST_OK);
        ck_assert_uint_eq(profile.samples.count, 0);
        ck_assert_uint_eq(stats.excluded_samples, 7);
        ck_assert_uint_eq(processes.excluded, 1);
        ck_assert_uint_eq(processes.unreadable, 0);
        ck_assert_uint_ge(told, 1);
        ck_assert_uint_eq(processes.items[0]->maps.count, 0); /* nothing was read for it */
        done();
}
END_TEST

/* The mappings of all processes are limited: a process that has too many for what is left is kept without them. */
START_TEST(process_with_too_many_mappings_has_none)
{
        const struct sample_process id = self();
        const uint64_t here = (uint64_t)(uintptr_t)&self;
        const size_t others = 1048576 - 8; /* one process may add a quarter of the rest: two */
        struct process *p;

        set_up();
        processes.mapping_count = others;
        process_table_begin_drain(&processes);
        p = process_table_get(&processes, &id, "x");
        ck_assert_int_eq(process_table_locate(&processes, p, here).kind, USER_LOCATION_UNMAPPED);
        ck_assert_uint_ge(processes.too_many_mappings, 1);
        ck_assert_uint_eq(p->maps.count, 0);
        ck_assert_uint_eq(processes.mapping_count, others);
        process_table_deinit(&processes);

        set_up();
        process_table_begin_drain(&processes);
        p = process_table_get(&processes, &id, "x");
        ck_assert_int_eq(process_table_locate(&processes, p, here).kind, USER_LOCATION_OBJECT);
        ck_assert_uint_eq(processes.too_many_mappings, 0);
        ck_assert_uint_eq(processes.mapping_count, p->maps.count);
        process_table_deinit(&processes);
        ck_assert_uint_eq(processes.mapping_count, 0);
}
END_TEST

TEST_SUITE("agent_profile", reused_pid_of_selected_process_is_excluded,
           caller_addresses_are_decremented_and_leaf_is_not, leaf_in_system_call_is_decremented,
           stack_ends_before_caller_outside_code, frames_of_runtimes_are_two_words,
           pc_that_is_no_user_address_stays_native, kernel_frames_come_first_with_name_and_link_time_address,
           ended_process_keeps_time_and_thread_name, jit_code_is_named_by_perf_map,
           replaced_jit_code_is_renamed_in_next_interval, samples_have_labels_and_type,
           waits_have_a_type_and_labels_of_their_own, latency_is_a_share_of_each_tick,
           latency_of_many_threads_is_not_lost, every_reason_to_wait_has_a_name, kernel_threads_of_one_kind_share_name,
           samples_with_equal_labels_are_merged, relabel_rules_drop_and_rename_samples,
           samples_with_equal_relabeled_labels_are_merged, excluded_processes_are_reported_to_sampler_and_counted,
           process_with_too_many_mappings_has_none)
