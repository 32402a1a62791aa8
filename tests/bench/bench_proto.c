/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes an agent's batch (OTLP, 2 MB) and a pprof file (20 MB) with the decoders of the ingest path and with
 * protobuf-c: only unpacked into messages, and also converted to a profile (tests/support/proto_oracle.h).
 *
 *      bench_proto [OTLP-FILE PPROF-FILE]
 *
 * Without files both inputs are generated: stacks of 5 to 60 frames from 40,000 locations in 60 mappings, as sent by an
 * agent without names, and with names for pprof. `cairn record -o x.otlp -o x.pb.gz` writes real ones. CPU time and
 * memory are the minimum of RUNS; memory is the growth of the process's peak.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/proto/otlp_profiles.pb-c.h"
#include "profile-formats/proto/pprof.pb-c.h"
#include "profile-formats/proto_message.h"
#include "tests/support/proto_oracle.h"

#define RUNS 9
#define MAPPINGS 60
#define LOCATIONS 40000
#define STACKS 20000

static uint32_t state = 1;

static uint32_t draw_number(uint32_t below)
{
        state = state * 1664525 + 1013904223;
        return (state >> 4) % below;
}

static void check_status(enum status st, const struct error *err)
{
        if (!st)
                return;
        fprintf(stderr, "bench_proto: %s\n", err->text);
        exit(1);
}

static uint32_t add_text(struct profile *p, const char *prefix, uint32_t i, const char *suffix)
{
        struct error err;
        char text[128];
        uint32_t ret;
        int n = snprintf(text, sizeof text, "%s%u%s", prefix, i, suffix);

        check_status(profile_add_string(p, text, (size_t)n, &ret, &err), &err);
        return ret;
}

static void add_locations(struct profile *p, bool named)
{
        uint32_t unused;
        struct error err;

        for (uint32_t i = 0; i < MAPPINGS; i++) {
                struct profile_mapping m = { .file = add_text(p, "/usr/lib/x86_64-linux-gnu/libexample-", i, ".so.1") };

                m.build_id.size = 20;
                for (unsigned k = 0; k < 20; k++)
                        m.build_id.bytes[k] = (uint8_t)draw_number(256);
                check_status(profile_add_mapping(p, &m, &unused, &err), &err);
        }
        for (uint32_t i = 0; i < LOCATIONS; i++) {
                struct profile_location l = { .mapping = draw_number(MAPPINGS),
                                              .address = 0x1000 + draw_number(1u << 24),
                                              .first_line = p->lines.count,
                                              .line_count = named ? 1 + draw_number(2) : 0 };

                for (uint32_t k = 0; k < l.line_count; k++) {
                        struct profile_line line = { .function = add_text(p, "example::module::Class<int>::method_",
                                                                          draw_number(LOCATIONS), "(int, char const*)"),
                                                     .file = add_text(p, "/build/example-1.0/src/module/file_",
                                                                      draw_number(2000), ".cc"),
                                                     .line = 1 + draw_number(3000) };

                        check_status(profile_add_line(p, &line, &unused, &err), &err);
                }
                check_status(profile_add_location(p, &l, &unused, &err), &err);
        }
}

