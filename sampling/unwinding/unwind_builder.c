/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/unwinding/unwind_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "sampling/unwinding/unwind_result.h"
#include "sandbox/privileges.h"
#include "sandbox/worker.h"
#include "sandbox/worker_health.h"

struct job {
        uint32_t ticket;
        int in, out;
        enum unwind_build_end end;
};

struct job_list {
        struct job *items; /* owned */
        size_t count, capacity;
};

struct unwind_builder {
        struct fork_server *fork_server; /* used by the thread only, as is health */
        struct worker_health health;
        pthread_t thread;
        bool started;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct job_list requested, done;
        size_t put_count; /* requests whose result was not taken yet; done has room for all of them */
        bool ending;
        atomic_bool cancel;
        int event;
};

static bool append_job(struct job_list *l, struct job j)
{
        if (!array_reserve(&l->items, &l->capacity, l->count))
                return false;
        l->items[l->count++] = j;
        return true;
}

static void close_job(struct job *j)
{
        if (j->in >= 0)
                close(j->in);
        if (j->out >= 0)
                close(j->out);
        j->in = j->out = -1;
}

/* ---- the thread -------------------------------------------------------------- */

static enum status run_builder_worker(struct unwind_builder *b, struct job *jobs, size_t count, struct error *err)
{
        static const char *const args[] = { "unwind", NULL };
        int fds[2 * WORKER_UNWIND_FILES];
        const struct worker_job job = { .args = args,
                                        .fds = fds,
                                        .fd_count = 2 * count,
                                        .memory_bytes = LIMIT_AGENT_UNWIND_WORKER_BYTES,
                                        .cpu_s = LIMIT_AGENT_UNWIND_WORKER_CPU_S,
                                        .cancel = &b->cancel };

        for (size_t i = 0; i < count; i++) {
                if (jobs[i].out >= 0)
                        close(jobs[i].out);
                jobs[i].out = memfd_create("unwind-table", MFD_CLOEXEC);
                fds[2 * i] = jobs[i].out < 0 ? -1 : jobs[i].in;
                fds[2 * i + 1] = jobs[i].out;
        }
        return fork_server_run(b->fork_server, &job, err);
}

/* Run one worker for these files. @return whether they should be retried one by one. */
static bool try_builder_worker(struct unwind_builder *b, struct job *jobs, size_t count)
{
        struct error err;
        enum status st = run_builder_worker(b, jobs, count, &err);
        bool missing = worker_health_note(&b->health, st, &err);

        for (size_t i = 0; i < count; i++)
                jobs[i].end = missing || jobs[i].out < 0 ? UNWIND_BUILD_NO_WORKER
                              : st                       ? UNWIND_BUILD_FAILED
                                                         : UNWIND_BUILD_READ;
        return st && !missing;
}

static void discard_useless_result(struct job *j)
{
        struct stat st;

        if (j->out >= 0 && (j->end != UNWIND_BUILD_READ || fstat(j->out, &st) < 0 || st.st_size == 0)) {
                close(j->out);
                j->out = -1;
        }
}

static void build_tables(struct unwind_builder *b, struct job *jobs, size_t count)
{
        bool failed = try_builder_worker(b, jobs, count);

        for (size_t i = 0; failed && i < count && !b->cancel; i++)
                (void)try_builder_worker(b, &jobs[i], 1);
        for (size_t i = 0; i < count; i++)
                discard_useless_result(&jobs[i]);
}

enum status unwind_builder_try(struct fork_server *fork_server, int fd, struct error *err)
{
        struct unwind_builder b = { .fork_server = fork_server };
        struct job job = { .in = fd, .out = -1 };
        enum status st = run_builder_worker(&b, &job, 1, err);
        struct stat info;

        if (!st && (job.out < 0 || fstat(job.out, &info) < 0 || info.st_size == 0))
                st = error_set(err, ST_OS, "the worker built no table");
        if (job.out >= 0)
                close(job.out);
        return st;
}

/* FIFO order: a steady stream of new programs must not starve a request. */
static size_t take_requested_jobs(struct job_list *requested, struct job jobs[static WORKER_UNWIND_FILES])
{
        size_t count = requested->count < WORKER_UNWIND_FILES ? requested->count : WORKER_UNWIND_FILES;

        memcpy(jobs, requested->items, count * sizeof *jobs);
        requested->count -= count;
        memmove(requested->items, requested->items + count, requested->count * sizeof *jobs);
        return count;
}

static void *run_unwind_builder(void *context)
{
        struct unwind_builder *b = context;

        pthread_mutex_lock(&b->lock);
        while (!b->ending) {
                struct job jobs[WORKER_UNWIND_FILES];
                size_t count;
                uint64_t one = 1;

                if (!b->requested.count) {
                        pthread_cond_wait(&b->changed, &b->lock);
                        continue;
                }
                count = take_requested_jobs(&b->requested, jobs);
                pthread_mutex_unlock(&b->lock);
                build_tables(b, jobs, count);
                pthread_mutex_lock(&b->lock);
                for (size_t i = 0; i < count; i++) {
                        close(jobs[i].in);
                        jobs[i].in = -1;
                        b->done.items[b->done.count++] = jobs[i];
                }
                while (write(b->event, &one, sizeof one) < 0 && errno == EINTR)
                        ;
        }
        pthread_mutex_unlock(&b->lock);
        return NULL;
}

