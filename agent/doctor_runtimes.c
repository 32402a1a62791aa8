/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/doctor_runtimes.h"

#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "sampling/processes/process.h"
#include "sampling/processes/process_read.h"
#include "sampling/unwinding/unwinder.h"

#define WAIT_NS (15 * INT64_C(1000000000)) /* for the workers to read the executables of all processes */
#define SLICE_MS 200

static void add_running_processes(struct process_table *t)
{
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        struct sample_process id;

        while (proc && (entry = readdir(proc)))
                if (isdigit((unsigned char)entry->d_name[0]) &&
                    process_find_pid((uint32_t)strtoul(entry->d_name, NULL, 10), &id))
                        process_table_handle_notice(t, &(struct sample_notice){ .process = id });
        if (proc)
                closedir(proc);
}

/* The symbols of a file are known when its unwind table was built. */
static void wait_for_executables(struct unwinder *u, struct process_table *t)
{
        int64_t until = monotonic_ns() + WAIT_NS;

        while (u->tables_waiting && monotonic_ns() < until) {
                struct pollfd fd = { .fd = unwinder_fd(u), .events = POLLIN };

                if (poll(&fd, 1, SLICE_MS) > 0 && unwinder_poll(u))
                        process_table_update_waiting(t);
        }
}

static void add_refused_runtime(const struct process *p, const char *runtime, const char *reason,
                                struct found_runtimes *ret)
{
        size_t i = ret->refused_count++;

        if (i >= REFUSED_RUNTIMES_MAX)
                return;
        ret->refused[i] = (struct refused_runtime){ p->id.tgid, "", runtime, reason };
        memcpy(ret->refused[i].process, p->name, sizeof ret->refused[i].process);
}

static void collect_runtimes(const struct process_table *t, struct found_runtimes *ret)
{
        *ret = (struct found_runtimes){ .process_context_count = t->process_contexts_read,
                                        .thread_context_count = t->thread_contexts_read,
                                        .go_labels_count = t->go_labels_read };
        for (size_t i = 0; i < t->count; i++) {
                const struct process *p = t->items[i];

                ret->read_count += p->python.state == PYTHON_IS_READ || p->v8.state == V8_IS_READ ||
                                   p->hotspot.state == HOTSPOT_IS_READ;
                if (p->python.state == PYTHON_IS_REFUSED)
                        add_refused_runtime(p, "Python", p->python.refusal.text, ret);
                if (p->v8.state == V8_IS_REFUSED)
                        add_refused_runtime(p, "JavaScript", p->v8.refusal.text, ret);
                if (p->hotspot.state == HOTSPOT_IS_REFUSED)
                        add_refused_runtime(p, "Java", p->hotspot.refusal.text, ret);
                if (p->request.state == REQUEST_IS_REFUSED)
                        add_refused_runtime(p, "its OpenTelemetry context", p->request.refusal.text, ret);
                if (p->go.state == REQUEST_IS_REFUSED)
                        add_refused_runtime(p, "its set of labels (pprof.Do)", p->go.refusal.text, ret);
        }
}

enum status doctor_find_runtimes(struct fork_server *workers, const struct wanted_runtimes *wanted,
                                 struct found_runtimes *ret, struct error *err)
{
        struct process_table table;
        struct unwinder unwinder;
        enum status st = unwinder_init(&unwinder, NULL, workers, LIMIT_AGENT_UNWIND_BYTES, err);

        process_table_init(&table);
        if (!st) {
                table.unwinder = &unwinder;
                table.reads_python = wanted->python;
                table.reads_v8 = wanted->v8;
                table.reads_hotspot = wanted->hotspot;
                table.reads_context = wanted->context;
                table.is_only_listing = true;
                process_table_begin_drain(&table);
                add_running_processes(&table);
                wait_for_executables(&unwinder, &table);
                collect_runtimes(&table, ret);
        }
        process_table_deinit(&table);
        unwinder_deinit(&unwinder);
        return st;
}
