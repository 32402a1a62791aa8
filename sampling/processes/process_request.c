/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_request.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/text.h"
#include "sampling/processes/process_memory.h"
#include "sampling/runtimes/thread_variable.h"

static void forget_process_context(struct process_table *t, struct process *p)
{
        t->context_bytes -= p->request.context.arena.used;
        process_context_deinit(&p->request.context);
}

void process_request_deinit(struct process_table *t, struct process *p)
{
        forget_process_context(t, p);
}

static bool refuse_process_context(struct process_table *t, struct process *p, enum runtime_refusal_reason reason,
                                   const char *text)
{
        p->request.state = REQUEST_IS_REFUSED;
        p->request.refusal = (struct runtime_refusal){ reason, text };
        t->contexts_refused[reason]++;
        if (!t->is_only_listing)
                log_info("agent", "process %u (%s): its OpenTelemetry context is not read: %s", p->id.tgid, p->name,
                         text);
        return false;
}

/* Read it into p->request.context, unless that is up to date. */
static void read_process_context(struct process_table *t, struct process *p)
{
        _cleanup_close_ int fd = process_memory_open(&p->id);
        const struct process_memory memory = { process_memory_read, &fd };
        size_t bytes = p->request.context.arena.used;
        bool is_first = !p->request.context.published_ns;
        enum process_context_state state;

        if (fd < 0) {
                if ((errno == EACCES || errno == EPERM) && is_first)
                        refuse_process_context(t, p, REFUSAL_RIGHTS, "this user may not read its memory");
                return;
        }
        state = process_context_read(&memory, p->maps.context_address, &p->request.context);
        t->context_bytes += p->request.context.arena.used - bytes;
        if (state == PROCESS_CONTEXT_NONE || state == PROCESS_CONTEXT_BAD) {
                forget_process_context(t, p);
                refuse_process_context(t, p, state == PROCESS_CONTEXT_NONE ? REFUSAL_VERSION : REFUSAL_MEMORY,
                                       state == PROCESS_CONTEXT_NONE ? "it is not of version 2"
                                                                     : "it is malformed, too large or not readable");
        } else if (t->context_bytes > LIMIT_AGENT_CONTEXT_BYTES) {
                forget_process_context(t, p);
                refuse_process_context(t, p, REFUSAL_LIMIT, "there are too many contexts");
        } else if (is_first && state == PROCESS_CONTEXT_READ) {
                t->process_contexts_read++;
        }
}

void process_request_refresh(struct process_table *t, struct process *p)
{
        if (!t->reads_context || p->request.state == REQUEST_IS_REFUSED || p->request.read_in == t->drain + 1)
                return;
        p->request.read_in = t->drain + 1;
        if (p->maps.context_address)
                read_process_context(t, p);
        else if (p->request.context.published_ns)
                forget_process_context(t, p); /* it was withdrawn */
}

/* ---- threads ---- */

/* By the name of the C library, which is mapped in every program that is linked dynamically. */
static bool maps_musl(const struct process *p)
{
        for (size_t i = 0; i < p->maps.count; i++) {
                const char *path = p->maps.items[i].path, *name = strrchr(path, '/');

                name = name ? name + 1 : path;
                if (strcmp(name, "libc.so") == 0 || starts_with(name, "ld-musl-") || starts_with(name, "libc.musl-"))
                        return true;
        }
        return false;
}

static enum thread_variable_state find_thread_variable(struct process *p, const struct context_symbols *s,
                                                       struct context_process *ret, struct runtime_refusal *refusal_ret)
{
        _cleanup_close_ int fd = process_memory_open(&p->id);
        const struct process_memory memory = { process_memory_read, &fd };

        if (fd < 0)
                return THREAD_VARIABLE_UNRESOLVED;
        return thread_variable_find(&memory, s, maps_musl(p), ret, refusal_ret);
}

bool process_request_waits(const struct process *p)
{
        return (p->request.state == REQUEST_WAITS && p->request.attempts < LIMIT_AGENT_CONTEXT_ATTEMPTS) ||
               (p->go.state == REQUEST_WAITS && p->go.attempts < LIMIT_AGENT_CONTEXT_ATTEMPTS);
}

void process_request_note_attempt(struct process *p)
{
        if (p->request.state == REQUEST_WAITS)
                p->request.attempts++;
        if (p->go.state == REQUEST_WAITS)
                p->go.attempts++;
}

