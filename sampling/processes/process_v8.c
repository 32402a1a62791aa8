/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_v8.h"

#include <errno.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "sampling/processes/process_memory.h"

static void close_v8_memory(struct process *p)
{
        if (p->v8.memory_in && p->v8.memory_fd >= 0)
                close(p->v8.memory_fd);
        p->v8.memory_in = 0;
}

void process_v8_deinit(struct process_table *t, struct process *p)
{
        t->v8_bytes -= p->v8.names.bytes;
        close_v8_memory(p);
        v8_name_cache_deinit(&p->v8.names);
}

static bool refuse_process_v8(struct process_table *t, struct process *p, enum runtime_refusal_reason reason,
                              const char *text)
{
        p->v8.state = V8_IS_REFUSED;
        p->v8.refusal = (struct runtime_refusal){ reason, text };
        t->v8_refused[reason]++;
        if (!t->is_only_listing)
                log_info("agent", "process %u (%s): JavaScript is not read: %s", p->id.tgid, p->name, text);
        return false;
}

bool process_v8_attach(struct process_table *t, struct process *p)
{
        _cleanup_close_ int fd = -1;

        if (!t->reads_v8 || !p->unwind.v8 || p->v8.state != V8_UNKNOWN ||
            !(t->is_only_listing || unwind_maps_have_v8(&t->unwinder->maps)))
                return false;
        if (p->unwind.v8 == V8_UNSUPPORTED)
                return refuse_process_v8(t, p, REFUSAL_BUILD, "this version or build of V8 is not supported");
        fd = process_memory_open(&p->id);
        if (fd < 0)
                return (errno == EACCES || errno == EPERM) &&
                       refuse_process_v8(t, p, REFUSAL_RIGHTS, "this user may not read its memory");
        p->unwind.v8_number = p->unwind.v8;
        p->v8.state = V8_IS_READ;
        t->v8_read++;
        return true;
}

void process_v8_end_drain(struct process_table *t, struct process *p)
{
        const struct v8_name_cache *n = &p->v8.names;

        close_v8_memory(p);
        if (n->function_count + n->script_count + n->code_count <= LIMIT_AGENT_V8_ITEMS &&
            t->v8_bytes <= LIMIT_AGENT_V8_BYTES)
                return;
        t->v8_bytes -= n->bytes; /* names are read again when they are needed */
        v8_name_cache_deinit(&p->v8.names);
}

enum v8_frame_state process_v8_locate(struct process_table *t, struct process *p, uint64_t shared, uint64_t position,
                                      struct v8_location *ret, uint32_t *count_ret)
{
        struct v8_heap heap = { .memory = { process_memory_read, &p->v8.memory_fd }, .left = &p->v8.left };
        size_t bytes = p->v8.names.bytes;
        enum v8_frame_state state;
        uint64_t left;

        if (p->v8.state != V8_IS_READ)
                return V8_FRAME_UNREADABLE;
        if (p->v8.memory_in != t->name_interval) {
                p->v8.memory_fd = process_memory_open(&p->id);
                p->v8.memory_in = t->name_interval;
                p->v8.left = LIMIT_AGENT_V8_PROCESS_READ;
        }
        if (p->v8.memory_fd < 0)
                return V8_FRAME_GONE;
        if (p->v8.left > t->v8_left)
                p->v8.left = t->v8_left;
        left = p->v8.left;
        heap.objects = unwind_maps_get_v8(&t->unwinder->maps, p->unwind.v8_number);
        state = v8_name_cache_locate(&p->v8.names, &heap, t->name_interval, shared, position, ret, count_ret);
        t->v8_left -= left - p->v8.left;
        t->v8_bytes += p->v8.names.bytes - bytes;
        return state;
}
