/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/thread_variable.h"

#define MODULES_MAX 65536
#define STATIC_BYTES_MAX (UINT64_C(1) << 30) /* of the blocks below the thread pointer */
#define GLIBC_ENTRY_BYTES 16
#define MUSL_ENTRY_BYTES 8

/* Offsets from the thread pointer are negative, addresses of user space are not. */
static bool is_static_offset(uint64_t value)
{
        return -value && -value <= STATIC_BYTES_MAX;
}

static enum thread_variable_state set_static_variable(uint64_t offset, struct context_process *ret)
{
        *ret = (struct context_process){ .offset = offset, .access = CONTEXT_AT_THREAD_POINTER };
        return THREAD_VARIABLE_FOUND;
}

static enum thread_variable_state set_module_variable(const struct context_symbols *s, uint64_t module, bool is_musl,
                                                      struct context_process *ret)
{
        if (!module || module >= MODULES_MAX)
                return THREAD_VARIABLE_UNRESOLVED;
        *ret = (struct context_process){ .offset = s->offset,
                                         .access = CONTEXT_IN_MODULE,
                                         .module = (uint32_t)module,
                                         .dtv_entry_bytes = is_musl ? MUSL_ENTRY_BYTES : GLIBC_ENTRY_BYTES };
        return THREAD_VARIABLE_FOUND;
}

/*
 * A descriptor is the address of a function and its argument: the offset from the thread pointer, or the address of
 * module and offset. Before glibc 2.33 it is resolved at its first use; until then the argument is neither.
 */
static enum thread_variable_state read_descriptor(const struct process_memory *m, const struct context_symbols *s,
                                                  bool is_musl, struct context_process *ret)
{
        uint64_t descriptor[2], place[2];

        if (!m->read(m->ctx, s->descriptor_slot, descriptor, sizeof descriptor))
                return THREAD_VARIABLE_UNRESOLVED;
        if (is_static_offset(descriptor[1]))
                return set_static_variable(descriptor[1], ret);
        if (!m->read(m->ctx, descriptor[1], place, sizeof place) || place[1] != s->offset)
                return THREAD_VARIABLE_UNRESOLVED;
        return set_module_variable(s, place[0], is_musl, ret);
}

enum thread_variable_state thread_variable_find(const struct process_memory *m, const struct context_symbols *s,
                                                bool is_musl, struct context_process *ret,
                                                struct runtime_refusal *refusal_ret)
{
        uint64_t word;

        if (s->is_program)
                return set_static_variable(s->program_offset, ret);
        if (s->descriptor_slot)
                return read_descriptor(m, s, is_musl, ret);
        if (s->offset_slot)
                return m->read(m->ctx, s->offset_slot, &word, sizeof word) && is_static_offset(word)
                               ? set_static_variable(word, ret)
                               : THREAD_VARIABLE_UNRESOLVED;
        if (s->module_slot)
                return m->read(m->ctx, s->module_slot, &word, sizeof word) ? set_module_variable(s, word, is_musl, ret)
                                                                           : THREAD_VARIABLE_UNRESOLVED;
        *refusal_ret = (struct runtime_refusal){ REFUSAL_SYMBOLS, "the library that has " CONTEXT_VARIABLE
                                                                  " does not access it itself" };
        return THREAD_VARIABLE_REFUSED;
}
