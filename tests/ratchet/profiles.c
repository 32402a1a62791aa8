/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that decode and build profiles. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/profile_type.h"
#include "sampling/processes/process_read.h"
#include "sampling/profile_build.h"
#include "sampling/samplers/sample_counts.h"
#include "tests/ratchet/ratchet.h"

#define MAPPINGS 40
#define LOCATIONS 4000
#define STACKS 1500
#define SAMPLES 4000
#define NAMES 1500

static struct buf input;

/* ---- decoders ---- */

static uint32_t add_text(struct profile *p, const char *prefix, uint32_t number, const char *suffix)
{
        char text[128];
        int n = snprintf(text, sizeof text, "%s%u%s", prefix, number, suffix);
        struct error err;
        uint32_t ret;

        require_ok(profile_add_string(p, text, (size_t)n, &ret, &err), &err);
        return ret;
}

static void add_locations(struct profile *p, bool is_named)
{
        uint32_t unused;
        struct error err;

        for (uint32_t i = 0; i < MAPPINGS; i++) {
                struct profile_mapping m = { .file = add_text(p, "/usr/lib/x86_64-linux-gnu/libexample-", i, ".so.1") };

                m.build_id.size = 20;
                for (unsigned k = 0; k < 20; k++)
                        m.build_id.bytes[k] = (uint8_t)draw_below(256);
                require_ok(profile_add_mapping(p, &m, &unused, &err), &err);
        }
        for (uint32_t i = 0; i < LOCATIONS; i++) {
                struct profile_location l = { .mapping = draw_below(MAPPINGS),
                                              .address = 0x1000 + draw_below(1u << 24),
                                              .first_line = p->lines.count,
                                              .line_count = is_named ? 1 + draw_below(2) : 0 };

                for (uint32_t k = 0; k < l.line_count; k++) {
                        struct profile_line line = {
                                .function = add_text(p, "example::module::Class<int>::method_", draw_below(NAMES),
                                                     "(int, char const*)"),
                                .file = add_text(p, "/build/example-1.0/src/module/file_", draw_below(200), ".cc"),
                                .line = 1 + draw_below(3000),
                        };

                        require_ok(profile_add_line(p, &line, &unused, &err), &err);
                }
                require_ok(profile_add_location(p, &l, &unused, &err), &err);
        }
}

static void make_profile(struct profile *p, bool is_named)
{
        struct profile_sample s = { .time_unix_ns = INT64_C(1728000000000000000), .duration_ns = 10000000000 };
        static uint32_t stacks[STACKS];
        struct error err;
        uint32_t unused;

        require_ok(profile_init(p, LIMIT_PROFILE_MEMORY_BYTES, &err), &err);
        require_ok(profile_type_add_id(p, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10000000, &s.type, &err),
                   &err);
        add_locations(p, is_named);
        for (uint32_t i = 0; i < STACKS; i++) {
                uint32_t frames[60], count = 5 + draw_below(55);

                for (uint32_t k = 0; k < count; k++)
                        frames[k] = draw_below(draw_below(LOCATIONS) + 1);
                require_ok(profile_add_stack(p, frames, count, &stacks[i], &err), &err);
        }
        for (uint32_t i = 0; i < SAMPLES; i++) {
                struct profile_label labels[] = {
                        { add_text(p, "label.", 0, ""), add_text(p, "worker-", draw_below(64), "") },
                        { add_text(p, "label.", 1, ""), add_text(p, "", 1000 + draw_below(200), "") },
                };

                s.stack = stacks[draw_below(STACKS)];
                require_ok(profile_add_label_set(p, labels, 2, &s.first_label, &err), &err);
                s.label_count = 2;
                s.value = 10000000 * (1 + draw_below(20));
                require_ok(profile_add_sample(p, &s, &unused, &err), &err);
        }
}

static void prepare_otlp(void)
{
        struct profile p;
        struct error err;

        make_profile(&p, false);
        buf_init(&input, MiB(64));
        require_ok(otlp_encode(&p, &input, &err), &err);
        profile_deinit(&p);
}

static void run_otlp(void)
{
        struct profile p;
        struct error err;

        require_ok(otlp_decode(input.data, input.size, &p, &err), &err);
        profile_deinit(&p);
}

static void prepare_pprof(void)
{
        _cleanup_buf_ struct buf packed;
        struct profile p;
        struct error err;

        make_profile(&p, true);
        buf_init(&packed, MiB(64));
        buf_init(&input, MiB(64));
        require_ok(pprof_encode(&p, &packed, &err), &err);
        require_ok(gzip_decompress(packed.data, packed.size, &input, &err), &err);
        profile_deinit(&p);
}

