/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at queued files, and committing what was found in them, many at a time. */
#include "archive/members.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/metrics.h"
#include "elf-image/elf_image.h"
#include "scan/inspector.h"
#include "scan/round_internal.h"

#define COMMIT_OBJECTS 100000 /* objects and sources that wait for a commit at most */

static struct metric looked_at = METRIC_COUNTER("cairn_scan_files_read_total", "Files that were new or changed, and were opened.", "");
static struct metric archives = METRIC_COUNTER("cairn_scan_archives_read_total", "Archives among them.", "");
static struct metric damaged = METRIC_COUNTER("cairn_scan_errors_total", "What could not be read on walks.", "reason=\"damaged\"");
static struct metric too_big = METRIC_COUNTER("cairn_scan_errors_total", "What could not be read on walks.", "reason=\"too_big\"");
static struct metric unreadable = METRIC_COUNTER("cairn_scan_errors_total", "What could not be read on walks.", "reason=\"unreadable\"");
static struct metric odd_path = METRIC_COUNTER("cairn_scan_errors_total", "What could not be read on walks.", "reason=\"odd_path\"");
static struct metric unwritten = METRIC_COUNTER("cairn_scan_unwritten_total", "Files that were read and could not be put in the scan's index.", "");
static struct metric broken = METRIC_COUNTER("cairn_scan_errors_total", "What could not be read on walks.", "reason=\"broken_member\"");

/* What one thread works on. */
struct looker {
        struct round *r;
        struct job job;
        enum found_class class;
};

void round_look_metrics(void)
{
        struct metric *all[] = { &looked_at, &archives, &damaged, &too_big, &unreadable, &odd_path, &broken, &unwritten };

        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                metric_register(all[i]);
}

void round_count_error(struct round *r, const char *path, enum status st, const struct error *why)
{
        metric_add(st == ST_TOO_BIG ? &too_big : st == ST_OS || st == ST_NOT_FOUND ? &unreadable : &damaged, 1);
        log_warn("scan", "'%s': %s, ignoring", path, why->text);
        r->errors++;
}

/* ---- results ---- */

void round_commit(struct round *r)
{
        struct scan_result batch[ROUND_COMMIT_COUNT];
        size_t count = r->result_count, failed = 0;
        struct error err;

        memcpy(batch, r->results, count * sizeof *batch);
        r->result_count = r->item_count = 0;
        r->committed_ns = monotonic_ns();
        if (!count)
                return;
        pthread_mutex_unlock(&r->lock);
        if (scan_index_put(r->s->index, batch, count, &err)) {
                /* Each on its own: one that cannot be written must not keep the others out, on this walk and on all later ones. */
                for (size_t i = 0; i < count; i++)
                        failed += scan_index_put(r->s->index, &batch[i], 1, &err) != ST_OK;
                metric_add(&unwritten, (int64_t)failed);
        }
        if (failed)
                log_error("scan", "%s; %zu files, '%s' among them, are looked at again on the next walk", err.text, failed,
                          batch[0].file.path);
        for (size_t i = 0; i < count; i++) {
                free((char *)(uintptr_t)batch[i].file.path);
                found_deinit(&batch[i].found);
        }
        pthread_mutex_lock(&r->lock);
}

/* Takes the path and what was found. */
static void add_result(struct round *r, char *path, const struct stat *info, enum found_class class, bool is_of_use,
                       struct found *found)
{
        struct scan_result *result;

        pthread_mutex_lock(&r->lock);
        while (r->result_count == ROUND_COMMIT_COUNT)
                round_commit(r);
        result = &r->results[r->result_count++];
        result->file = scan_file_of(info);
        result->file.class = class;
        result->file.is_of_use = is_of_use;
        result->file.path = path;
        result->found = *found;
        *found = (struct found){ 0 };
        r->item_count += result->found.object_count + result->found.source_count;
        r->read++;
        r->archives += class == FOUND_ARCHIVE && is_of_use;
        r->objects += result->found.object_count;
        if (r->item_count > COMMIT_OBJECTS || monotonic_ns() - r->committed_ns > ROUND_COMMIT_NS)
                round_commit(r);
        pthread_mutex_unlock(&r->lock);
}

/* ---- looking at files ---- */

enum look { LOOK_NOTHING, LOOK_FILE, LOOK_END };