static void make_profile(struct profile *p, bool named, uint32_t samples)
{
        struct error err;
        uint32_t unused;
        struct profile_sample s = { .time_unix_ns = INT64_C(1728000000000000000), .duration_ns = 10000000000 };

        check_status(profile_init(p, LIMIT_PROFILE_MEMORY_BYTES, &err), &err);
        check_status(profile_type_add_id(p, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10000000, &s.type, &err),
                     &err);
        add_locations(p, named);
        for (uint32_t i = 0; i < samples; i++) {
                uint32_t frames[60], count = 0, saved = state;
                struct profile_label labels[] = {
                        { add_text(p, "label.", 0, ""), add_text(p, "worker-", draw_number(64), "") },
                        { add_text(p, "label.", 1, ""), add_text(p, "", 1000 + draw_number(200), "") },
                };

                saved = state;
                state = draw_number(STACKS) * 7919 + 1;
                for (uint32_t depth = 5 + draw_number(55); depth; depth--)
                        frames[count++] = draw_number(draw_number(LOCATIONS) + 1);
                state = saved + i;
                check_status(profile_add_stack(p, frames, count, &s.stack, &err), &err);
                check_status(profile_add_label_set(p, labels, 2, &s.first_label, &err), &err);
                s.label_count = 2;
                s.value = 10000000 * (1 + draw_number(20));
                check_status(profile_add_sample(p, &s, &unused, &err), &err);
        }
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct result {
        int64_t best_ns;
        size_t memory;
};

/* CPU time, which does not include other processes. */
static int64_t get_cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static size_t get_peak_bytes(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return (size_t)u.ru_maxrss * 1024;
}

enum decoder { DECODER_OWN, DECODER_UNPACK, DECODER_PROTOBUF_C, DECODERS };

static enum status decode_input(enum decoder which, bool pprof, const struct buf *in, struct arena *memory,
                                struct profile *p, struct error *err)
{
        const void *message;

        switch (which) {
        case DECODER_OWN:
                return pprof ? pprof_decode(in->data, in->size, NULL, p, err) : otlp_decode(in->data, in->size, p, err);
        case DECODER_UNPACK:
                return proto_message_decode(pprof ? &pprof__profile__descriptor
                                                  : &otlp__export_profiles_service_request__descriptor,
                                            in->data, in->size, memory, "input", &message, err);
        default:
                return pprof ? oracle_decode_pprof(in->data, in->size, memory, p, err)
                             : oracle_decode_otlp(in->data, in->size, memory, p, err);
        }
}

/* One run in a process of its own, so that the peak is that of the run. */
static struct result measure_run(enum decoder which, bool pprof, const struct buf *in)
{
        struct result ret;
        int pipe_fds[2];
        pid_t child;

        if (pipe(pipe_fds) || (child = fork()) < 0)
                exit(1);
        if (child == 0) {
                size_t before = get_peak_bytes();
                int64_t start = get_cpu_ns();
                struct profile p = { 0 };
                struct arena memory;
                struct error err;

                arena_init(&memory, GiB(4));
                check_status(decode_input(which, pprof, in, &memory, &p, &err), &err);
                ret = (struct result){ get_cpu_ns() - start, get_peak_bytes() - before };
                _exit(write(pipe_fds[1], &ret, sizeof ret) != sizeof ret);
        }
        close(pipe_fds[1]);
        if (read(pipe_fds[0], &ret, sizeof ret) != sizeof ret || waitpid(child, NULL, 0) != child)
                exit(1);
        close(pipe_fds[0]);
        return ret;
}

static void measure_decoders(bool pprof, const struct buf *in)
{
        static const char *const names[] = { "own decoder", "protobuf-c, unpack only", "protobuf-c, to a profile" };
        struct result results[DECODERS];

        malloc_trim(0);
        for (unsigned which = 0; which < DECODERS; which++)
                results[which] = (struct result){ INT64_MAX, SIZE_MAX };
        for (int run = 0; run < RUNS; run++) { /* in turn, so that noise affects all equally */
                for (unsigned which = 0; which < DECODERS; which++) {
                        struct result r = measure_run(which, pprof, in);

                        if (r.best_ns < results[which].best_ns)
                                results[which].best_ns = r.best_ns;
                        if (r.memory < results[which].memory)
                                results[which].memory = r.memory;
                }
        }
        for (unsigned which = 0; which < DECODERS; which++)
                printf("%-6s %6.1f MB  %-26s %8.1f ms %6.2f  %8.1f MB %6.2f\n", pprof ? "pprof" : "OTLP",
                       (double)in->size / 1e6, names[which], (double)results[which].best_ns / 1e6,
                       (double)results[which].best_ns / (double)results[0].best_ns, (double)results[which].memory / 1e6,
                       (double)results[which].memory / (double)results[0].memory);
}

static void unpack_file(const struct buf *file, struct buf *ret)
{
        struct error err = { 0 };

        if (gzip_detect(file->data, file->size))
                check_status(gzip_decompress(file->data, file->size, ret, &err), &err);
        else
                check_status(buf_append(ret, file->data, file->size), &err);
}

int main(int argc, char **argv)
{
        _cleanup_buf_ struct buf otlp, packed, pprof;
        struct profile batch, file;
        struct error err;
        int64_t start;

        buf_init(&otlp, MiB(256));
        buf_init(&packed, MiB(256));
        buf_init(&pprof, MiB(256));
        if (argc > 2) {
                check_status(file_read(argv[1], &otlp, &err), &err);
                check_status(file_read(argv[2], &packed, &err), &err);
                unpack_file(&packed, &pprof);
                check_status(pprof_decode(pprof.data, pprof.size, NULL, &file, &err), &err);
        } else {
                make_profile(&batch, false, 20000);
                check_status(otlp_encode(&batch, &otlp, &err), &err);
                profile_deinit(&batch);
                make_profile(&file, true, 180000);
                check_status(pprof_encode(&file, &packed, &err), &err);
                unpack_file(&packed, &pprof);
        }
        printf("input             decoder                        time  ratio    memory    ratio\n");
        measure_decoders(false, &otlp);
        measure_decoders(true, &pprof);
        buf_clear(&packed);
        start = monotonic_ns();
        check_status(pprof_encode(&file, &packed, &err), &err);
        printf("pprof encode with gzip: %.1f ms, %.1f MB\n", (double)(monotonic_ns() - start) / 1e6,
               (double)packed.size / 1e6);
        profile_deinit(&file);
        return 0;
}
