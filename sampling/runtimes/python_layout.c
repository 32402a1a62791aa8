/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/python_layout.h"

#include <string.h>

#define THREADS_MAX 64                  /* examined to find the key of the thread state */
#define KEYS_MAX 32                     /* of glibc's first block of thread-specific data */
#define GLIBC_SPECIFIC_BLOCK 0x310      /* of struct pthread, to which the thread pointer refers on x86-64 */
#define TYPE_BASIC_SIZE 32              /* of PyTypeObject: tp_basicsize */
#define DEBUG_OFFSETS_COOKIE "xdebugpy" /* of _Py_DebugOffsets */
#define DEBUG_OFFSETS_BYTES 760
#define OFFSET_MAX 32768

/* Offsets to find the threads of an interpreter. */
struct python_threads {
        uint32_t interpreters, threads, next;
};

struct version_layout {
        struct python_threads threads;
        struct python_layout layout;
};

static const struct python_objects code_objects = {
        .code_first_line = 68,
        .code_file = 112,
        .code_qualified_name = 128,
        .code_lines = 136,
        .bytes_size = 16,
        .bytes_data = 32,
        .text_length = 16,
        .text_state = 32,
        .text_ascii = 40,
        .text_compact = 56,
};

static void fill_layout_3_11(struct version_layout *v)
{
        v->threads = (struct python_threads){ .interpreters = 40, .threads = 16, .next = 8 };
        v->layout.process = (struct python_process){ .state_thread_id = 152,
                                                     .state_frame = 56,
                                                     .has_cframe = 1,
                                                     .cframe_frame = 8,
                                                     .cframe_previous = 16,
                                                     .frame_code = 32,
                                                     .frame_previous = 48,
                                                     .frame_position = 56,
                                                     .frame_owner = 69,
                                                     .frame_is_entry = 68 };
        v->layout.objects.code_first_line = 72;
        v->layout.objects.code_file = 112;
        v->layout.objects.code_bytes = 184;
        v->layout.objects.code_first_traceable = 168;
        v->layout.objects.text_ascii = 48;
        v->layout.objects.text_compact = 72;
}

static void fill_layout_3_12(struct version_layout *v)
{
        v->threads = (struct python_threads){ .interpreters = 40, .threads = 72, .next = 8 };
        v->layout.process = (struct python_process){ .state_thread_id = 136,
                                                     .state_frame = 56,
                                                     .has_cframe = 1,
                                                     .cframe_frame = 0,
                                                     .cframe_previous = 8,
                                                     .frame_code = 0,
                                                     .frame_previous = 8,
                                                     .frame_position = 56,
                                                     .frame_owner = 70 };
        v->layout.objects.code_bytes = 192;
        v->layout.objects.code_first_traceable = 176;
}

/* Positions in _Py_DebugOffsets, which differ between versions: the first field of each group is its size. */
struct debug_groups {
        uint32_t runtime, interpreter, thread, frame, code, bytes, text;
};

static const struct debug_groups groups_3_13 = { 24, 48, 152, 224, 272, 512, 536 };
static const struct debug_groups groups_3_14 = { 24, 48, 176, 248, 312, 592, 616 };

static uint64_t get_debug_offset(const uint8_t *table, uint32_t group, uint32_t field)
{
        uint64_t value;

        memcpy(&value, table + group + 8 * field, sizeof value);
        return value;
}

/* The offset as 16 bits; clears *valid when it is not plausible. */
static uint16_t take_debug_offset(const uint8_t *table, uint32_t group, uint32_t field, uint64_t most, bool *valid)
{
        uint64_t value = get_debug_offset(table, group, field);

        *valid = *valid && value <= most;
        return (uint16_t)value;
}

static struct runtime_refusal refuse_python(enum runtime_refusal_reason reason, const char *text)
{
        return (struct runtime_refusal){ reason, text };
}

static struct runtime_refusal fill_layout_from_process(const struct process_memory *m, const struct python_symbols *s,
                                                       uint64_t version, struct version_layout *v)
{
        const struct debug_groups *g = version >> 16 == 0x030d ? &groups_3_13 : &groups_3_14;
        uint8_t t[DEBUG_OFFSETS_BYTES];
        struct python_process *p = &v->layout.process;
        struct python_objects *o = &v->layout.objects;
        const uint64_t in_frame = PYTHON_FRAME_BYTES - 8;
        bool valid = true;

        if (!m->read(m->ctx, s->runtime, t, sizeof t) || memcmp(t, DEBUG_OFFSETS_COOKIE, 8) != 0)
                return refuse_python(REFUSAL_MEMORY, "its table of offsets cannot be read");
        if (get_debug_offset(t, 8, 0) != version)
                return refuse_python(REFUSAL_MEMORY, "its table of offsets is that of another version");
        if (get_debug_offset(t, 16, 0))
                return refuse_python(REFUSAL_BUILD, "it is a free-threaded build");
        v->threads.interpreters = take_debug_offset(t, g->runtime, 2, OFFSET_MAX, &valid);
        v->threads.threads = take_debug_offset(t, g->interpreter, 3, OFFSET_MAX, &valid);
        v->threads.next = take_debug_offset(t, g->thread, 2, OFFSET_MAX, &valid);
        p->state_frame = take_debug_offset(t, g->thread, 4, OFFSET_MAX, &valid);
        p->state_thread_id = take_debug_offset(t, g->thread, 5, OFFSET_MAX, &valid);
        p->frame_previous = (uint8_t)take_debug_offset(t, g->frame, 1, in_frame, &valid);
        p->frame_code = (uint8_t)take_debug_offset(t, g->frame, 2, in_frame, &valid);
        p->frame_position = (uint8_t)take_debug_offset(t, g->frame, 3, in_frame, &valid);
        p->frame_owner = (uint8_t)take_debug_offset(t, g->frame, 5, in_frame, &valid);
        o->code_file = take_debug_offset(t, g->code, 1, OFFSET_MAX, &valid);
        o->code_qualified_name = take_debug_offset(t, g->code, 3, OFFSET_MAX, &valid);
        o->code_lines = take_debug_offset(t, g->code, 4, OFFSET_MAX, &valid);
        o->code_first_line = take_debug_offset(t, g->code, 5, OFFSET_MAX, &valid);
        o->code_bytes = take_debug_offset(t, g->code, 9, OFFSET_MAX, &valid);
        o->bytes_size = take_debug_offset(t, g->bytes, 1, OFFSET_MAX, &valid);
        o->bytes_data = take_debug_offset(t, g->bytes, 2, OFFSET_MAX, &valid);
        o->text_state = take_debug_offset(t, g->text, 1, OFFSET_MAX, &valid);
        o->text_length = take_debug_offset(t, g->text, 2, OFFSET_MAX, &valid);
        o->text_ascii = take_debug_offset(t, g->text, 3, OFFSET_MAX, &valid);
        o->text_compact = (uint16_t)(o->text_ascii + 16);
        o->code_first_traceable = (uint16_t)(o->code_bytes - 16);
        if (!valid || o->code_bytes < 16 || (p->frame_previous | p->frame_code | p->frame_position) & 7)
                return refuse_python(REFUSAL_MEMORY, "its table of offsets is malformed");
        return refuse_python(REFUSAL_NONE, NULL);
}

