/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/perf_threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process_read.h"
#include "common/array.h"
#include "common/limits.h"

void perf_threads_deinit(struct perf_threads *t)
{
        free(t->items);
        id_table_deinit(&t->by_tid);
        *t = (struct perf_threads){ 0 };
}

static struct perf_thread *find(const struct perf_threads *t, uint32_t tid)
{
        uint32_t i;

        return id_table_find(&t->by_tid, &tid, sizeof tid, &i) ? &t->items[i] : NULL;
}

/* NULL without room or memory: then the name is read when it is needed. */
static struct perf_thread *renew(struct perf_threads *t, uint32_t tid, uint32_t tgid)
{
        struct perf_thread *thread = find(t, tid);

        if (!thread && t->count == LIMIT_AGENT_THREADS)
                return NULL;
        if (!thread && !array_reserve(&t->items, &t->capacity, t->count))
                return NULL;
        if (!thread) {
                if (!id_table_put(&t->by_tid, &tid, sizeof tid, (uint32_t)t->count))
                        return NULL;
                thread = &t->items[t->count++];
        }
        *thread = (struct perf_thread){ .tid = tid, .tgid = tgid };
        return thread;
}

void perf_threads_add(struct perf_threads *t, uint32_t tid, uint32_t tgid)
{
        (void)renew(t, tid, tgid);
}

bool perf_threads_has(const struct perf_threads *t, uint32_t tid)
{
        const struct perf_thread *thread = find(t, tid);

        return thread && !thread->ended;
}

static void set_name(struct perf_thread *thread, const char comm[static SAMPLE_COMM_SIZE])
{
        memcpy(thread->comm, comm, SAMPLE_COMM_SIZE);
        thread->named = true;
}

void perf_threads_record(struct perf_threads *t, const struct perf_record *r)
{
        struct perf_thread *thread = find(t, r->tid), *parent;
        char comm[SAMPLE_COMM_SIZE];
        bool named;

        switch (r->kind) {
        case PERF_RECORD_OF_FORK:
                parent = find(t, r->parent_tid);
                named = parent && parent->named;
                if (named)
                        memcpy(comm, parent->comm, sizeof comm);
                thread = renew(t, r->tid, r->tgid); /* may move the parent */
                if (thread && named)
                        set_name(thread, comm);
                break;
        case PERF_RECORD_OF_EXIT:
                if (thread)
                        thread->ended = true;
                break;
        case PERF_RECORD_OF_COMM:
        case PERF_RECORD_OF_EXEC:
                if (!thread)
                        thread = renew(t, r->tid, r->tgid);
                if (thread)
                        set_name(thread, r->comm);
                break;
        default:
                break;
        }
}

static bool read_name(uint32_t tid, uint32_t tgid, char ret[static SAMPLE_COMM_SIZE])
{
        char path[64];
        _cleanup_close_ int fd = -1;

        snprintf(path, sizeof path, "/proc/%u/task/%u", tgid, tid);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd >= 0 && process_read_name(fd, ret);
}

void perf_threads_name(struct perf_threads *t, uint32_t tid, uint32_t tgid, char ret[static SAMPLE_COMM_SIZE])
{
        struct perf_thread *thread = find(t, tid);
        char comm[SAMPLE_COMM_SIZE] = { 0 };

        if (!thread)
                thread = renew(t, tid, tgid);
        if (thread && thread->named) {
                memcpy(ret, thread->comm, SAMPLE_COMM_SIZE);
                return;
        }
        if (read_name(tid, tgid, comm) && thread)
                set_name(thread, comm);
        memcpy(ret, comm, SAMPLE_COMM_SIZE);
}

void perf_threads_clean(struct perf_threads *t, bool (*keep)(const void *ctx, uint32_t tgid), const void *ctx)
{
        size_t kept = 0;

        id_table_deinit(&t->by_tid);
        for (size_t i = 0; i < t->count; i++) {
                const struct perf_thread thread = t->items[i];

                if (!thread.ended && keep(ctx, thread.tgid) &&
                    id_table_put(&t->by_tid, &thread.tid, sizeof thread.tid, (uint32_t)kept))
                        t->items[kept++] = thread;
        }
        t->count = kept;
}
