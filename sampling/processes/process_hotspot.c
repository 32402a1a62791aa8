/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_hotspot.h"

#include <errno.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "sampling/processes/process_memory.h"

static void close_hotspot_memory(struct process *p)
{
        if (p->hotspot.memory_in && p->hotspot.memory_fd >= 0)
                close(p->hotspot.memory_fd);
        p->hotspot.memory_in = 0;
}

void process_hotspot_deinit(struct process_table *t, struct process *p)
{
        t->hotspot_bytes -= p->hotspot.names.bytes;
        close_hotspot_memory(p);
        hotspot_name_cache_deinit(&p->hotspot.names);
}

static bool refuse_process_hotspot(struct process_table *t, struct process *p, enum runtime_refusal_reason reason,
                                   const char *text)
{
        p->hotspot.state = HOTSPOT_IS_REFUSED;
        p->hotspot.refusal = (struct runtime_refusal){ reason, text };
        t->hotspot_refused[reason]++;
        if (!t->is_only_listing)
                log_info("agent", "process %u (%s): Java is not read: %s", p->id.tgid, p->name, text);
        return false;
}

static enum hotspot_attach find_hotspot_layout(const struct process_memory *m, const struct unwinder_process *unwind,
                                               struct hotspot_layout *ret, struct runtime_refusal *refusal_ret)
{
#if defined(__x86_64__)
        return hotspot_layout_find(m, &unwind->hotspot, ret, refusal_ret);
#else
        (void)m;
        (void)unwind;
        (void)ret;
        *refusal_ret = (struct runtime_refusal){ REFUSAL_PROCESSOR, "it is read on x86-64 only" };
        return HOTSPOT_REFUSED;
#endif
}

bool process_hotspot_attach(struct process_table *t, struct process *p)
{
        _cleanup_close_ int fd = -1;
        const struct process_memory memory = { process_memory_read, &fd };
        struct runtime_refusal refusal;
        struct hotspot_layout layout;

        if (!t->reads_hotspot || !p->unwind.hotspot.structs || p->hotspot.state > HOTSPOT_IS_STARTING ||
            !(t->is_only_listing || unwind_maps_have_hotspot(&t->unwinder->maps)))
                return false;
        fd = process_memory_open(&p->id);
        if (fd < 0)
                return (errno == EACCES || errno == EPERM) &&
                       refuse_process_hotspot(t, p, REFUSAL_RIGHTS, "this user may not read its memory");
        switch (find_hotspot_layout(&memory, &p->unwind, &layout, &refusal)) {
        case HOTSPOT_ATTACHED:
                break;
        case HOTSPOT_STARTING:
                p->hotspot.state = HOTSPOT_IS_STARTING;
                return ++p->hotspot.attempts == LIMIT_AGENT_HOTSPOT_ATTEMPTS &&
                       refuse_process_hotspot(t, p, REFUSAL_MEMORY, "it has no code cache");
        case HOTSPOT_REFUSED:
                return refuse_process_hotspot(t, p, refusal.reason, refusal.text);
        }
        if (!t->is_only_listing) {
                p->unwind.hotspot_number = unwind_maps_add_hotspot(&t->unwinder->maps, &layout.process);
                if (!p->unwind.hotspot_number)
                        return refuse_process_hotspot(t, p, REFUSAL_LIMIT, "there are too many virtual machines");
        }
        p->hotspot.state = HOTSPOT_IS_READ;
        p->hotspot.objects = layout.objects;
        t->hotspot_read++;
        return true;
}

void process_hotspot_end_drain(struct process_table *t, struct process *p)
{
        const struct hotspot_name_cache *n = &p->hotspot.names;

        close_hotspot_memory(p);
        if (n->method_count + n->place_count <= LIMIT_AGENT_HOTSPOT_ITEMS &&
            t->hotspot_bytes <= LIMIT_AGENT_HOTSPOT_BYTES)
                return;
        t->hotspot_bytes -= n->bytes; /* names are read again when they are needed */
        hotspot_name_cache_deinit(&p->hotspot.names);
}

enum hotspot_frame_state process_hotspot_locate(struct process_table *t, struct process *p, uint64_t address,
                                                uint64_t position, struct hotspot_location *ret, uint32_t *count_ret)
{
        struct process_hotspot *h = &p->hotspot;
        const struct process_memory memory = { process_memory_read, &h->memory_fd };
        size_t bytes = h->names.bytes;
        enum hotspot_frame_state state;
        uint64_t left;

        if (h->state != HOTSPOT_IS_READ)
                return HOTSPOT_FRAME_UNREADABLE;
        if (h->memory_in != t->name_interval) {
                h->memory_fd = process_memory_open(&p->id);
                h->memory_in = t->name_interval;
                h->names.work_left = LIMIT_HOTSPOT_PROCESS_WORK;
        }
        if (h->memory_fd < 0)
                return HOTSPOT_FRAME_GONE;
        if (h->names.work_left > t->hotspot_left)
                h->names.work_left = t->hotspot_left;
        left = h->names.work_left;
        state = hotspot_name_cache_locate(&h->names, &memory, &h->objects, t->name_interval, address, position, ret,
                                          count_ret);
        if ((state == HOTSPOT_FRAME_UNREADABLE || state == HOTSPOT_FRAME_FREED) && process_memory_is_gone(&p->id))
                state = HOTSPOT_FRAME_GONE; /* it ended after its memory was opened */
        t->hotspot_left -= left - h->names.work_left;
        t->hotspot_bytes += h->names.bytes - bytes;
        return state;
}
