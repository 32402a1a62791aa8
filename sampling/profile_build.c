/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_build() resolves each sample of a batch: labels, then the stack. A stack is read as frames; build_frame() is
 * the one place where a kind of frame becomes a location. Strings, mappings, locations, stacks and samples are
 * interned, so equal ones of several processes share an entry.
 *
 * Order: interned tables, frames by kind, halves of a stack, samples.
 */
#include "sampling/profile_build.h"

#include <string.h>

#include "common/hash/id_table.h"
#include "common/limits.h"
#include "profile-formats/return_address.h"
#include "sampling/processes/process_hotspot.h"
#include "sampling/processes/process_python.h"
#include "sampling/processes/process_request.h"
#include "sampling/processes/process_v8.h"
#include "sampling/profile_labels.h"
#include "sampling/samplers/sample_end.h"
#include "sampling/samplers/sample_frame.h"

#define CPU_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define LATENCY_TYPE "process_cpu:latency:nanoseconds:cpu:nanoseconds"
#define OFF_CPU_TYPE "off_cpu:off_cpu:nanoseconds::" /* as the OpenTelemetry eBPF profiler's */
#define INLINED_MAX (LIMIT_V8_INLINED > LIMIT_HOTSPOT_INLINED ? LIMIT_V8_INLINED : LIMIT_HOTSPOT_INLINED)
#define FRAMES_MAX (2 * SAMPLE_STACK_MAX + 1) /* perf events allow SAMPLE_STACK_MAX in either half */

struct build {
        const struct profile_context *c;
        struct profile *p;
        struct profile_build_stats *stats;
        struct error *err;
        struct id_table mappings, locations, line_lists, stacks, samples;
        struct profile_labels labels;
        uint32_t cpu_type, latency_type, off_cpu_type; /* PROFILE_NONE: not used yet */
};

/* ---- interned tables ---- */

static enum status intern_text(struct build *b, const char *text, uint32_t *ret)
{
        return profile_add_string(b->p, text, strlen(text), ret, b->err);
}

static enum status intern_object_mapping(struct build *b, const struct build_id *id, const char *file, uint32_t *ret)
{
        struct profile_mapping m;
        enum status st;

        memset(&m, 0, sizeof m); /* the bytes are the key */
        if (id) {
                m.build_id.size = id->size;
                memcpy(m.build_id.bytes, id->bytes, id->size);
        }
        st = intern_text(b, file, &m.file);
        if (st || id_table_find(&b->mappings, &m, sizeof m, ret))
                return st;
        st = profile_add_mapping(b->p, &m, ret, b->err);
        if (!st && !id_table_put(&b->mappings, &m, sizeof m, *ret))
                st = error_no_memory(b->err);
        return st;
}

/* @param known  name and line; NULL when the service resolves the address. */
static enum status intern_jit_location(struct build *b, struct profile_location l, const struct jit_location *known,
                                       uint32_t *ret)
{
        struct profile_line line = { .line = known ? known->line : 0 };
        struct {
                uint64_t address, line; /* no padding: the bytes are the key */
                uint32_t mapping, kind, frame_type, name, file, reserved;
        } key = { .address = l.address, .mapping = l.mapping, .kind = l.kind, .frame_type = l.frame_type };
        enum status st = known ? intern_text(b, known->name, &line.function) : ST_OK;

        if (!st && known && known->file)
                st = intern_text(b, known->file, &line.file);
        key.name = line.function;
        key.file = line.file;
        key.line = (uint64_t)line.line;
        if (st || id_table_find(&b->locations, &key, sizeof key, ret))
                return st;
        if (known) {
                l.line_count = 1;
                st = profile_add_line(b->p, &line, &l.first_line, b->err);
        }
        if (!st)
                st = profile_add_location(b->p, &l, ret, b->err);
        if (!st && !id_table_put(&b->locations, &key, sizeof key, *ret))
                st = error_no_memory(b->err);
        return st;
}

