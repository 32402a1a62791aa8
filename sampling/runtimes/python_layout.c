/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/python_layout.h"

#include <string.h>

#define THREADS_MAX 64             /* examined to find the key of the thread state */
#define KEYS_MAX 32                /* of glibc's first block of thread-specific data */
#define GLIBC_SPECIFIC_BLOCK 0x310 /* of struct pthread, to which the thread pointer refers on x86-64 */
#define TYPE_BASIC_SIZE 32         /* of PyTypeObject: tp_basicsize */
#define TYPE_MEMBERS 240           /* tp_members, before 3.11 */
#define MEMBERS_MAX 32
#define MEMBER_BYTES 40                 /* of PyMemberDef */
#define DEBUG_OFFSETS_COOKIE "xdebugpy" /* of _Py_DebugOffsets */
#define DEBUG_OFFSETS_BYTES 888
#define OFFSET_MAX 32768

struct version_layout {
        uint32_t interpreters; /* offset of the pointer to the first interpreter in _PyRuntime */
        uint32_t type_basic_size;
        struct python_layout layout;
};

static const struct python_objects code_objects = {
        .object_type = 8,
        .text_state_shift = 2,
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

/* 3.8 to 3.10; the caller knows whether it is the latter. */
static void fill_layout_of_old(const struct python_symbols *s, bool is_3_10, struct version_layout *v)
{
        v->interpreters = 32;
        v->layout.process = (struct python_process){ .eval_start = is_3_10 ? 0 : s->eval,
                                                     .eval_bytes = is_3_10 ? 0 : (uint32_t)s->eval_bytes,
                                                     .state_thread_id = 176,
                                                     .state_frame = 24,
                                                     .state_cframe = is_3_10 ? 48 : 0,
                                                     .state_next = 8,
                                                     .interpreter_threads = 8,
                                                     .cframe_previous = 8,
                                                     .frame_code = 32,
                                                     .frame_previous = 24,
                                                     .frame_position = is_3_10 ? 96 : 104,
                                                     .is_old = 1 };
        v->layout.objects.lines = is_3_10 ? PYTHON_LINES_RANGES : PYTHON_LINES_LNOTAB;
        v->layout.objects.code_first_line = 40;
        v->layout.objects.code_file = 104;
        v->layout.objects.code_qualified_name = 112; /* there is the plain one only */
        v->layout.objects.code_lines = 120;
        v->layout.objects.code_bytes = 176;
        v->layout.objects.text_ascii = 48;
        v->layout.objects.text_compact = 72;
}

static void fill_layout_3_11(struct version_layout *v)
{
        v->interpreters = 40;
        v->layout.process = (struct python_process){ .state_thread_id = 152,
                                                     .state_next = 8,
                                                     .interpreter_threads = 16,
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
        v->interpreters = 40;
        v->layout.process = (struct python_process){ .state_thread_id = 136,
                                                     .state_next = 8,
                                                     .interpreter_threads = 72,
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
        uint32_t version; /* high half of PY_VERSION_HEX */
        uint32_t runtime, interpreter, thread, frame, code, object, type, bytes, text;
        uint32_t thread_id; /* field of the group of the thread */
};

static const struct debug_groups debug_groups[] = {
        { 0x030d, 24, 48, 152, 224, 272, 352, 368, 512, 536, 5 },
        { 0x030e, 24, 48, 176, 248, 312, 400, 416, 592, 616, 5 },
        { 0x030f, 24, 48, 176, 312, 376, 464, 480, 688, 712, 8 },
};

static const struct debug_groups *find_debug_groups(uint64_t version)
{
        for (size_t i = 0; i < sizeof debug_groups / sizeof *debug_groups; i++)
                if (debug_groups[i].version == version >> 16)
                        return &debug_groups[i];
        return NULL;
}

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
        const struct debug_groups *g = find_debug_groups(version);
        uint8_t t[DEBUG_OFFSETS_BYTES];
        struct python_process *p = &v->layout.process;
        struct python_objects *o = &v->layout.objects;
        const uint64_t in_frame = PYTHON_FRAME_BYTES - 8;
        bool valid = true, is_free_threaded;

        if (!g)
                return refuse_python(REFUSAL_VERSION, "its version is not supported");
        if (!m->read(m->ctx, s->runtime, t, sizeof t) || memcmp(t, DEBUG_OFFSETS_COOKIE, 8) != 0)
                return refuse_python(REFUSAL_MEMORY, "its table of offsets cannot be read");
        if (get_debug_offset(t, 8, 0) != version)
                return refuse_python(REFUSAL_MEMORY, "its table of offsets is that of another version");
        is_free_threaded = get_debug_offset(t, 16, 0) != 0;
        if (is_free_threaded && g->version != 0x030d) /* whose threads have copies of instructions */
                return refuse_python(REFUSAL_BUILD, "it is a free-threaded build of 3.14 or later");
        v->interpreters = take_debug_offset(t, g->runtime, 2, OFFSET_MAX, &valid);
        v->type_basic_size = take_debug_offset(t, g->type, 1, OFFSET_MAX, &valid) + 8u; /* after tp_name */
        p->interpreter_next = take_debug_offset(t, g->interpreter, 2, OFFSET_MAX, &valid);
        p->interpreter_threads = take_debug_offset(t, g->interpreter, 3, OFFSET_MAX, &valid);
        p->state_next = take_debug_offset(t, g->thread, 2, OFFSET_MAX, &valid);
        p->state_frame = take_debug_offset(t, g->thread, 4, OFFSET_MAX, &valid);
        p->state_thread_id = take_debug_offset(t, g->thread, g->thread_id, OFFSET_MAX, &valid);
        p->frame_previous = (uint8_t)take_debug_offset(t, g->frame, 1, in_frame, &valid);
        p->frame_code = (uint8_t)take_debug_offset(t, g->frame, 2, in_frame, &valid);
        p->frame_position = (uint8_t)take_debug_offset(t, g->frame, 3, in_frame, &valid);
        p->frame_owner = (uint8_t)take_debug_offset(t, g->frame, 5, in_frame, &valid);
        o->object_type = take_debug_offset(t, g->object, 1, OFFSET_MAX, &valid);
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

/* The version of an interpreter that does not state it, by the members of its code objects: 0x030a; 0x0308: that or
   3.9; 0: older ones. */
static uint32_t guess_old_version(const struct process_memory *m, const struct python_symbols *s)
{
        uint64_t members = 0, name = 0;
        uint32_t version = 0;
        char text[24];

        if (!m->read(m->ctx, s->code_type + TYPE_MEMBERS, &members, sizeof members))
                return 0;
        for (uint64_t i = 0; i < MEMBERS_MAX; i++) {
                if (!m->read(m->ctx, members + i * MEMBER_BYTES, &name, sizeof name) || !name ||
                    !m->read(m->ctx, name, text, sizeof text))
                        break;
                if (strncmp(text, "co_linetable", sizeof text) == 0)
                        return 0x030a;
                if (strncmp(text, "co_posonlyargcount", sizeof text) == 0)
                        version = 0x0308;
        }
        return version;
}

static struct runtime_refusal fill_layout(const struct process_memory *m, const struct python_symbols *s,
                                          struct version_layout *ret)
{
        uint64_t version = 0;

        if (!s->version) {
                version = guess_old_version(m, s);
                if (!version)
                        return refuse_python(REFUSAL_VERSION, "it is older than 3.8");
                if (version < 0x030a && (!s->eval || !s->eval_bytes || s->eval_bytes > UINT32_MAX))
                        return refuse_python(REFUSAL_SYMBOLS, "its loop is not exported");
                fill_layout_of_old(s, version == 0x030a, ret);
                return refuse_python(REFUSAL_NONE, NULL);
        }
        if (!m->read(m->ctx, s->version, &version, sizeof version))
                return refuse_python(REFUSAL_MEMORY, "its memory cannot be read");
        if (version >> 16 == 0x030b)
                fill_layout_3_11(ret);
        else if (version >> 16 == 0x030c)
                fill_layout_3_12(ret);
        else
                return fill_layout_from_process(m, s, version, ret);
        return refuse_python(REFUSAL_NONE, NULL);
}

static struct runtime_refusal choose_python_layout(const struct process_memory *m, const struct python_symbols *s,
                                                   struct version_layout *ret)
{
        struct runtime_refusal refusal;
        uint64_t size = 0;

#if !defined(__x86_64__)
        return refuse_python(REFUSAL_PROCESSOR, "this processor is not supported");
#endif
        if (!s->code_type || !s->text_type)
                return refuse_python(REFUSAL_SYMBOLS, "its types are not exported");
        *ret = (struct version_layout){ .layout.objects = code_objects, .type_basic_size = TYPE_BASIC_SIZE };
        refusal = fill_layout(m, s, ret);
        if (refusal.reason)
                return refusal;
        ret->layout.process.interpreters = s->runtime + ret->interpreters;
        ret->layout.objects.code_type = s->code_type;
        ret->layout.objects.text_type = s->text_type;
        if (!m->read(m->ctx, s->code_type + ret->type_basic_size, &size, sizeof size))
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

/* Whether the state is that of a thread: on x86-64 a pthread is known by its thread pointer, which refers to itself. */
static bool is_thread_pointer(const struct process_memory *m, uint64_t thread_pointer)
{
        uint64_t self = 0;

        return thread_pointer && m->read(m->ctx, thread_pointer, &self, sizeof self) && self == thread_pointer;
}

enum python_attach python_layout_find(const struct process_memory *m, const struct python_symbols *s,
                                      struct python_layout *ret, struct runtime_refusal *refusal_ret)
{
        struct version_layout v = { 0 };
        const struct python_process *p = &v.layout.process;
        uint64_t interpreter = 0, state = 0;
        bool has_thread = false;

        *refusal_ret = choose_python_layout(m, s, &v);
        if (refusal_ret->reason)
                return PYTHON_REFUSED;
        if (!m->read(m->ctx, p->interpreters, &interpreter, sizeof interpreter) || !interpreter ||
            !m->read(m->ctx, interpreter + p->interpreter_threads, &state, sizeof state) || !state)
                return PYTHON_STARTING;
        for (int i = 0; i < THREADS_MAX && state; i++) {
                uint64_t thread_pointer = 0, next = 0;
                uint32_t key = KEYS_MAX;

                if (!m->read(m->ctx, state + p->state_thread_id, &thread_pointer, sizeof thread_pointer))
                        return PYTHON_STARTING;
                if (is_thread_pointer(m, thread_pointer)) {
                        has_thread = true;
                        key = find_state_key(m, thread_pointer, state);
                }
                if (key < KEYS_MAX) {
                        v.layout.process.key_offset = GLIBC_SPECIFIC_BLOCK + 16 * (uint64_t)key + 8;
                        break;
                }
                if (!m->read(m->ctx, state + p->state_next, &next, sizeof next))
                        return PYTHON_STARTING;
                state = next;
        }
        *ret = v.layout;
        if (has_thread)
                return PYTHON_ATTACHED;
        *refusal_ret = refuse_python(REFUSAL_THREADS, "its threads are not found");
        return PYTHON_REFUSED;
}
