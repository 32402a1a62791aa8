/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/perf_tasks.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/process_read.h"
#include "agent/text_line.h"
#include "common/array.h"
#include "common/limits.h"

void perf_tasks_init(struct perf_tasks *t, struct perf_events *events, struct perf_threads *threads)
{
        *t = (struct perf_tasks){ .events = events, .threads = threads, .list = 1 };
}

static void close_all(struct perf_tasks *t, struct perf_task *task)
{
        for (size_t i = 0; i < task->fd_count; i++)
                perf_events_close(t->events, task->fds[i]);
        free(task->fds);
        task->fds = NULL;
        task->fd_count = 0;
        task->opened = 0;
}

void perf_tasks_deinit(struct perf_tasks *t)
{
        for (size_t i = 0; i < t->count; i++)
                close_all(t, &t->items[i]);
        for (size_t i = 0; i < t->left_count; i++)
                perf_events_close(t->events, t->left[i].fd);
        free(t->items);
        free(t->found);
        free(t->left);
        id_table_deinit(&t->by_tgid);
        *t = (struct perf_tasks){ 0 };
}

static struct perf_task *find(const struct perf_tasks *t, uint32_t tgid)
{
        uint32_t i;

        return id_table_find(&t->by_tgid, &tgid, sizeof tgid, &i) ? &t->items[i] : NULL;
}

static struct perf_task *find_or_add(struct perf_tasks *t, uint32_t tgid)
{
        struct perf_task *task = find(t, tgid);

        if (task || t->count == LIMIT_AGENT_PROCESSES ||
            !array_reserve(&t->items, &t->capacity, t->count) ||
            !id_table_put(&t->by_tgid, &tgid, sizeof tgid, (uint32_t)t->count))
                return task;
        task = &t->items[t->count++];
        *task = (struct perf_task){ .id.tgid = tgid, .listed = t->list };
        return task;
}