static void run_pprof(void)
{
        struct profile p;
        struct error err;

        require_ok(pprof_decode(input.data, input.size, NULL, &p, &err), &err);
        profile_deinit(&p);
}

/* ---- the agent ---- */

#define PERIOD_NS 52631578
#define COUNTS 3000
#define KERNEL_SYMBOLS 2000
#define KERNEL_BASE UINT64_C(0xffffffff81000000)

static struct process_table processes;
static struct kernel kernel;
static struct labels labels;
static struct sample_batch batch;

static struct sample_process identify_this_process(void)
{
        _cleanup_buf_ struct buf text;
        struct process_stat stat;
        struct error err;

        buf_init(&text, KiB(64));
        require_ok(file_read("/proc/self/stat", &text, &err), &err);
        require_true(process_parse_stat((char *)text.data, text.size, &stat), "cannot parse /proc/self/stat");
        return (struct sample_process){ .tgid = (uint32_t)getpid(), .start_boot_ns = process_start_ns(&stat) };
}

static void make_kernel(void)
{
        _cleanup_buf_ struct buf text;
        struct error err;

        buf_init(&text, MiB(4));
        for (uint32_t i = 0; i < KERNEL_SYMBOLS; i++)
                buf_printf(&text, "%llx T kernel_function_%u\n", (unsigned long long)KERNEL_BASE + i * 64ull, i);
        require_ok(kallsyms_parse((char *)text.data, text.size, &kernel.symbols, &err), &err);
        kernel.has_symbols = true;
}

/* Stacks of this program's own code, whose mapping is the only one that is the same on each machine. */
static void count_samples(struct sample_counts *counts, const struct sample_process *process)
{
        uint64_t code = (uint64_t)(uintptr_t)count_samples;
        static struct sample_frames user[400], in_kernel[40];

        for (uint32_t i = 0; i < 400; i++) {
                user[i].frame_count = 10 + draw_below(50);
                for (uint32_t k = 0; k < user[i].frame_count; k++)
                        user[i].frames[k] = code + draw_below(draw_below(2000) + 1);
        }
        for (uint32_t i = 0; i < 40; i++) {
                in_kernel[i].frame_count = draw_below(12);
                in_kernel[i].end = SAMPLE_END_UNKNOWN;
                for (uint32_t k = 0; k < in_kernel[i].frame_count; k++)
                        in_kernel[i].frames[k] = KERNEL_BASE + draw_below(64 * KERNEL_SYMBOLS);
        }
        for (uint32_t i = 0; i < COUNTS; i++) {
                struct sample_count tick = { .key.process = *process, .count = 1 };

                snprintf(tick.key.comm, sizeof tick.key.comm, "worker-%u", draw_below(16));
                require_true(sample_counts_add(counts, &tick, &in_kernel[draw_below(40)], &user[draw_below(400)]) ==
                                     STAT_SAMPLES,
                             "a sample was lost");
        }
}

static void run_profile_build(void)
{
        const struct profile_context c = { .processes = &processes,
                                           .kernel = &kernel,
                                           .labels = &labels,
                                           .period_ns = PERIOD_NS,
                                           .time_unix_ns = 5,
                                           .duration_ns = 7 };
        struct profile_build_stats stats = { 0 };
        struct profile p;
        struct error err;

        require_ok(profile_build(&c, &batch, &p, &stats, &err), &err);
        profile_deinit(&p);
}

/* The first build, which is not counted, reads the mappings of this process. */
static void prepare_profile_build(void)
{
        const struct sample_process process = identify_this_process();
        struct label_options choice = { 0 };
        struct sample_counts counts = { 0 };
        struct error err;

        process_table_init(&processes);
        require_ok(labels_init(&labels, &choice, &err), &err);
        for (int i = 0; i < LABEL_KEY_COUNT; i++)
                labels.enabled[i] = i == LABEL_PROCESS_NAME || i == LABEL_THREAD_NAME || i == LABEL_SERVICE_NAME;
        make_kernel();
        count_samples(&counts, &process);
        sample_counts_take(&counts, &batch);
        sample_batch_sort(&batch);
        run_profile_build();
}

const struct ratchet_path profile_paths[] = {
        { "otlp-decode", prepare_otlp, run_otlp },
        { "pprof-decode", prepare_pprof, run_pprof },
        { "profile-build", prepare_profile_build, run_profile_build },
        { NULL },
};
