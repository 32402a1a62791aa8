/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk of the trees. The walking thread compares each file with the index and queues new and changed ones; a few
 * threads run workers that inspect them; results are committed in batches. Then deleted files are removed from the
 * index.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "archive/file_magic.h"
#include "archive/members.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "common/threads/condition.h"
#include "elf-image/elf_image.h"
#include "package-trees/inspector.h"
#include "package-trees/package_scan_internal.h"

#define RUN_QUEUE_MAX 256
#define RUN_COMMIT_COUNT 64      /* results per commit, and */
#define RUN_COMMIT_NS 1000000000 /* maximum delay of a commit */

struct queued_file {
        char *path; /* owned */
        struct stat info;
};

struct package_scan_run {
        struct package_scan *s;
        pthread_mutex_t lock;
        pthread_cond_t changed; /* the queue or is_walked changed */
        struct queued_file queue[RUN_QUEUE_MAX];
        size_t first, count;
        bool is_walked; /* the walk ended; the queue no longer grows */
        struct package_result results[RUN_COMMIT_COUNT];
        size_t result_count, item_count;
        int64_t committed_ns, told_ns;
        uint64_t seen, read, archives, objects, errors;
};

/* ---- inspecting queued files ---- */

#define COMMIT_OBJECTS 100000 /* objects and sources per commit */

#define SCAN_ERRORS(reason)                                                                                            \
        METRIC_COUNTER("cairn_scan_errors_total", "Files and members that could not be read.", "reason=\"" reason "\"")

static struct metric looked_at =
        METRIC_COUNTER("cairn_scan_files_read_total", "New or changed files that were inspected.", "");
static struct metric archives = METRIC_COUNTER("cairn_scan_archives_read_total", "Archives among these files.", "");
static struct metric damaged = SCAN_ERRORS("damaged");
static struct metric too_big = SCAN_ERRORS("too_big");
static struct metric unreadable = SCAN_ERRORS("unreadable");
static struct metric odd_path = SCAN_ERRORS("odd_path");
static struct metric unwritten = METRIC_COUNTER("cairn_scan_unwritten_total",
                                                "Files that were read but could not be added to the scan's index.", "");
static struct metric broken = SCAN_ERRORS("broken_member");

/* State of one inspection thread. */
struct inspection_thread {
        struct package_scan_run *r;
        struct queued_file job;
        enum package_file_class class;
};

static void register_inspection_metrics(void)
{
        struct metric *all[] = {
                &looked_at, &archives, &damaged, &too_big, &unreadable, &odd_path, &broken, &unwritten
        };

        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                metric_register(all[i]);
}

static void count_scan_error(struct package_scan_run *r, const char *path, enum status st, const struct error *why)
{
        metric_add(st == ST_TOO_BIG ? &too_big : st == ST_OS || st == ST_NOT_FOUND ? &unreadable : &damaged, 1);
        log_warn("scan", "'%s': %s, ignoring", path, why->text);
        r->errors++;
}

/* ---- results ---- */

static void commit_results(struct package_scan_run *r)
{
        struct package_result batch[RUN_COMMIT_COUNT];
        size_t count = r->result_count, failed = 0;
        struct error err;

        memcpy(batch, r->results, count * sizeof *batch);
        assert(count <= RUN_COMMIT_COUNT);
        r->result_count = r->item_count = 0;
        r->committed_ns = monotonic_ns();
        if (!count)
                return;
        pthread_mutex_unlock(&r->lock);
        if (package_index_put(r->s->index, batch, count, &err)) {
                /* Commit each result separately, so that one that cannot be written does not block the others on every
                 * walk. */
                for (size_t i = 0; i < count; i++)
                        failed += package_index_put(r->s->index, &batch[i], 1, &err) != ST_OK;
                metric_add(&unwritten, (int64_t)failed);
        }
        if (failed)
                log_error("scan", "%s; %zu files, '%s' among them, are inspected again on the next walk", err.text,
                          failed, batch[0].file.path);
        for (size_t i = 0; i < count; i++) {
                free((char *)(uintptr_t)batch[i].file.path);
                package_contents_deinit(&batch[i].contents);
        }
        pthread_mutex_lock(&r->lock);
}

