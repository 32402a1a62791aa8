/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/record_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/distribution.h"
#include "common/files/file.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "sampling/samplers/sample_end.h"
#include "symbol-index/symbol_state.h"
#include "symbolizer/sources/function_boundaries.h"

#define OBJECTS_NAMED 3
#define WHOLE_PERCENT 99.95 /* rounds to 100.0 */

/* ---- samples ------------------------------------------------------------------------------------ */

static uint64_t count_lost_samples(const struct record_counts *c)
{
        const uint64_t *s = c->sampler;

        return s[STAT_LOST_COUNTS_FULL] + s[STAT_LOST_STACKS_FULL] + s[STAT_LOST_RING_FULL] + c->dropped;
}

static void report_lost_samples(const struct record_counts *c)
{
        const struct {
                uint64_t count;
                const char *reason;
        } reasons[] = {
                { c->sampler[STAT_LOST_COUNTS_FULL], "counts_full" },
                { c->sampler[STAT_LOST_STACKS_FULL], "stacks_full" },
                { c->sampler[STAT_LOST_RING_FULL], "ring_full" },
                { c->dropped, "memory_full" },
        };
        const char *separator = " (";

        if (!count_lost_samples(c))
                return;
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
                if (!reasons[i].count)
                        continue;
                fprintf(stderr, "%s%s %" PRIu64, separator, reasons[i].reason, reasons[i].count);
                separator = ", ";
        }
        fputs(")", stderr);
}

/* ---- stacks ------------------------------------------------------------------------------------- */

static void report_stacks(const struct record_counts *c)
{
        const uint64_t *ends = c->sampler + STAT_ENDS;
        uint64_t all = 0;
        const char *separator = "; cut: ";

        for (size_t i = 0; i < SAMPLE_END_COUNT; i++)
                all += i == SAMPLE_END_UNKNOWN ? 0 : ends[i];
        if (!all) {
                if (c->stacks)
                        fprintf(stderr,
                                "stacks: by frame pointers; code built without them shows its innermost functions "
                                "alone\n");
                return;
        }
        fprintf(stderr, "stacks: %.1f%% complete", 100.0 * (double)ends[SAMPLE_END_COMPLETE] / (double)all);
        for (size_t i = 0; i < SAMPLE_END_COUNT; i++) {
                if (i == SAMPLE_END_COMPLETE || i == SAMPLE_END_UNKNOWN || !ends[i])
                        continue;
                fprintf(stderr, "%s%s %" PRIu64, separator, sample_end_name(i), ends[i]);
                separator = ", ";
        }
        if (c->unmapped || c->unwind_full)
                fprintf(stderr, "; no room for unwind tables of %s, %s", COUNTED(c->unmapped, "process", "processes"),
                        COUNTED(c->unwind_full, "file", "files"));
        fputs("\n", stderr);
        if (ends[SAMPLE_END_TOO_DEEP])
                fprintf(stderr,
                        "too_deep: these stacks have more than %d frames, and lack the callers of the outermost one\n",
                        SAMPLE_STACK_MAX);
        if (ends[SAMPLE_END_NEW_PROCESS])
                fputs("new_process: these processes began during the recording, and were sampled before their unwind "
                      "tables were ready; record for longer\n",
                      stderr);
}

void record_report_samples(const struct record_counts *c, const struct record_target *t, const struct profile *p)
{
        uint64_t samples = 0;

        for (uint32_t i = 0; i < p->samples.count; i++)
                samples += ((uint64_t)p->samples.items[i].value * t->frequency_hz + 500000000) / 1000000000;
        fprintf(stderr, "recorded %.1f s at %" PRIu64 " Hz by %s: %s, %" PRIu64 " lost", (double)c->duration_ns / 1e9,
                t->frequency_hz, c->name, COUNTED(samples, "sample", "samples"), count_lost_samples(c));
        report_lost_samples(c);
        fputs("\n", stderr);
        if (c->end == RECORD_FULL)
                fprintf(stderr, "ended early: out of memory for distinct stacks; record for a shorter "
                                "time, or fewer processes\n");
        if (geteuid() == 0 && c->why[0])
                fprintf(stderr, "without BPF: %s; not covered: %s\n", c->why, c->gaps);
        else if (geteuid())
                fprintf(stderr, "not as root, so not covered: %s\n", c->gaps);
        else if (c->gaps[0])
                fprintf(stderr, "not covered: %s\n", c->gaps);
        if (c->kernel_gap[0])
                fprintf(stderr, "kernel frames have no lines: %s\n", c->kernel_gap);
        if (!samples)
                fprintf(stderr, "nothing ran long enough for a tick of %.1f ms: record for longer, or raise -F\n",
                        1000.0 / (double)t->frequency_hz);
        report_stacks(c);
}

/* ---- frames ------------------------------------------------------------------------------------- */

struct frame_counts {
        uint64_t all, named;
        uint64_t bounded; /* named by the start of their function */
        uint64_t reasons[SYMBOL_STATE_COUNT];
        uint64_t jit, gone; /* "[jit]", "[exited]" */
        uint64_t *objects;  /* owned; by mapping: frames that debuginfo would name */
};

static const char *get_first_function(const struct profile *p, const struct profile_location *l)
{
        return l->line_count ? profile_text(p, p->lines.items[l->first_line].function) : "";
}