/* ---- API ---- */

enum status unwind_builder_create(struct fork_server *fork_server, struct unwind_builder **ret, struct error *err)
{
        struct unwind_builder *b = calloc(1, sizeof *b);
        int e;

        if (!b)
                return error_no_memory(err);
        b->fork_server = fork_server;
        b->health.missing = "no unwind tables are built, so code without frame pointers has incomplete stacks";
        pthread_mutex_init(&b->lock, NULL);
        pthread_cond_init(&b->changed, NULL);
        b->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (b->event < 0) {
                e = errno;
                unwind_builder_destroy(b);
                return error_os(err, e, "cannot make an event descriptor");
        }
        *ret = b;
        return ST_OK;
}

void unwind_builder_destroy(struct unwind_builder *b)
{
        if (!b)
                return;
        if (b->started) {
                struct timespec until;

                clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_sec += LIMIT_AGENT_THREAD_WAIT_S;
                atomic_store(&b->cancel, true);
                pthread_mutex_lock(&b->lock);
                b->ending = true;
                pthread_cond_signal(&b->changed);
                pthread_mutex_unlock(&b->lock);
                if (pthread_clockjoin_np(b->thread, NULL, CLOCK_MONOTONIC, &until))
                        return; /* the thread uses b until a file that does not respond is closed */
        }
        for (size_t i = 0; i < b->requested.count; i++)
                close_job(&b->requested.items[i]);
        for (size_t i = 0; i < b->done.count; i++)
                close_job(&b->done.items[i]);
        free(b->requested.items);
        free(b->done.items);
        if (b->event >= 0)
                close(b->event);
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->lock);
        free(b);
}

/* Start the thread on demand: by then the agent has dropped its privileges, which are per thread. */
static bool start_builder_thread(struct unwind_builder *b)
{
        if (!b->started && pthread_create(&b->thread, NULL, run_unwind_builder, b) == 0) {
                pthread_setname_np(b->thread, "unwind-tables");
                b->started = true;
        }
        return b->started;
}

bool unwind_builder_request(struct unwind_builder *b, uint32_t ticket, int fd)
{
        bool added;

        pthread_mutex_lock(&b->lock);
        added = start_builder_thread(b) && array_reserve(&b->done.items, &b->done.capacity, b->put_count) &&
                append_job(&b->requested, (struct job){ .ticket = ticket, .in = fd, .out = -1 });
        b->put_count += added;
        pthread_cond_signal(&b->changed);
        pthread_mutex_unlock(&b->lock);
        if (!added)
                close(fd);
        return added;
}

int unwind_builder_fd(const struct unwind_builder *b)
{
        return b->event;
}

bool unwind_builder_take(struct unwind_builder *b, struct unwind_built *ret)
{
        uint64_t ignored;
        bool taken = false;

        if (read(b->event, &ignored, sizeof ignored) < 0 && errno != EAGAIN)
                return false;
        pthread_mutex_lock(&b->lock);
        if (b->done.count) {
                const struct job *j = &b->done.items[--b->done.count];

                *ret = (struct unwind_built){ .ticket = j->ticket, .fd = j->out, .end = j->end };
                b->put_count--;
                taken = true;
        }
        pthread_mutex_unlock(&b->lock);
        return taken;
}

#define FIRST_FD 3

static enum status build_unwind_result(int in, int out, struct error *err)
{
        _cleanup_unwind_rules_ struct unwind_rules rules = { 0 };
        _cleanup_unwind_table_ struct unwind_table table = { 0 };
        struct runtime_symbols runtimes;
        struct elf_image image;
        enum status st = elf_image_from_fd(in, "mapped file", &image, err);

        if (st)
                return st;
        st = unwind_rules_init(&rules, err);
        if (!st)
                st = unwind_table_build(&image, &rules, &table, err);
        if (!st)
                runtime_symbols_read(&image, &runtimes);
        if (!st)
                st = unwind_result_write(out, &table, &rules, &runtimes, err);
        elf_image_close(&image);
        return st;
}

int worker_unwind(void)
{
        struct error err;
        enum status st = privileges_drop_all(&err);

        /* It was started as /proc/self/exe, which is a meaningless name in process lists and profiles. */
        prctl(PR_SET_NAME, "cairn-unwind");
        if (!st)
                st = worker_confine(WORKER_NEEDS_NOTHING, &err);
        if (st)
                return worker_not_started(&err);
        for (int i = 0; !st && i < WORKER_UNWIND_FILES; i++) {
                int in = FIRST_FD + 2 * i;

                if (fcntl(in, F_GETFD) >= 0 && build_unwind_result(in, in + 1, &err) == ST_NO_MEMORY)
                        st = ST_NO_MEMORY;
        }
        return worker_exit_code(st);
}