/* Takes path and contents. */
static void add_package_result(struct package_scan_run *r, char *path, const struct stat *info,
                               enum package_file_class class, bool is_of_use, struct package_contents *contents)
{
        struct package_result *result;

        pthread_mutex_lock(&r->lock);
        while (r->result_count == RUN_COMMIT_COUNT)
                commit_results(r);
        result = &r->results[r->result_count++];
        result->file = package_file_from_stat(info);
        result->file.class = class;
        result->file.is_of_use = is_of_use;
        result->file.path = path;
        result->contents = *contents;
        *contents = (struct package_contents){ 0 };
        r->item_count += result->contents.object_count + result->contents.source_count;
        r->read++;
        r->archives += class == PACKAGE_FILE_ARCHIVE && is_of_use;
        r->objects += result->contents.object_count;
        if (r->item_count > COMMIT_OBJECTS || monotonic_ns() - r->committed_ns > RUN_COMMIT_NS)
                commit_results(r);
        pthread_mutex_unlock(&r->lock);
}

/* ---- inspection threads ---- */

enum look { LOOK_NOTHING, LOOK_FILE, LOOK_END };

/* Open a queued file; a file that is neither ELF nor an archive is recorded as useless. @param fd_ret with LOOK_FILE.
 */
static enum look open_queued_file(struct inspection_thread *t, int *fd_ret)
{
        struct error err;
        _cleanup_close_ int fd = -1;
        bool is_elf, is_archive;
        enum status st = package_trees_open(&t->r->s->trees, t->job.path, PACKAGE_LINKS_NONE, &fd, &t->job.info, &err);

        if (st) {
                if (st != ST_NOT_FOUND) {
                        pthread_mutex_lock(&t->r->lock);
                        count_scan_error(t->r, t->job.path, st, &err);
                        pthread_mutex_unlock(&t->r->lock);
                }
                free(steal_ptr(t->job.path));
                return LOOK_NOTHING;
        }
        metric_add(&looked_at, 1);
        is_elf = elf_magic_at_fd(fd);
        is_archive = !is_elf && (archive_name(t->job.path) || archive_name_is_compressed_elf(t->job.path)) &&
                     archive_magic_at_fd(fd);
        t->class = is_archive ? PACKAGE_FILE_ARCHIVE : PACKAGE_FILE_ELF;
        if (!is_elf && !is_archive) {
                add_package_result(t->r, steal_ptr(t->job.path), &t->job.info, PACKAGE_FILE_ELF, false,
                                   &(struct package_contents){ 0 });
                return LOOK_NOTHING;
        }
        metric_add(&archives, is_archive);
        *fd_ret = steal_fd(&fd);
        return LOOK_FILE;
}

/* @param wait wait until a file is queued. */
static enum look dequeue_file(struct inspection_thread *t, bool wait)
{
        struct package_scan_run *r = t->r;
        enum look ret = LOOK_NOTHING;

        pthread_mutex_lock(&r->lock);
        while (wait && !r->count && !r->is_walked && !atomic_load(&r->s->stop))
                pthread_cond_wait(&r->changed, &r->lock);
        if (atomic_load(&r->s->stop) || (!r->count && r->is_walked)) {
                ret = LOOK_END;
        } else if (r->count) {
                t->job = r->queue[r->first];
                r->first = (r->first + 1) % RUN_QUEUE_MAX;
                r->count--;
                pthread_cond_broadcast(&r->changed);
                ret = LOOK_FILE;
        }
        pthread_mutex_unlock(&r->lock);
        return ret;
}

/* The next file for a worker. Does not wait, so that the worker exits when the queue is empty. */
static int next_inspected_file(void *context)
{
        struct inspection_thread *t = context;
        int fd;

        while (dequeue_file(t, false) == LOOK_FILE)
                if (open_queued_file(t, &fd) == LOOK_FILE)
                        return fd;
        return -1;
}

