/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_python.h"

#include <errno.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "sampling/processes/process_memory.h"

static void close_python_memory(struct process *p)
{
        if (p->python.memory_in && p->python.memory_fd >= 0)
                close(p->python.memory_fd);
        p->python.memory_in = 0;
}

void process_python_deinit(struct process_table *t, struct process *p)
{
        t->python_bytes -= p->python.names.bytes;
        close_python_memory(p);
        python_name_cache_deinit(&p->python.names);
}

static bool refuse_process_python(struct process_table *t, struct process *p, enum runtime_refusal_reason reason,
                                  const char *text)
{
        p->python.state = PYTHON_IS_REFUSED;
        p->python.refusal = (struct runtime_refusal){ reason, text };
        t->python_refused[reason]++;
        if (!t->is_only_listing)
                log_info("agent", "process %u (%s): the Python interpreter is not read: %s", p->id.tgid, p->name, text);
        return false;
}

bool process_python_attach(struct process_table *t, struct process *p)
{
        _cleanup_close_ int fd = -1;
        const struct process_memory memory = { process_memory_read, &fd };
        struct runtime_refusal refusal;
        struct python_layout layout;

        if (!t->reads_python || !p->unwind.python.runtime || p->python.state > PYTHON_IS_STARTING ||
            !(t->is_only_listing || unwind_maps_have_python(&t->unwinder->maps)))
                return false;
        fd = process_memory_open(&p->id);
        if (fd < 0)
                return (errno == EACCES || errno == EPERM) &&
                       refuse_process_python(t, p, REFUSAL_RIGHTS, "this user may not read its memory");
        switch (python_layout_find(&memory, &p->unwind.python, &layout, &refusal)) {
        case PYTHON_ATTACHED:
                break;
        case PYTHON_STARTING:
                p->python.state = PYTHON_IS_STARTING;
                return ++p->python.attempts == LIMIT_AGENT_PYTHON_ATTEMPTS &&
                       refuse_process_python(t, p, REFUSAL_THREADS, "it has no threads");
        case PYTHON_REFUSED:
                return refuse_process_python(t, p, refusal.reason, refusal.text);
        }
        if (!t->is_only_listing) {
                p->unwind.python_number = unwind_maps_add_python(&t->unwinder->maps, &layout.process);
                if (!p->unwind.python_number)
                        return refuse_process_python(t, p, REFUSAL_LIMIT, "there are too many interpreters");
        }
        p->python.state = PYTHON_IS_READ;
        p->python.objects = layout.objects;
        t->python_read++;
        return true;
}

void process_python_end_drain(struct process_table *t, struct process *p)
{
        close_python_memory(p);
        if (p->python.names.count <= LIMIT_AGENT_PYTHON_CODE && t->python_bytes <= LIMIT_AGENT_PYTHON_BYTES)
                return;
        t->python_bytes -= p->python.names.bytes; /* names are read again when they are needed */
        python_name_cache_deinit(&p->python.names);
}

enum python_frame_state process_python_locate(struct process_table *t, struct process *p, uint64_t code,
                                              uint64_t detail, struct python_location *ret)
{
        struct process_python *python = &p->python;
        const struct process_memory memory = { process_memory_read, &python->memory_fd };
        size_t bytes = python->names.bytes;
        enum python_frame_state state;
        uint64_t left;

        if (python->memory_in != t->name_interval) {
                python->memory_fd = process_memory_open(&p->id);
                python->memory_in = t->name_interval;
                python->names.work_left = LIMIT_AGENT_PYTHON_PROCESS_WORK;
        }
        if (python->memory_fd < 0)
                return PYTHON_FRAME_GONE;
        if (python->names.work_left > t->python_left)
                python->names.work_left = t->python_left;
        left = python->names.work_left;
        state = python_name_cache_locate(&python->names, &memory, &python->objects, t->name_interval, code, detail,
                                         ret);
        if ((state == PYTHON_FRAME_UNREADABLE || state == PYTHON_FRAME_FREED) && process_memory_is_gone(&p->id))
                state = PYTHON_FRAME_GONE; /* it ended after its memory was opened */
        t->python_left -= left - python->names.work_left;
        t->python_bytes += python->names.bytes - bytes;
        return state;
}