/* Open a queued file; one that is neither ELF nor an archive is done with. @param fd_ret with LOOK_FILE. */
static enum look open_job(struct looker *l, int *fd_ret)
{
        struct error err;
        _cleanup_close_ int fd = -1;
        bool is_elf, is_archive;
        enum status st = scan_trees_open(&l->r->s->trees, l->job.path, SCAN_LINKS_NONE, &fd, &l->job.info, &err);

        if (st) {
                if (st != ST_NOT_FOUND) {
                        pthread_mutex_lock(&l->r->lock);
                        round_count_error(l->r, l->job.path, st, &err);
                        pthread_mutex_unlock(&l->r->lock);
                }
                free(steal_ptr(l->job.path));
                return LOOK_NOTHING;
        }
        metric_add(&looked_at, 1);
        is_elf = elf_magic_at_fd(fd);
        is_archive = !is_elf && archive_name(l->job.path) && archive_magic_at_fd(fd);
        l->class = is_archive ? FOUND_ARCHIVE : FOUND_ELF;
        if (!is_elf && !is_archive) {
                add_result(l->r, steal_ptr(l->job.path), &l->job.info, FOUND_ELF, false, &(struct found){ 0 });
                return LOOK_NOTHING;
        }
        metric_add(&archives, is_archive);
        *fd_ret = steal_fd(&fd);
        return LOOK_FILE;
}

/* @param wait for more to be queued. */
static enum look take_job(struct looker *l, bool wait)
{
        struct round *r = l->r;
        enum look ret = LOOK_NOTHING;

        pthread_mutex_lock(&r->lock);
        while (wait && !r->count && !r->is_walked && !atomic_load(&r->s->stop))
                pthread_cond_wait(&r->changed, &r->lock);
        if (atomic_load(&r->s->stop) || (!r->count && r->is_walked)) {
                ret = LOOK_END;
        } else if (r->count) {
                l->job = r->queue[r->first];
                r->first = (r->first + 1) % ROUND_QUEUE_MAX;
                r->count--;
                pthread_cond_broadcast(&r->changed);
                ret = LOOK_FILE;
        }
        pthread_mutex_unlock(&r->lock);
        return ret;
}

/* The next file for a worker; it does not wait for one to be queued, so that the worker goes. */
static int next_file(void *context)
{
        struct looker *l = context;
        int fd;

        while (take_job(l, false) == LOOK_FILE)
                if (open_job(l, &fd) == LOOK_FILE)
                        return fd;
        return -1;
}

static void file_done(void *context, struct found *found, enum status st, const struct error *why)
{
        struct looker *l = context;
        struct round *r = l->r;

        pthread_mutex_lock(&r->lock);
        if (st)
                round_count_error(r, l->job.path, st, why);
        if (found->odd_paths) {
                metric_add(&odd_path, found->odd_paths);
                log_warn("scan", "'%s': %u members have paths that leave the archive, ignoring them", l->job.path,
                         found->odd_paths);
        }
        if (found->broken) {
                metric_add(&broken, found->broken);
                log_warn("scan", "'%s': %u ELF files in it are damaged, ignoring them", l->job.path, found->broken);
        }
        pthread_mutex_unlock(&r->lock);
        add_result(r, steal_ptr(l->job.path), &l->job.info, l->class, !st || found->object_count, found);
}

/* The first file of a worker is there before it is started. */
struct first {
        struct looker *l;
        int fd;
};

static int first_or_next(void *context)
{
        struct first *f = context;

        return f->fd >= 0 ? steal_fd(&f->fd) : next_file(f->l);
}

static void first_done(void *context, struct found *found, enum status st, const struct error *why)
{
        struct first *f = context;

        file_done(f->l, found, st, why);
}

void *round_look_at_files(void *arg)
{
        struct looker l = { .r = arg };
        struct scan *s = l.r->s;
        struct first f = { .l = &l, .fd = -1 };
        const struct inspector_options o = { .scratch_dir = s->scratch_dir, .cancel = &s->stop, .next = first_or_next,
                                             .done = first_done, .context = &f };
        struct error err;

        while (take_job(&l, true) == LOOK_FILE) {
                if (open_job(&l, &f.fd) != LOOK_FILE)
                        continue;
                if (inspector_run(&o, &err))
                        log_error("scan", "'%s': %s", l.job.path ? l.job.path : "", err.text);
                if (f.fd >= 0)
                        close(steal_fd(&f.fd));
                free(steal_ptr(l.job.path));
        }
        return NULL;
}