static enum status build_named_frame(struct build *b, const char *name, enum profile_frame_type type, uint32_t *ret)
{
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE, .frame_type = type };

        return intern_jit_location(b, l, &(struct jit_location){ .name = name }, ret);
}

/* ---- frames --------------------------------------------------------------------------- */

static enum status build_kernel_frame(struct build *b, uint64_t addr, uint32_t *ret)
{
        struct kernel_location place = kernel_locate(b->c->kernel, addr);
        struct profile_location l = { .kind = ADDRESS_OBJECT,
                                      .address = place.address,
                                      .frame_type = PROFILE_FRAME_KERNEL };
        enum status st;

        if (!place.module) {
                b->stats->kernel_name_only++;
                l.mapping = PROFILE_NONE;
                l.kind = ADDRESS_NONE;
                return intern_jit_location(b, l, &(struct jit_location){ place.name, place.file, place.line }, ret);
        }
        st = intern_object_mapping(b, place.build_id, place.module, &l.mapping);
        return st ? st : intern_jit_location(b, l, &(struct jit_location){ .name = place.name }, ret);
}

/* The location of a frame of a stack. */
struct built_frame {
        uint32_t location; /* PROFILE_NONE: it is not a frame */
        bool is_last;      /* no frame follows */
};

static enum status build_native_frame(struct build *b, struct process *process, uint64_t addr, bool leaf,
                                      struct built_frame *ret)
{
        struct user_location place = process_table_locate(b->c->processes, process, addr);
        struct profile_location l = { .kind = ADDRESS_OBJECT,
                                      .address = place.address,
                                      .frame_type = PROFILE_FRAME_NATIVE };
        enum status st;

        switch (place.kind) {
        case USER_LOCATION_NAMED:
                l = (struct profile_location){ .mapping = PROFILE_NONE,
                                               .kind = ADDRESS_NONE,
                                               .frame_type = PROFILE_FRAME_NATIVE };
                return intern_jit_location(b, l, &place.jit, &ret->location);
        case USER_LOCATION_PROCESS_GONE:
                b->stats->exited++;
                ret->is_last = true;
                return build_named_frame(b, "[exited]", PROFILE_FRAME_NATIVE, &ret->location);
        case USER_LOCATION_UNMAPPED:
                b->stats->no_code_frames++;
                ret->is_last = true;
                return leaf ? build_named_frame(b, "[unmapped]", PROFILE_FRAME_NATIVE, &ret->location) : ST_OK;
        case USER_LOCATION_ANONYMOUS:
                if (place.mapping->path[0] == '[') /* "[vsyscall]", "[anon:...]" */
                        return build_named_frame(b, place.mapping->path, PROFILE_FRAME_NATIVE, &ret->location);
                b->stats->jit_frames++;
                return build_named_frame(b, "[jit]", PROFILE_FRAME_NATIVE, &ret->location);
        case USER_LOCATION_FILE_OFFSET:
                l.kind = ADDRESS_FILE_OFFSET;
                break;
        case USER_LOCATION_OBJECT:
                break;
        }
        if (!place.object || !place.object->build_id.size)
                b->stats->no_build_id++;
        st = intern_object_mapping(b, place.object ? &place.object->build_id : NULL, place.mapping->path, &l.mapping);
        return st ? st : intern_jit_location(b, l, place.jit.name ? &place.jit : NULL, &ret->location);
}

static enum status build_python_frame(struct build *b, struct process *process, const struct sample_frame *f,
                                      struct built_frame *ret)
{
        const struct profile_location l = { .mapping = PROFILE_NONE,
                                            .kind = ADDRESS_NONE,
                                            .frame_type = PROFILE_FRAME_CPYTHON };
        static const char *const unnamed[PYTHON_FRAME_STATES] = { [PYTHON_FRAME_FREED] = "[python: freed]",
                                                                  [PYTHON_FRAME_UNREADABLE] = "[python: unreadable]",
                                                                  [PYTHON_FRAME_LIMIT] = "[python: limit]",
                                                                  [PYTHON_FRAME_GONE] = "[python: exited]" };
        struct python_location place;
        enum python_frame_state state;
        struct jit_location known;