static void on_file_inspected(void *context, struct package_contents *contents, enum status st, const struct error *why)
{
        struct inspection_thread *t = context;
        struct package_scan_run *r = t->r;

        pthread_mutex_lock(&r->lock);
        if (st)
                count_scan_error(r, t->job.path, st, why);
        if (contents->odd_paths) {
                metric_add(&odd_path, contents->odd_paths);
                log_warn("scan", "'%s': %s", t->job.path,
                         COUNTED(contents->odd_paths, "member has a path that leaves the archive, ignoring it",
                                 "members have paths that leave the archive, ignoring them"));
        }
        if (contents->broken) {
                metric_add(&broken, contents->broken);
                log_warn("scan", "'%s': %u ELF files in it are damaged, ignoring them", t->job.path, contents->broken);
        }
        pthread_mutex_unlock(&r->lock);
        add_package_result(r, steal_ptr(t->job.path), &t->job.info, t->class, !st || contents->object_count, contents);
}

/* The first file is opened before its worker is started. */
struct first_file {
        struct inspection_thread *t;
        int fd;
};

static int on_next_file(void *context)
{
        struct first_file *f = context;

        return f->fd >= 0 ? steal_fd(&f->fd) : next_inspected_file(f->t);
}

static void on_file_done(void *context, struct package_contents *contents, enum status st, const struct error *why)
{
        struct first_file *f = context;

        on_file_inspected(f->t, contents, st, why);
}

static void *inspect_queued_files(void *arg)
{
        struct inspection_thread t = { .r = arg };
        struct package_scan *s = t.r->s;
        struct first_file f = { .t = &t, .fd = -1 };
        const struct inspector_options o = { .scratch_dir = s->scratch_dir,
                                             .cancel = &s->stop,
                                             .next = on_next_file,
                                             .done = on_file_done,
                                             .context = &f };
        struct error err;

        while (dequeue_file(&t, true) == LOOK_FILE) {
                if (open_queued_file(&t, &f.fd) != LOOK_FILE)
                        continue;
                if (inspector_run(&o, &err))
                        log_error("scan", "'%s': %s", t.job.path ? t.job.path : "", err.text);
                if (f.fd >= 0)
                        close(steal_fd(&f.fd));
                free(steal_ptr(t.job.path));
        }
        return NULL;
}

#define THREADS_MAX 4
#define PROGRESS_NS 10000000000ll
#define SLICE 256 /* files checked per slice */

static struct metric seen =
        METRIC_COUNTER("cairn_scan_files_seen_total", "Files seen on walks of the scanned trees.", "");
static struct metric gone = METRIC_COUNTER("cairn_scan_files_gone_total", "Indexed files that were deleted.", "");
static struct metric rounds = METRIC_COUNTER("cairn_scan_rounds_total", "Completed walks.", "");
static struct metric running = METRIC_GAUGE("cairn_scan_running", "Whether the trees are being walked.", "");
static struct metric seconds = METRIC_GAUGE("cairn_scan_seconds", "Duration of the last walk in whole seconds.", "");
static struct metric files =
        METRIC_GAUGE("cairn_scan_files", "Known files of the trees, including irrelevant ones.", "");
static struct metric objects = METRIC_GAUGE("cairn_scan_objects", "Files and members of archives with a build-id.", "");
static struct metric sources =
        METRIC_GAUGE("cairn_scan_sources", "Other archive members, which may be source files.", "");

void package_scan_run_register_metrics(void)
{
        struct metric *all[] = { &seen, &gone, &rounds, &running, &seconds, &files, &objects, &sources };

        register_inspection_metrics();
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                metric_register(all[i]);
}

/* ---- walking ---- */