static void remove_thread_place(struct process_table *t, struct process *p)
{
        unwind_maps_remove_context(&t->unwinder->maps, p->unwind.context_number);
        p->unwind.context_number = 0;
}

static bool add_thread_place(struct process_table *t, struct process *p, const struct context_process *place)
{
        if (t->is_only_listing)
                return true;
        p->unwind.context_number = unwind_maps_add_context(&t->unwinder->maps, place);
        return p->unwind.context_number != 0;
}

static bool can_have_thread_place(const struct process_table *t)
{
        return t->is_only_listing || unwind_maps_have_context(&t->unwinder->maps);
}

static bool attach_thread_context(struct process_table *t, struct process *p)
{
        struct runtime_refusal refusal;
        struct context_process place;
        bool is_moved = false;

        if (p->request.state == REQUEST_IS_READ &&
            memcmp(&p->request.symbols, &p->unwind.context, sizeof p->unwind.context)) {
                remove_thread_place(t, p); /* another library has it */
                p->request.state = REQUEST_UNKNOWN;
                is_moved = true;
        }
        if (!p->unwind.context.is_defined || p->request.state > REQUEST_WAITS || !can_have_thread_place(t))
                return is_moved;
        p->request.state = REQUEST_WAITS;
        if (!p->request.context.has_threads)
                return is_moved;
        switch (find_thread_variable(p, &p->unwind.context, &place, &refusal)) {
        case THREAD_VARIABLE_FOUND:
                break;
        case THREAD_VARIABLE_UNRESOLVED:
                return is_moved;
        case THREAD_VARIABLE_REFUSED:
                return refuse_process_context(t, p, refusal.reason, refusal.text);
        }
        if (p->go.state == REQUEST_IS_READ) /* which had no such variable before */
                remove_thread_place(t, p);
        if (!add_thread_place(t, p, &place))
                return refuse_process_context(t, p, REFUSAL_LIMIT, "there are too many contexts");
        p->request.state = REQUEST_IS_READ;
        p->request.symbols = p->unwind.context;
        t->thread_contexts_read++;
        return true;
}

/* ---- Go ---- */

static bool refuse_go_labels(struct process_table *t, struct process *p, enum runtime_refusal_reason reason,
                             const char *text)
{
        p->go.state = REQUEST_IS_REFUSED;
        p->go.refusal = (struct runtime_refusal){ reason, text };
        t->contexts_refused[reason]++;
        if (!t->is_only_listing)
                log_info("agent", "process %u (%s): its labels of goroutines are not read: %s", p->id.tgid, p->name,
                         text);
        return false;
}

static bool attach_go_labels(struct process_table *t, struct process *p)
{
        const struct go_symbols *s = &p->unwind.go;
        struct runtime_refusal refusal;
        struct context_process place;

        if (s->state == GO_LABELS_NONE || p->go.state > REQUEST_WAITS || p->request.state == REQUEST_IS_READ ||
            !can_have_thread_place(t))
                return false;
        p->go.state = REQUEST_WAITS;
        if (s->state == GO_LABELS_UNKNOWN_VERSION)
                return refuse_go_labels(t, p, REFUSAL_VERSION,
                                        "it has no DWARF, and no layout is known for its version of Go");
        if (s->state == GO_LABELS_NO_VARIABLE)
                return refuse_go_labels(t, p, REFUSAL_SYMBOLS,
                                        "it is stripped, and has other thread-local variables than that of Go");
        switch (find_thread_variable(p, &s->g, &place, &refusal)) {
        case THREAD_VARIABLE_FOUND:
                break;
        case THREAD_VARIABLE_UNRESOLVED:
                return false;
        case THREAD_VARIABLE_REFUSED:
                return refuse_go_labels(t, p, refusal.reason, "its variable of the current g is not found");
        }
        place.form = s->has_map ? CONTEXT_OF_GO_MAP : CONTEXT_OF_GO_LIST;
        place.m = (uint16_t)s->m;
        place.curg = (uint16_t)s->curg;
        place.labels = (uint16_t)s->labels;
        if (!add_thread_place(t, p, &place))
                return refuse_go_labels(t, p, REFUSAL_LIMIT, "there are too many contexts");
        p->go.state = REQUEST_IS_READ;
        t->go_labels_read++;
        return true;
}

bool process_request_attach(struct process_table *t, struct process *p)
{
        bool is_changed;

        if (!t->reads_context)
                return false;
        process_request_refresh(t, p);
        is_changed = attach_thread_context(t, p);
        return attach_go_labels(t, p) || is_changed;
}
