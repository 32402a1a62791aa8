/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables: perf_threads caches names of threads and which of them have events, perf_tasks has the processes and the
 * descriptors of the events that were opened for them. A process moves from unknown to tracked (has_events) by a
 * record or by being opened, and back by the exit of its leader; its descriptors then move to `left`, where they stay
 * as long as inherited events use them.
 *
 * `scan` numbers the scans: `listed` and `opened` are compared with it, to forget processes that two scans did not
 * find, and to look once more for threads of a process opened by the last scan. Records older than the last one of
 * their process do not change its state.
 *
 * Order: threads, creation and search of tasks, records (step 2), scan (step 1), opening (step 3).
 */
#include "sampling/samplers/perf_tasks.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "sampling/objects/text_line.h"
#include "sampling/processes/process_read.h"

void perf_threads_deinit(struct perf_threads *t)
{
        free(t->items);
        id_table_deinit(&t->by_tid);
        *t = (struct perf_threads){ 0 };
}

static struct perf_thread *find_thread(const struct perf_threads *t, uint32_t tid)
{
        uint32_t i;

        return id_table_find(&t->by_tid, &tid, sizeof tid, &i) ? &t->items[i] : NULL;
}

/* Returns NULL at the limit or without memory: the name is then read when needed. */
static struct perf_thread *reset_thread(struct perf_threads *t, uint32_t tid, uint32_t tgid)
{
        struct perf_thread *thread = find_thread(t, tid);

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

/* The thread has an event. */
static void perf_threads_add(struct perf_threads *t, uint32_t tid, uint32_t tgid)
{
        (void)reset_thread(t, tid, tgid);
}

static bool perf_threads_has(const struct perf_threads *t, uint32_t tid)
{
        const struct perf_thread *thread = find_thread(t, tid);

        return thread && !thread->ended;
}

static void set_thread_name(struct perf_thread *thread, const char comm[static SAMPLE_COMM_SIZE])
{
        memcpy(thread->comm, comm, SAMPLE_COMM_SIZE);
        thread->named = true;
}

void perf_threads_handle_record(struct perf_threads *t, const struct perf_record *r)
{
        struct perf_thread *thread = find_thread(t, r->tid), *parent;
        char comm[SAMPLE_COMM_SIZE];
        bool named;

        switch (r->kind) {
        case PERF_RECORD_OF_FORK:
                parent = find_thread(t, r->parent_tid);
                named = parent && parent->named;
                if (named)
                        memcpy(comm, parent->comm, sizeof comm);
                thread = reset_thread(t, r->tid, r->tgid); /* may move the parent */
                if (thread && named)
                        set_thread_name(thread, comm);
                break;
        case PERF_RECORD_OF_EXIT:
                if (thread)
                        thread->ended = true;
                break;
        case PERF_RECORD_OF_COMM:
        case PERF_RECORD_OF_EXEC:
                if (!thread)
                        thread = reset_thread(t, r->tid, r->tgid);
                if (thread)
                        set_thread_name(thread, r->comm);
                break;
        default:
                break;
        }
}

static bool read_thread_name(uint32_t tid, uint32_t tgid, char ret[static SAMPLE_COMM_SIZE])
{
        char path[64];
        _cleanup_close_ int fd = -1;

        snprintf(path, sizeof path, "/proc/%u/task/%u", tgid, tid);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd >= 0 && process_read_name(fd, ret);
}

void perf_threads_get_name(struct perf_threads *t, uint32_t tid, uint32_t tgid, char ret[static SAMPLE_COMM_SIZE])
{
        struct perf_thread *thread = find_thread(t, tid);
        char comm[SAMPLE_COMM_SIZE] = { 0 };

        if (!thread)
                thread = reset_thread(t, tid, tgid);
        if (thread && thread->named) {
                memcpy(ret, thread->comm, SAMPLE_COMM_SIZE);
                return;
        }
        if (read_thread_name(tid, tgid, comm) && thread)
                set_thread_name(thread, comm);
        memcpy(ret, comm, SAMPLE_COMM_SIZE);
}

/* Forget threads that exited, and those of a process for which keep() is false. */
static void perf_threads_prune(struct perf_threads *t, bool (*keep)(const void *ctx, uint32_t tgid), const void *ctx)
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

void perf_tasks_init(struct perf_tasks *t, struct perf_events *events, struct perf_threads *threads)
{
        *t = (struct perf_tasks){ .events = events, .threads = threads, .scan = 1 };
}

static void close_task_events(struct perf_tasks *t, struct perf_task *task)
{
        for (size_t i = 0; i < task->fd_count; i++)
                perf_events_close(t->events, task->fds[i]);
        free(task->fds);
        task->fds = NULL;
        task->fd_count = task->fd_capacity = 0;
        task->opened = 0;
}

void perf_tasks_deinit(struct perf_tasks *t)
{
        for (size_t i = 0; i < t->count; i++)
                close_task_events(t, &t->items[i]);
        for (size_t i = 0; i < t->left_count; i++)
                perf_events_close(t->events, t->left[i].fd);
        free(t->items);
        free(t->found);
        free(t->left);
        id_table_deinit(&t->by_tgid);
        *t = (struct perf_tasks){ 0 };
}

static struct perf_task *find_task(const struct perf_tasks *t, uint32_t tgid)
{
        uint32_t i;