        state = process_python_locate(b->c->processes, process, f->address, f->detail, &place);
        b->stats->python_frames[state]++;
        if (state == PYTHON_FRAME_INCOMPLETE)
                return ST_OK;
        if (state != PYTHON_FRAME_FOUND)
                return build_named_frame(b, unnamed[state], PROFILE_FRAME_CPYTHON, &ret->location);
        known = (struct jit_location){ place.name, b->c->omits_files ? "" : place.file, place.line };
        return intern_jit_location(b, l, &known, &ret->location);
}

/* A location with several lines, innermost first. */
static enum status intern_lines(struct build *b, struct profile_location l, const struct profile_line *lines,
                                uint32_t count, uint32_t *ret)
{
        uint64_t key[1 + 3 * INLINED_MAX];
        enum status st = ST_OK;
        uint32_t n = 0, number;

        key[n++] = (uint64_t)l.frame_type << 32 | count;
        for (uint32_t i = 0; i < count; i++) {
                key[n++] = (uint64_t)lines[i].function << 32 | lines[i].file;
                key[n++] = (uint64_t)lines[i].line;
                key[n++] = (uint64_t)lines[i].start_line;
        }
        if (id_table_find(&b->line_lists, key, n * sizeof *key, ret))
                return ST_OK;
        l.line_count = count;
        for (uint32_t i = 0; !st && i < count; i++)
                st = profile_add_line(b->p, &lines[i], i ? &number : &l.first_line, b->err);
        if (!st)
                st = profile_add_location(b->p, &l, ret, b->err);
        if (!st && !id_table_put(&b->line_lists, key, n * sizeof *key, *ret))
                st = error_no_memory(b->err);
        return st;
}

static enum status build_v8_frame(struct build *b, struct process *process, const struct sample_frame *f,
                                  struct built_frame *ret)
{
        const struct profile_location l = { .mapping = PROFILE_NONE,
                                            .kind = ADDRESS_NONE,
                                            .frame_type = PROFILE_FRAME_V8 };
        static const char *const unnamed[V8_FRAME_STATES] = {
                [V8_FRAME_UNREADABLE] = "[node: unreadable]", [V8_FRAME_GONE] = "[node: exited]"
        };
        struct v8_location places[LIMIT_V8_INLINED];
        struct profile_line lines[LIMIT_V8_INLINED];
        enum v8_frame_state state;
        enum status st = ST_OK;
        uint32_t count;

        state = process_v8_locate(b->c->processes, process, f->address, f->detail, places, &count);
        b->stats->v8_frames[state]++;
        if (state != V8_FRAME_FOUND)
                return build_named_frame(b, unnamed[state], PROFILE_FRAME_V8, &ret->location);
        for (uint32_t i = 0; !st && i < count; i++) {
                lines[i] = (struct profile_line){ .line = places[i].line, .start_line = places[i].start_line };
                st = intern_text(b, *places[i].name ? places[i].name : "(anonymous)", &lines[i].function);
                if (!st)
                        st = intern_text(b, b->c->omits_files ? "" : places[i].file, &lines[i].file);
        }
        return st ? st : intern_lines(b, l, lines, count, &ret->location);
}