static bool is_placeholder(const struct profile *p, const struct profile_location *l, const char *name)
{
        return l->kind == ADDRESS_NONE && strcmp(get_first_function(p, l), name) == 0;
}

static void count_sample_frame(struct frame_counts *c, const struct profile *p, const struct profile_symbols *symbols,
                               uint32_t number, uint64_t weight)
{
        const struct profile_location *l = &p->locations.items[number];

        c->all += weight;
        if (is_placeholder(p, l, "[jit]")) {
                c->jit += weight;
        } else if (is_placeholder(p, l, "[exited]") || is_placeholder(p, l, "[unmapped]")) {
                c->gone += weight;
        } else if (is_boundary_name(get_first_function(p, l))) {
                c->bounded += weight;
                if (l->mapping != PROFILE_NONE)
                        c->objects[l->mapping] += weight;
        } else if (l->line_count) {
                c->named += weight;
        } else {
                enum symbol_state state = symbols->reasons[number];

                c->reasons[state] += weight;
                if (symbol_state_wants_debuginfo(state) && l->mapping != PROFILE_NONE)
                        c->objects[l->mapping] += weight;
        }
}

static void count_sample_frames(struct frame_counts *c, const struct profile *p, const struct profile_symbols *symbols)
{
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];
                const struct profile_stack *stack = &p->stacks.items[s->stack];

                for (uint32_t k = 0; k < stack->location_count; k++)
                        count_sample_frame(c, p, symbols, p->stack_locations.items[stack->first_location + k],
                                           (uint64_t)s->value);
        }
}

static double percent_of(uint64_t part, uint64_t all)
{
        return 100.0 * (double)part / (double)all;
}

static void report_share(uint64_t part, uint64_t all, const char *reason)
{
        if (part)
                fprintf(stderr, ", %s %.1f%%", reason, percent_of(part, all));
}

static void report_worst_objects(const struct frame_counts *c, const struct profile *p)
{
        const char *separator = "; most in ";

        for (int n = 0; n < OBJECTS_NAMED; n++) {
                uint32_t best = 0;

                for (uint32_t i = 1; i < p->mappings.count; i++)
                        if (c->objects[i] > c->objects[best])
                                best = i;
                if (!p->mappings.count || !c->objects[best])
                        return;
                fprintf(stderr, "%s%s", separator, PRINTABLE(path_base(profile_text(p, p->mappings.items[best].file))));
                c->objects[best] = 0;
                separator = ", ";
        }
}

/* Distributions also have the kernel and its modules, whose names are no paths. */
static bool is_of_distribution(const char *path)
{
        return path[0] != '/' || is_distribution_path(path);
}

/* The object that would gain most names, of a distribution or of the user; NULL: none. */
static const char *find_worst_object(const struct frame_counts *c, const struct profile *p, bool of_distribution)
{
        const char *ret = NULL;
        uint64_t most = 0;

        for (uint32_t i = 0; i < p->mappings.count; i++) {
                const char *path = profile_text(p, p->mappings.items[i].file);

                if (c->objects[i] > most && is_of_distribution(path) == of_distribution) {
                        most = c->objects[i];
                        ret = path;
                }
        }
        return ret;
}

static void report_next_step(const struct frame_counts *c, const struct profile *p,
                             const struct debuginfo_fetcher *fetcher)
{
        const char *own = find_worst_object(c, p, false);

        if (fetcher && debuginfo_fetcher_stats(fetcher)->failure[0])
                fprintf(stderr, "debuginfod: %s\n", PRINTABLE(debuginfo_fetcher_stats(fetcher)->failure));
        if (own)
                fprintf(stderr, "next: '%s' has no debug information: build it with -g, or put %s.debug beside it\n",
                        PRINTABLE(own), PRINTABLE(path_base(own)));
        if (!find_worst_object(c, p, true))
                return;
        if (fetcher)
                fprintf(stderr, "next: install the debug packages, or add a server that has them to DEBUGINFOD_URLS\n");
        else
                fprintf(stderr, "next: install the debug packages, or set DEBUGINFOD_URLS=%s\n",
                        get_distribution_debuginfod());
}

void record_report_frames(const struct profile *p, const struct profile_symbols *symbols,
                          const struct debuginfo_fetcher *fetcher)
{
        _cleanup_free_ uint64_t *objects = calloc(p->mappings.count + 1u, sizeof *objects);
        struct frame_counts c = { .objects = objects };

        if (!p->samples.count || !objects)
                return;
        count_sample_frames(&c, p, symbols);
        if (!c.all)
                return;
        fprintf(stderr, "names: %.1f%% of frames", percent_of(c.named, c.all));
        report_share(c.bounded, c.all, "boundaries");
        for (int state = 0; state < SYMBOL_STATE_COUNT; state++)
                report_share(c.reasons[state], c.all, symbol_state_name((enum symbol_state)state));
        report_share(c.jit, c.all, "jit");
        report_share(c.gone, c.all, "exited");
        if (percent_of(c.named, c.all) < WHOLE_PERCENT) {
                _cleanup_free_ uint64_t *copy = calloc(p->mappings.count + 1u, sizeof *copy);

                if (copy) {
                        memcpy(copy, objects, p->mappings.count * sizeof *copy);
                        report_worst_objects(&(struct frame_counts){ .objects = copy }, p);
                }
        }
        fputs("\n", stderr);
        report_next_step(&c, p, fetcher);
}