static int open_directory(uint32_t tgid)
{
        char path[32];

        snprintf(path, sizeof path, "/proc/%u", tgid);
        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void perf_tasks_identify(struct perf_task *task)
{
        struct process_stat stat;
        _cleanup_close_ int fd = task->identified ? -1 : open_directory(task->id.tgid);

        if (fd >= 0 && process_read_stat(fd, &stat)) {
                task->id.start_boot_ns = process_start_ns(&stat);
                task->kernel_thread = stat.kernel_thread;
        }
        task->identified = true;
}

/* ---- records ---------------------------------------------------------------------------- */

/* Its descriptors are kept for those who inherited. */
static void leave(struct perf_tasks *t, struct perf_task *task)
{
        for (size_t i = 0; i < task->fd_count; i++) {
                if (array_reserve(&t->left, &t->left_capacity, t->left_count))
                        t->left[t->left_count++] = (struct pollfd){ .fd = task->fds[i] };
                else
                        perf_events_close(t->events, task->fds[i]);
        }
        free(task->fds);
        task->fds = NULL;
        task->fd_count = 0;
        task->opened = 0;
        task->followed = false;
}

static void be_born(struct perf_tasks *t, struct perf_task *task)
{
        uint32_t tgid = task->id.tgid;

        close_all(t, task);
        *task = (struct perf_task){ .id.tgid = tgid, .listed = t->list, .followed = true };
}

struct perf_task *perf_tasks_record(struct perf_tasks *t, const struct perf_record *r)
{
        struct perf_task *task = r->tgid ? find_or_add(t, r->tgid) : NULL;

        if (!task || r->time_ns < task->last_record_ns)
                return task;
        if (r->kind == PERF_RECORD_OF_FORK && r->tgid != r->parent_tgid)
                be_born(t, task);
        else if (r->kind == PERF_RECORD_OF_EXIT && r->tid == r->tgid)
                leave(t, task);
        else if (r->kind != PERF_RECORD_OF_EXIT)
                task->followed = true;
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

/* ---- step 1: what is there ------------------------------------------------------------------ */

static bool parse_number(const char *name, uint32_t *ret)
{
        struct text_line l = { name, name + strlen(name) };
        uint64_t v;

        if (!text_number(&l, 10, &v) || text_size(&l) || v == 0 || v > INT32_MAX)
                return false;
        *ret = (uint32_t)v;
        return true;
}

static bool is_wanted(const struct perf_tasks *t, int proc_fd, const char *name, uint32_t tgid)
{
        struct stat st;

        for (size_t i = 0; i < t->tgid_count; i++)
                if (t->tgids[i] == tgid)
                        return true;
        return t->tgid_count == 0 &&
               (t->all_users || (fstatat(proc_fd, name, &st, 0) == 0 && st.st_uid == geteuid()));
}

static bool is_known(const void *ctx, uint32_t tgid)
{
        return find(ctx, tgid) != NULL;
}

/* Forget processes that were not listed twice: records of one that just ended may still be in the buffers. */
static void forget(struct perf_tasks *t)
{
        size_t kept = 0;

        id_table_deinit(&t->by_tgid);
        for (size_t i = 0; i < t->count; i++) {
                struct perf_task task = t->items[i];

                if (task.listed + 1 < t->list ||
                    !id_table_put(&t->by_tgid, &task.id.tgid, sizeof task.id.tgid, (uint32_t)kept))
                        leave(t, &task);
                else
                        t->items[kept++] = task;
        }
        t->count = kept;
        perf_threads_clean(t->threads, is_known, t);
}

static void close_unused(struct perf_tasks *t)
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

enum status perf_tasks_list(struct perf_tasks *t, struct error *err)
{
        _cleanup_closedir_ DIR *dir = opendir("/proc");
        const struct dirent *e;

        if (!dir)
                return error_os(err, errno, "cannot list '/proc'");
        t->found_count = 0;
        t->list++;
        while ((e = readdir(dir))) {
                struct perf_task *task;
                uint32_t tgid;

                if (!parse_number(e->d_name, &tgid))
                        continue;
                task = find(t, tgid);
                if (task)
                        task->listed = t->list;
                if (task && (task->refused || (task->followed && task->opened + 1 != t->list)))
                        continue;
                if (t->found_count < LIMIT_AGENT_PROCESSES && is_wanted(t, dirfd(dir), e->d_name, tgid) &&
                    array_reserve(&t->found, &t->found_capacity, t->found_count))
                        t->found[t->found_count++] = tgid;
        }
        forget(t);
        close_unused(t);
        return ST_OK;
}

/* ---- step 3: open what is not followed ------------------------------------------------------- */

static enum status open_thread(struct perf_tasks *t, struct perf_task *task, uint32_t tid, struct error *err)
{
        size_t n = t->events->cpu_count;
        int *fds = reallocarray(task->fds, task->fd_count + n, sizeof *fds);
        enum status st;

        if (!fds)
                return error_no_memory(err);
        task->fds = fds;
        st = perf_events_open(t->events, (pid_t)tid, fds + task->fd_count, err);
        if (st)
                return st;
        task->fd_count += n;
        perf_threads_add(t->threads, tid, task->id.tgid);
        return ST_OK;
}

/* All threads that have no event. The first failure ends it; a thread that ended meanwhile is none. */
static enum status open_threads(struct perf_tasks *t, struct perf_task *task, int proc_fd, struct error *err)
{
        int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;
        enum status st = ST_OK;

        if (!dir) {
                if (fd >= 0)
                        close(fd);
                return error_set(err, ST_NOT_FOUND, "process %u has ended", task->id.tgid);
        }
        while ((e = readdir(dir)) && (!st || st == ST_NOT_FOUND)) {
                uint32_t tid;

                if (parse_number(e->d_name, &tid) && !perf_threads_has(t->threads, tid))
                        st = open_thread(t, task, tid, err);
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/*
 * A process that was opened at the last list is looked at once more: a thread
 * may have been started by one that was not open yet.
 */
static enum status follow(struct perf_tasks *t, uint32_t tgid, bool lost, struct error *err)
{
        struct perf_task *task = find(t, tgid);
        const struct perf_task *parent;
        _cleanup_close_ int fd = -1;
        struct process_stat stat;
        enum status st;
        bool again = task && task->opened && task->opened + 1 == t->list;

        if (task && (task->refused || (task->followed && !again)))
                return ST_OK; /* its records came in step 2 */
        fd = open_directory(tgid);
        if (fd < 0 || !process_read_stat(fd, &stat))
                return error_set(err, ST_NOT_FOUND, "process %u has ended", tgid);
        if (stat.state == 'Z' || (stat.kernel_thread && !t->events->kernel))
                return ST_OK;
        task = find_or_add(t, tgid);
        if (!task)
                return error_set(err, ST_BUSY, "%zu processes are followed, which is the limit", t->count);
        parent = find(t, stat.parent);
        if (lost && !again && parent && parent->followed) {
                task->followed = true;
                return ST_OK;
        }
        st = open_threads(t, task, fd, err);
        if (!again)
                task->opened = t->list;
        task->followed = task->fd_count > 0;
        task->refused = st == ST_OS;
        return st;
}

enum status perf_tasks_follow(struct perf_tasks *t, bool lost, struct error *err)
{
        enum status first = ST_OK;

        for (size_t i = 0; i < t->found_count; i++) {
                struct error e;
                enum status st = follow(t, t->found[i], lost, &e);

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