static enum status build_hotspot_frame(struct build *b, struct process *process, const struct sample_frame *f,
                                       struct built_frame *ret)
{
        const struct profile_location l = { .mapping = PROFILE_NONE,
                                            .kind = ADDRESS_NONE,
                                            .frame_type = PROFILE_FRAME_HOTSPOT };
        static const char *const unnamed[HOTSPOT_FRAME_STATES] = { [HOTSPOT_FRAME_FREED] = "[java: freed]",
                                                                   [HOTSPOT_FRAME_UNREADABLE] = "[java: unreadable]",
                                                                   [HOTSPOT_FRAME_LIMIT] = "[java: limit]",
                                                                   [HOTSPOT_FRAME_GONE] = "[java: exited]" };
        struct hotspot_location places[LIMIT_HOTSPOT_INLINED];
        struct profile_line lines[LIMIT_HOTSPOT_INLINED];
        enum hotspot_frame_state state;
        enum status st = ST_OK;
        uint32_t count;

        state = process_hotspot_locate(b->c->processes, process, f->address, f->detail, places, &count);
        b->stats->hotspot_frames[state]++;
        if (state != HOTSPOT_FRAME_FOUND)
                return build_named_frame(b, unnamed[state], PROFILE_FRAME_HOTSPOT, &ret->location);
        for (uint32_t i = 0; !st && i < count; i++) {
                lines[i] = (struct profile_line){ .line = places[i].line };
                st = intern_text(b, places[i].name ? places[i].name : unnamed[HOTSPOT_FRAME_UNREADABLE],
                                 &lines[i].function);
                if (!st)
                        st = intern_text(b, b->c->omits_files ? "" : places[i].file, &lines[i].file);
        }
        return st ? st : intern_lines(b, l, lines, count, &ret->location);
}

/*
 * The one place where a kind of frame becomes a location. An address of 0 is no frame, and none follows.
 * @param depth  0: the frame was interrupted; else it is a caller.
 */
static enum status build_frame(struct build *b, struct process *process, const struct sample_frame *f, uint32_t depth,
                               bool leaf, struct built_frame *ret)
{
        uint64_t addr = adjust_caller_address(ADDRESS_SOURCE_RAW_CHAIN, f->address, depth, f->is_exact);

        *ret = (struct built_frame){ .location = PROFILE_NONE };
        if (f->kind == SAMPLE_FRAME_CPYTHON)
                return build_python_frame(b, process, f, ret);
        if (f->kind == SAMPLE_FRAME_V8)
                return build_v8_frame(b, process, f, ret);
        if (f->kind == SAMPLE_FRAME_HOTSPOT)
                return build_hotspot_frame(b, process, f, ret);
        ret->is_last = !addr;
        if (!addr)
                return ST_OK;
        switch (f->kind) {
        case SAMPLE_FRAME_NATIVE:
                return build_native_frame(b, process, addr, leaf, ret);
        case SAMPLE_FRAME_KERNEL:
                return build_kernel_frame(b, addr, &ret->location);
        default:
                return build_named_frame(b, "[unknown runtime]", PROFILE_FRAME_UNKNOWN, &ret->location);
        }
}

/* One half of a stack as words, borrowed from the batch. */
struct stack_half {
        const uint64_t *frames;
        uint32_t count;
        uint32_t end;
};

static struct stack_half find_stack_half(const struct sample_batch *batch, uint64_t number)
{
        const struct sample_stack *s = sample_batch_find_stack(batch, number);

        if (!s)
                return (struct stack_half){ .end = SAMPLE_END_UNKNOWN };
        return (struct stack_half){ batch->frames + s->first_frame,
                                    s->frame_count < SAMPLE_STACK_MAX ? s->frame_count : SAMPLE_STACK_MAX, s->end };
}

/* @param depth  of the leaf; 1 after a system call, which is a call: its instruction precedes the saved pc. */
static enum status build_half(struct build *b, struct process *process, struct stack_half s, uint32_t depth,
                              uint32_t *to, uint32_t *count)
{
        struct built_frame built = { .is_last = false };
        struct sample_frame f;
        uint32_t words;

        for (uint32_t i = 0; !built.is_last; i += words, depth++) {
                enum status st;

                words = sample_frame_unpack(s.frames + i, s.count - i, &f);
                if (!words)
                        break;
                st = build_frame(b, process, &f, depth, i == 0, &built);
                if (st)
                        return st;
                to[*count] = built.location;
                *count += built.location != PROFILE_NONE;
        }
        return ST_OK;
}