/* Caller holds the lock. */
static void log_progress(struct package_scan_run *r)
{
        int64_t now = monotonic_ns();

        if (now - r->told_ns < PROGRESS_NS)
                return;
        r->told_ns = now;
        log_info("scan", "%s, %" PRIu64 " read, %" PRIu64 " of them archives, %s, %s",
                 COUNTED(r->seen, "file seen", "files seen"), r->read, r->archives,
                 COUNTED(r->objects, "object", "objects"), COUNTED(r->errors, "error so far", "errors so far"));
}

/* Wait up to a second for a change of the queue or is_walked, then commit and log if due. Caller holds the lock. */
static void wait_for_queue_change(struct package_scan_run *r)
{
        atomic_store(&r->s->moved_ns, monotonic_ns());
        condition_wait_until(&r->changed, &r->lock, monotonic_ns() + 1000000000);
        if (r->result_count && monotonic_ns() - r->committed_ns > RUN_COMMIT_NS)
                commit_results(r);
        log_progress(r);
}

static bool is_in_own_folder(const struct package_scan *s, const char *path)
{
        size_t n = strlen(s->own_dir);

        return strncmp(path, s->own_dir, n) == 0 && path[n] == '/';
}

static void on_walk_folder(void *context, const char *path)
{
        struct package_scan_run *r = context;

        atomic_store(&r->s->moved_ns, monotonic_ns());
        pthread_mutex_lock(&r->s->at_lock);
        snprintf(r->s->at, sizeof r->s->at, "%s", path);
        pthread_mutex_unlock(&r->s->at_lock);
}

static enum status on_walk_file(void *context, const char *path, const struct stat *info, struct error *err)
{
        struct package_scan_run *r = context;
        struct queued_file job = { .info = *info };
        bool is_known;
        enum status st;

        atomic_store(&r->s->moved_ns, monotonic_ns());
        if (is_in_own_folder(r->s, path))
                return ST_OK;
        st = package_index_is_known(r->s->index, path, info, &is_known, err);
        if (st)
                return st;
        metric_add(&seen, 1);
        pthread_mutex_lock(&r->lock);
        r->seen++;
        while (!is_known && r->count == RUN_QUEUE_MAX && !atomic_load(&r->s->stop))
                wait_for_queue_change(r);
        if (atomic_load(&r->s->stop))
                st = error_set(err, ST_BUSY, "the service is stopping");
        else if (!is_known && !(job.path = strdup(path)))
                st = error_no_memory(err);
        if (job.path) {
                assert(r->count < RUN_QUEUE_MAX);
                r->queue[(r->first + r->count++) % RUN_QUEUE_MAX] = job;
                pthread_cond_broadcast(&r->changed);
        }
        pthread_mutex_unlock(&r->lock);
        return st;
}

static void on_walk_problem(void *context, const char *path, const struct error *why)
{
        struct package_scan_run *r = context;

        pthread_mutex_lock(&r->lock);
        count_scan_error(r, path, ST_OS, why);
        pthread_mutex_unlock(&r->lock);
}

/* ---- deleted files ---- */

/* Whether the file was deleted; false while its tree is not mounted. */
static bool is_file_gone(const struct package_trees *t, const char *path)
{
        struct stat info;

        if (!package_trees_contain(t, path))
                return true;
        if (lstat(path, &info) == 0)
                return !S_ISREG(info.st_mode);
        if (errno != ENOENT && errno != ENOTDIR)
                return false;
        for (size_t i = 0; i < t->count; i++) /* an unmounted tree does not mean deleted files */
                if (access(t->roots[i], F_OK) != 0)
                        return false;
        return true;
}

static enum status remove_gone_files(struct package_scan_run *r, uint64_t *count_ret, struct error *err)
{
        struct package_numbered_file slice[SLICE];
        uint32_t numbers[SLICE], after = 0;
        size_t count = SLICE, n;
        enum status st = ST_OK;

        while (!st && count == SLICE && !atomic_load(&r->s->stop)) {
                st = package_index_next_files(r->s->index, after, slice, SLICE, &count, err);
                if (st)
                        break;
                n = 0;
                atomic_store(&r->s->moved_ns, monotonic_ns());
                for (size_t i = 0; i < count; i++) {
                        after = slice[i].number;
                        if (is_file_gone(&r->s->trees, slice[i].path))
                                numbers[n++] = after;
                        free(slice[i].path);
                }
                if (n)
                        st = package_index_remove(r->s->index, numbers, n, err);
                if (!st)
                        *count_ret += n;
        }
        return st;
}