static struct runtime_refusal choose_python_layout(const struct process_memory *m, const struct python_symbols *s,
                                                   struct version_layout *ret)
{
        uint64_t version = 0, size = 0;
        struct runtime_refusal refusal = { REFUSAL_NONE, NULL };

#if !defined(__x86_64__)
        return refuse_python(REFUSAL_PROCESSOR, "this processor is not supported");
#endif
        if (!s->version)
                return refuse_python(REFUSAL_VERSION, "it is older than 3.11");
        if (!m->read(m->ctx, s->version, &version, sizeof version))
                return refuse_python(REFUSAL_MEMORY, "its memory cannot be read");
        *ret = (struct version_layout){ .layout.objects = code_objects };
        switch (version >> 16) {
        case 0x030b:
                fill_layout_3_11(ret);
                break;
        case 0x030c:
                fill_layout_3_12(ret);
                break;
        case 0x030d:
        case 0x030e:
                refusal = fill_layout_from_process(m, s, version, ret);
                break;
        default:
                return refuse_python(REFUSAL_VERSION, "its version is not supported");
        }
        if (refusal.reason)
                return refusal;
        ret->layout.objects.version = (uint32_t)(version >> 16);
        ret->layout.objects.code_type = s->code_type;
        ret->layout.objects.text_type = s->text_type;
        if (!s->code_type || !s->text_type)
                return refuse_python(REFUSAL_SYMBOLS, "its types are not exported");
        if (!m->read(m->ctx, s->code_type + TYPE_BASIC_SIZE, &size, sizeof size))
                return refuse_python(REFUSAL_MEMORY, "its memory cannot be read");
        if (size != ret->layout.objects.code_bytes)
                return refuse_python(REFUSAL_BUILD, "its code objects have another size, as those of a debug build");
        return refusal;
}

/* The key of the thread's state: the pthread key whose value for this thread is the state; KEYS_MAX: none. */
static uint32_t find_state_key(const struct process_memory *m, uint64_t thread_pointer, uint64_t state)
{
        uint64_t block[2 * KEYS_MAX]; /* pairs of a sequence number and a value */

        if (!m->read(m->ctx, thread_pointer + GLIBC_SPECIFIC_BLOCK, block, sizeof block))
                return KEYS_MAX;
        for (uint32_t key = 0; key < KEYS_MAX; key++)
                if (block[2 * key] && block[2 * key + 1] == state)
                        return key;
        return KEYS_MAX;
}

enum python_attach python_layout_find(const struct process_memory *m, const struct python_symbols *s,
                                      struct python_layout *ret, struct runtime_refusal *refusal_ret)
{
        struct version_layout v = { 0 };
        uint64_t interpreter = 0, state = 0;

        *refusal_ret = choose_python_layout(m, s, &v);
        if (refusal_ret->reason)
                return PYTHON_REFUSED;
        if (!m->read(m->ctx, s->runtime + v.threads.interpreters, &interpreter, sizeof interpreter) || !interpreter ||
            !m->read(m->ctx, interpreter + v.threads.threads, &state, sizeof state) || !state)
                return PYTHON_STARTING;
        for (int i = 0; i < THREADS_MAX && state; i++) {
                uint64_t thread_pointer = 0, next = 0;
                uint32_t key = KEYS_MAX;

                if (!m->read(m->ctx, state + v.layout.process.state_thread_id, &thread_pointer, sizeof thread_pointer))
                        return PYTHON_STARTING;
                if (thread_pointer)
                        key = find_state_key(m, thread_pointer, state);
                if (key < KEYS_MAX) {
                        *ret = v.layout;
                        ret->process.key_offset = GLIBC_SPECIFIC_BLOCK + 16 * (uint64_t)key + 8;
                        return PYTHON_ATTACHED;
                }
                if (!m->read(m->ctx, state + v.threads.next, &next, sizeof next))
                        return PYTHON_STARTING;
                state = next;
        }
        *refusal_ret =
                refuse_python(REFUSAL_THREADS, "its threads are not found, as with another C library than glibc");
        return PYTHON_REFUSED;
}