static enum status build_stack(struct build *b, const struct sample_batch *batch, const struct sample_key *key,
                               struct process *process, uint32_t *ret)
{
        struct stack_half kernel = find_stack_half(batch, key->kernel_stack),
                          user = find_stack_half(batch, key->user_stack);
        uint32_t frames[FRAMES_MAX], count = 0;
        enum status st = build_half(b, process, kernel, 0, frames, &count);

        b->stats->stacks += user.count != 0;
        if (!st)
                st = build_half(b, process, user, key->flags & SAMPLE_IN_SYSCALL ? 1 : 0, frames, &count);
        if (!st && !count)
                st = build_named_frame(b, "[no stack]", PROFILE_FRAME_UNKNOWN, &frames[count++]);
        if (st || id_table_find(&b->stacks, frames, count * sizeof *frames, ret))
                return st;
        st = profile_add_stack(b->p, frames, count, ret, b->err);
        if (st)
                return st;
        b->p->stacks.items[*ret].truncated = kernel.count >= SAMPLE_KERNEL_STACK_MAX ||
                                             user.end == SAMPLE_END_TOO_DEEP ||
                                             (user.end == SAMPLE_END_UNKNOWN && user.count >= SAMPLE_KERNEL_STACK_MAX);
        return id_table_put(&b->stacks, frames, count * sizeof *frames, *ret) ? ST_OK : error_no_memory(b->err);
}

/* All types are in nanoseconds. @param ret  PROFILE_NONE or the type. */
static enum status intern_type(struct build *b, const char *id, int64_t period_ns, uint32_t *ret)
{
        struct profile_type type = { .period = period_ns };
        enum status st;

        if (*ret != PROFILE_NONE)
                return ST_OK;
        st = intern_text(b, id, &type.id);
        if (!st)
                st = intern_text(b, "nanoseconds", &type.unit);
        return st ? st : profile_add_type(b->p, &type, ret, b->err);
}

/* ---- samples ------------------------------------------------------------------------------ */

/* Merge keys that differ in no label or trace, such as two processes of one program. */
static enum status add_built_sample(struct build *b, const struct profile_sample *s)
{
        struct {
                uint32_t type, stack, first_label, label_count;
                uint8_t trace_id[16], span_id[8]; /* no padding: the bytes are the key */
        } key = { s->type, s->stack, s->first_label, s->label_count, { 0 }, { 0 } };
        uint32_t number;
        enum status st;

        memcpy(key.trace_id, s->trace_id, sizeof key.trace_id);
        memcpy(key.span_id, s->span_id, sizeof key.span_id);
        if (id_table_find(&b->samples, &key, sizeof key, &number)) {
                b->p->samples.items[number].value += s->value;
                return ST_OK;
        }
        st = profile_add_sample(b->p, s, &number, b->err);
        if (!st && !id_table_put(&b->samples, &key, sizeof key, number))
                st = error_no_memory(b->err);
        return st;
}

/* The same sample with its share of wall clock time. Rounded up, so that no stack is missing. */
static enum status add_latency_sample(struct build *b, const struct profile_sample *cpu, uint64_t latency)
{
        unsigned __int128 ns = (unsigned __int128)latency * (uint64_t)b->c->period_ns;
        struct profile_sample out = *cpu;
        enum status st = intern_type(b, LATENCY_TYPE, b->c->period_ns, &b->latency_type);

        out.type = b->latency_type;
        out.value = (int64_t)((ns + SAMPLE_LATENCY_WHOLE - 1) / SAMPLE_LATENCY_WHOLE);
        return st ? st : add_built_sample(b, &out);
}