        return id_table_find(&t->by_tgid, &tgid, sizeof tgid, &i) ? &t->items[i] : NULL;
}

static struct perf_task *find_or_add_task(struct perf_tasks *t, uint32_t tgid)
{
        struct perf_task *task = find_task(t, tgid);

        if (task || t->count == LIMIT_AGENT_PROCESSES || !array_reserve(&t->items, &t->capacity, t->count) ||
            !id_table_put(&t->by_tgid, &tgid, sizeof tgid, (uint32_t)t->count))
                return task;
        task = &t->items[t->count++];
        *task = (struct perf_task){ .id.tgid = tgid, .listed = t->scan };
        return task;
}

static int open_proc_directory(uint32_t tgid)
{
        char path[32];

        snprintf(path, sizeof path, "/proc/%u", tgid);
        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void perf_task_identify(struct perf_task *task)
{
        struct process_stat stat;
        _cleanup_close_ int fd = task->identified ? -1 : open_proc_directory(task->id.tgid);

        if (fd >= 0 && process_read_stat(fd, &stat)) {
                task->id.start_boot_ns = process_start_ns(&stat);
                task->kernel_thread = stat.kernel_thread;
        }
        task->identified = true;
}

/* ---- records ---------------------------------------------------------------------------- */

/* Descriptors are kept for tasks that inherited the events. */
static void end_task(struct perf_tasks *t, struct perf_task *task)
{
        for (size_t i = 0; i < task->fd_count; i++) {
                if (array_reserve(&t->left, &t->left_capacity, t->left_count))
                        t->left[t->left_count++] = (struct pollfd){ .fd = task->fds[i] };
                else
                        perf_events_close(t->events, task->fds[i]);
        }
        free(task->fds);
        task->fds = NULL;
        task->fd_count = task->fd_capacity = 0;
        task->opened = 0;
        task->has_events = false;
}

static void start_task(struct perf_tasks *t, struct perf_task *task)
{
        uint32_t tgid = task->id.tgid;

        close_task_events(t, task);
        *task = (struct perf_task){ .id.tgid = tgid, .listed = t->scan, .has_events = true };
}

struct perf_task *perf_tasks_handle_record(struct perf_tasks *t, const struct perf_record *r)
{
        struct perf_task *task = r->tgid ? find_or_add_task(t, r->tgid) : NULL;

        if (!task || r->time_ns < task->last_record_ns)
                return task;
        if (r->kind == PERF_RECORD_OF_FORK && r->tgid != r->parent_tgid)
                start_task(t, task);
        else if (r->kind == PERF_RECORD_OF_EXIT && r->tid == r->tgid)
                end_task(t, task);
        else if (r->kind != PERF_RECORD_OF_EXIT)
                task->has_events = true;
        if (r->kind == PERF_RECORD_OF_EXEC) {
                task->id.exec_id++;
                task->sampled = task->stale = false;
        }
        task->last_record_ns = r->time_ns;
        return task;
}

void perf_tasks_stop(struct perf_tasks *t)
{
        for (size_t i = 0; i < t->count; i++)
                for (size_t k = 0; k < t->items[i].fd_count; k++)
                        (void)ioctl(t->items[i].fds[k], PERF_EVENT_IOC_DISABLE, 0);
        for (size_t i = 0; i < t->left_count; i++)
                (void)ioctl(t->left[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* ---- step 1: scan /proc ---- */

static bool parse_pid_name(const char *name, uint32_t *ret)
{
        struct text_line l = { name, name + strlen(name) };
        uint64_t v;

        if (!text_number(&l, 10, &v) || text_size(&l) || v == 0 || v > INT32_MAX)
                return false;
        *ret = (uint32_t)v;
        return true;
}

static bool may_sample_process(const struct perf_tasks *t, int proc_fd, const char *name, uint32_t tgid)
{
        struct stat st;

        for (size_t i = 0; i < t->tgid_count; i++)
                if (t->tgids[i] == tgid)
                        return true;
        return t->tgid_count == 0 && (t->all_users || (fstatat(proc_fd, name, &st, 0) == 0 && st.st_uid == geteuid()));
}

static bool has_task(const void *ctx, uint32_t tgid)
{
        return find_task(ctx, tgid) != NULL;
}

/* Forget processes missing in two scans: records of one that just exited may still be in the buffers. */
static void forget_ended_tasks(struct perf_tasks *t)
{
        size_t kept = 0;

        id_table_deinit(&t->by_tgid);
        for (size_t i = 0; i < t->count; i++) {
                struct perf_task task = t->items[i];

                if (task.listed + 1 < t->scan ||
                    !id_table_put(&t->by_tgid, &task.id.tgid, sizeof task.id.tgid, (uint32_t)kept))
                        end_task(t, &task);
                else
                        t->items[kept++] = task;
        }
        t->count = kept;
        perf_threads_prune(t->threads, has_task, t);
}

static void close_inherited_events(struct perf_tasks *t)
{
        size_t kept = 0;

        if (!t->left_count || poll(t->left, t->left_count, 0) <= 0)
                return;
        for (size_t i = 0; i < t->left_count; i++) {
                if (t->left[i].revents & (POLLHUP | POLLERR | POLLNVAL))
                        perf_events_close(t->events, t->left[i].fd);
                else
                        t->left[kept++] = t->left[i];
        }
        t->left_count = kept;
}

enum status perf_tasks_scan(struct perf_tasks *t, struct error *err)
{
        _cleanup_closedir_ DIR *dir = opendir("/proc");
        const struct dirent *e;

        if (!dir)
                return error_os(err, errno, "cannot list '/proc'");
        t->found_count = 0;
        t->scan++;
        while ((e = readdir(dir))) {
                struct perf_task *task;
                uint32_t tgid;

                if (!parse_pid_name(e->d_name, &tgid))
                        continue;
                task = find_task(t, tgid);
                if (task)
                        task->listed = t->scan;
                if (task && (task->refused || (task->has_events && task->opened + 1 != t->scan)))
                        continue;
                if (t->found_count < LIMIT_AGENT_PROCESSES && may_sample_process(t, dirfd(dir), e->d_name, tgid) &&
                    array_reserve(&t->found, &t->found_capacity, t->found_count))
                        t->found[t->found_count++] = tgid;
        }
        forget_ended_tasks(t);
        close_inherited_events(t);
        return ST_OK;
}

/* ---- step 3: open new processes ---- */

static enum status open_thread_events(struct perf_tasks *t, struct perf_task *task, uint32_t tid, struct error *err)
{
        size_t n = t->events->cpu_count;
        enum status st;

        if (!array_reserve_many(&task->fds, &task->fd_capacity, task->fd_count, n))
                return error_no_memory(err);
        st = perf_events_open(t->events, (pid_t)tid, task->fds + task->fd_count, err);
        if (st)
                return st;
        task->fd_count += n;
        perf_threads_add(t->threads, tid, task->id.tgid);
        return ST_OK;
}

/* Open all threads without events. Stops at the first failure; a thread that exited is not one. */
static enum status open_new_threads(struct perf_tasks *t, struct perf_task *task, int proc_fd, struct error *err)
{
        int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;
        enum status st = ST_OK;

        if (!dir) {
                if (fd >= 0)
                        close(fd);
                return error_set(err, ST_NOT_FOUND, "process %u has exited", task->id.tgid);
        }
        while ((e = readdir(dir)) && (!st || st == ST_NOT_FOUND)) {
                uint32_t tid;

                if (parse_pid_name(e->d_name, &tid) && !perf_threads_has(t->threads, tid))
                        st = open_thread_events(t, task, tid, err);
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* A process opened at the last scan is checked again: a thread not yet open may have started another one. */
static enum status follow_process(struct perf_tasks *t, uint32_t tgid, bool lost, struct error *err)
{
        struct perf_task *task = find_task(t, tgid);
        const struct perf_task *parent;
        _cleanup_close_ int fd = -1;
        struct process_stat stat;
        enum status st;
        bool again = task && task->opened && task->opened + 1 == t->scan;

        if (task && (task->refused || (task->has_events && !again)))
                return ST_OK; /* seen in step 2 */
        fd = open_proc_directory(tgid);
        if (fd < 0 || !process_read_stat(fd, &stat))
                return error_set(err, ST_NOT_FOUND, "process %u has exited", tgid);
        if (stat.state == 'Z' || (stat.kernel_thread && !t->events->kernel))
                return ST_OK;
        task = find_or_add_task(t, tgid);
        if (!task)
                return error_set(err, ST_BUSY, "limit of %zu processes reached", t->count);
        parent = find_task(t, stat.parent);
        if (lost && !again && parent && parent->has_events) {
                task->has_events = true;
                return ST_OK;
        }
        st = open_new_threads(t, task, fd, err);
        if (!again)
                task->opened = t->scan;
        task->has_events = task->fd_count > 0;
        task->refused = st == ST_OS;
        return st;
}

enum status perf_tasks_open_new(struct perf_tasks *t, bool lost, struct error *err)
{
        enum status first = ST_OK;

        for (size_t i = 0; i < t->found_count; i++) {
                struct error e;
                enum status st = follow_process(t, t->found[i], lost, &e);

                t->refused += st == ST_OS;
                t->full = t->full || st == ST_BUSY;
                if (st && !first && t->tgid_count) {
                        first = st;
                        if (err)
                                *err = e;
                }
        }
        return first;
}