/* ---- the walk ---- */

static unsigned start_inspection_threads(struct package_scan_run *r, pthread_t threads[static THREADS_MAX])
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned want = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (unsigned)cores, count = 0;

        while (count < want && pthread_create(&threads[count], NULL, inspect_queued_files, r) == 0)
                pthread_setname_np(threads[count++], "scan-look");
        return count;
}

static void walk_trees(struct package_scan_run *r)
{
        const struct package_walk walk = {
                .file = on_walk_file, .problem = on_walk_problem, .folder = on_walk_folder, .context = r
        };
        struct error err;

        for (size_t i = 0; i < r->s->trees.count && !atomic_load(&r->s->stop); i++)
                if (package_tree_walk(r->s->trees.roots[i], &walk, &err) && !atomic_load(&r->s->stop))
                        on_walk_problem(r, r->s->trees.roots[i], &err);
}

static void end_inspection_threads(struct package_scan_run *r, const pthread_t *threads, unsigned count)
{
        pthread_mutex_lock(&r->lock);
        r->is_walked = true;
        pthread_cond_broadcast(&r->changed);
        while (r->count && !atomic_load(&r->s->stop))
                wait_for_queue_change(r);
        pthread_mutex_unlock(&r->lock);
        for (unsigned i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
        pthread_mutex_lock(&r->lock);
        commit_results(r);
        pthread_mutex_unlock(&r->lock);
        for (; r->count; r->count--, r->first = (r->first + 1) % RUN_QUEUE_MAX)
                free(r->queue[r->first].path);
}

static void set_index_gauges(struct package_scan *s)
{
        struct package_scan_counts counts;

        if (package_index_count(s->index, &counts, NULL))
                return;
        metric_set(&files, (int64_t)counts.files);
        metric_set(&objects, (int64_t)counts.objects);
        metric_set(&sources, (int64_t)counts.sources);
}

void package_scan_run_walk(struct package_scan *s, bool *news_ret)
{
        _cleanup_free_ struct package_scan_run *r = calloc(1, sizeof *r);
        int64_t start = monotonic_ns();
        pthread_t threads[THREADS_MAX];
        uint64_t gone_count = 0;
        struct error err;
        unsigned count;

        *news_ret = false;
        if (!r) {
                log_error("scan", "not enough memory to walk the trees");
                return;
        }
        *r = (struct package_scan_run){ .s = s, .committed_ns = start, .told_ns = start };
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->changed, NULL);
        metric_set(&running, 1);
        atomic_store(&s->moved_ns, start);
        set_index_gauges(s);
        count = start_inspection_threads(r, threads);
        if (count)
                walk_trees(r);
        else
                log_error("scan", "cannot start a thread");
        end_inspection_threads(r, threads, count);
        if (remove_gone_files(r, &gone_count, &err))
                log_error("scan", "%s", err.text);
        metric_add(&gone, (int64_t)gone_count);
        set_index_gauges(s);
        metric_set(&seconds, (monotonic_ns() - start) / 1000000000);
        metric_set(&running, 0);
        atomic_store(&s->moved_ns, 0);
        if (!atomic_load(&s->stop)) {
                metric_add(&rounds, 1);
                log_info("scan", "%s, %" PRIu64 " read, %" PRIu64 " of them archives, %s, %s, %s, in %" PRId64 " ms",
                         COUNTED(r->seen, "file seen", "files seen"), r->read, r->archives,
                         COUNTED(r->objects, "object found", "objects found"),
                         COUNTED(gone_count, "file deleted", "files deleted"), COUNTED(r->errors, "error", "errors"),
                         (monotonic_ns() - start) / 1000000);
        }
        *news_ret = r->objects > 0;
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
}