/* Decode the context of a sample, after that of its process was read, which has the names of its attributes. */
static void decode_sample_context(struct build *b, const struct sample_batch *batch, const struct sample_count *s,
                                  struct process *process, struct thread_context *ret)
{
        struct stack_half words = find_stack_half(batch, s->key.context);
        bool is_wait = s->key.flags & SAMPLE_OFF_CPU;

        process_request_refresh(b->c->processes, process);
        thread_context_decode(words.frames, words.count, &process->request.context, ret);
        if (words.count)
                b->stats->context_samples += is_wait ? 1 : s->count;
}

static enum status build_sample(struct build *b, const struct sample_batch *batch, const struct sample_count *s)
{
        bool is_wait = s->key.flags & SAMPLE_OFF_CPU;
        struct profile_sample out = {
                .time_unix_ns = b->c->time_unix_ns,
                .duration_ns = b->c->duration_ns,
                .value = (int64_t)s->count * (is_wait ? 1 : b->c->period_ns),
        };
        struct process *process = process_table_get(b->c->processes, &s->key.process, s->key.comm);
        struct thread_context context;
        struct labeled_sample labels;
        const char *stack_end;
        enum status st;

        if (!process)
                return error_no_memory(b->err);
        if (process->is_excluded) { /* sampled before the sampler was notified */
                b->stats->excluded_samples += is_wait ? 1 : s->count;
                process_table_exclude(b->c->processes, process);
                return ST_OK;
        }
        stack_end = s->key.user_stack ? sample_end_name(find_stack_half(batch, s->key.user_stack).end) : "";
        decode_sample_context(b, batch, s, process, &context);
        memcpy(out.trace_id, context.trace_id, sizeof out.trace_id);
        memcpy(out.span_id, context.span_id, sizeof out.span_id);
        st = profile_labels_get(&b->labels, &s->key, process, &context, stack_end, &labels, b->err);
        if (!st && labels.is_dropped) {
                b->stats->relabel_dropped_samples += is_wait ? 1 : s->count;
                return ST_OK;
        }
        out.first_label = labels.first_label;
        out.label_count = labels.label_count;
        if (!st)
                st = build_stack(b, batch, &s->key, process, &out.stack);
        if (!st)
                st = is_wait ? intern_type(b, OFF_CPU_TYPE, 0, &b->off_cpu_type)
                             : intern_type(b, CPU_TYPE, b->c->period_ns, &b->cpu_type);
        out.type = is_wait ? b->off_cpu_type : b->cpu_type;
        if (!st)
                st = add_built_sample(b, &out);
        return st || !s->latency ? st : add_latency_sample(b, &out, s->latency);
}

static enum status build_samples(struct build *b, const struct sample_batch *batch)
{
        enum status st = ST_OK;

        process_table_begin_drain(b->c->processes);
        for (size_t i = 0; i < batch->count_count && !st; i++)
                st = build_sample(b, batch, &batch->counts[i]);
        process_table_end_drain(b->c->processes);
        return st;
}

enum status profile_build(const struct profile_context *c, const struct sample_batch *batch, struct profile *ret,
                          struct profile_build_stats *stats_ret, struct error *err)
{
        struct build b = {
                .c = c,
                .p = ret,
                .stats = stats_ret,
                .err = err,
                .labels = { .c = c, .p = ret, .stats = stats_ret },
                .cpu_type = PROFILE_NONE,
                .latency_type = PROFILE_NONE,
                .off_cpu_type = PROFILE_NONE,
        };
        enum status st = profile_init(ret, LIMIT_PROFILE_MEMORY_BYTES, err);

        if (st)
                return st;
        st = build_samples(&b, batch);
        id_table_deinit(&b.mappings);
        id_table_deinit(&b.locations);
        id_table_deinit(&b.line_lists);
        id_table_deinit(&b.stacks);
        id_table_deinit(&b.samples);
        profile_labels_deinit(&b.labels);
        if (st)
                profile_deinit(ret);
        return st;
}
