/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two phases. discovery_refresh() brings the files of each job up to date: glob, drop what is gone, read what is new
 * or has changed. discovery_list_targets() builds the targets anew from the groups in the configuration and in these
 * files: relabelling, validation, removal of duplicates. The second is needed only when the first reports a change.
 *
 * A file keeps the groups of its last valid version. A file that cannot be read has a zeroed version, so that each
 * refresh tries again; an invalid one has its version, and is tried again when that changes. Texts of errors are kept,
 * so that each failure is logged once.
 *
 * Order: files, targets, counts.
 */
#include "scrape/discovery.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"

/* Identity and version of a file: differs after it was replaced or written. */
struct file_version {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec changed;
};

struct target_file {
        char *path;                  /* owned */
        struct file_version version; /* last version that was read or found invalid; inode 0: none */
        struct target_groups groups;
        bool is_found, was_read, has_failed;
        char error[240];
};

struct job_files {
        struct target_file *items; /* owned */
        size_t count, capacity;
        bool has_too_many;
        char error[240]; /* of a directory that cannot be listed; "" none */
};

struct discovery {
        const struct scrape_config *config;
        struct job_files *files; /* owned: one for each job */
        bool is_fresh;           /* targets were not listed yet */
        struct discovery_counts counts;
        char last_error[240]; /* last one logged for an address */
};

void target_list_deinit(struct target_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                scrape_target_deinit(&l->items[i]);
        free(l->items);
        *l = (struct target_list){ 0 };
}

static void free_target_file(struct target_file *f)
{
        free(f->path);
        target_groups_deinit(&f->groups);
}

enum status discovery_create(const struct scrape_config *c, struct discovery **ret, struct error *err)
{
        struct discovery *d = calloc(1, sizeof *d);

        if (d)
                d->files = calloc(c->job_count + 1, sizeof *d->files);
        if (!d || !d->files) {
                free(d);
                return error_no_memory(err);
        }
        d->config = c;
        d->is_fresh = true;
        *ret = d;
        return ST_OK;
}

void discovery_destroy(struct discovery *d)
{
        if (!d)
                return;
        for (size_t i = 0; i < d->config->job_count; i++) {
                for (size_t j = 0; j < d->files[i].count; j++)
                        free_target_file(&d->files[i].items[j]);
                free(d->files[i].items);
        }
        free(d->files);
        free(d);
}

/* ---- files ---- */

static bool read_file_version(const char *path, struct file_version *ret)
{
        struct stat s;

        if (stat(path, &s))
                return false;
        *ret = (struct file_version){ s.st_dev, s.st_ino, s.st_size, s.st_mtim };
        return true;
}

static bool is_same_version(const struct file_version *a, const struct file_version *b)
{
        return a->device == b->device && a->inode == b->inode && a->size == b->size &&
               a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static void log_file_failure(struct target_file *f, const struct error *err)
{
        if (!f->has_failed || strcmp(f->error, err->text) != 0)
                log_error("scrape", "%s; keeping its last targets", PRINTABLE(err->text));
        f->has_failed = true;
        snprintf(f->error, sizeof f->error, "%s", err->text);
}

static bool is_missing_file(int os_errno)
{
        return os_errno == ENOENT || os_errno == ENOTDIR;
}

/* Whether reading the same content again may succeed. */
static bool is_passing_failure(enum status st)
{
        return st == ST_OS || st == ST_NOT_FOUND || st == ST_NO_MEMORY || st == ST_BUSY;
}

/* Read a file that is new, has changed, or could not be read before. Returns whether its targets may differ. */
static bool refresh_target_file(struct target_file *f)
{
        struct target_groups groups = { 0 };
        struct file_version version;
        struct error err = { 0 };
        enum status st;

        if (!read_file_version(f->path, &version)) {
                if (is_missing_file(errno))
                        return false; /* removed since it was found; the next refresh drops it */
                error_os(&err, errno, "cannot read '%.150s'", f->path);
                log_file_failure(f, &err);
                f->version = (struct file_version){ 0 };
                return false;
        }
        if (f->version.inode && is_same_version(&version, &f->version))
                return false;
        st = target_file_read(f->path, &groups, &err);
        if (is_passing_failure(st))
                version = (struct file_version){ 0 };
        f->version = version;
        if (st) {
                target_groups_deinit(&groups);
                log_file_failure(f, &err);
                return false;
        }
        if (f->was_read)
                log_info("scrape", "reloaded '%s': %s", PRINTABLE(f->path),
                         COUNTED(groups.address_count, "target", "targets"));
        target_groups_deinit(&f->groups);
        f->groups = groups;
        f->was_read = true;
        f->has_failed = false;
        return true;
}

static enum status note_found_file(struct job_files *files, const char *path, struct error *err)
{
        struct target_file *f;

        for (size_t i = 0; i < files->count; i++)
                if (strcmp(files->items[i].path, path) == 0) {
                        files->items[i].is_found = true;
                        return ST_OK;
                }
        if (files->count == LIMIT_SCRAPE_FILES) {
                if (!files->has_too_many)
                        log_error("scrape", "more than %d files of targets: ignoring '%s'", LIMIT_SCRAPE_FILES,
                                  PRINTABLE(path));
                files->has_too_many = true;
                return ST_OK;
        }
        if (!array_reserve(&files->items, &files->capacity, files->count))
                return error_no_memory(err);
        f = &files->items[files->count];
        *f = (struct target_file){ .path = strdup(path), .is_found = true };
        if (!f->path)
                return error_no_memory(err);
        files->count++;
        return ST_OK;
}

/* The last failure of glob() to list a directory; thread-local because its callback has no context argument. */
static _Thread_local struct error listing_failure;

static int note_listing_failure(const char *path, int os_errno)
{
        if (!is_missing_file(os_errno))
                error_os(&listing_failure, os_errno, "cannot list '%.150s'", path);
        return 0; /* continue with other directories of the pattern */
}

static enum status find_files_of_pattern(struct job_files *files, const char *pattern, struct error *err)
{
        glob_t found = { 0 };
        int result = glob(pattern, 0, note_listing_failure, &found);
        enum status st = ST_OK;

        if (result == GLOB_NOSPACE)
                error_no_memory(&listing_failure);
        for (size_t i = 0; result == 0 && !st && i < found.gl_pathc; i++)
                st = note_found_file(files, found.gl_pathv[i], err);
        globfree(&found);
        return st;
}

static enum status find_target_files(const struct scrape_job *job, struct job_files *files, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < files->count; i++)
                files->items[i].is_found = false;
        listing_failure = (struct error){ 0 };
        for (size_t i = 0; !st && i < job->file_pattern_count; i++)
                st = find_files_of_pattern(files, job->file_patterns[i], err);
        if (listing_failure.text[0] && strcmp(files->error, listing_failure.text) != 0)
                log_error("scrape", "%s; keeping known files", PRINTABLE(listing_failure.text));
        snprintf(files->error, sizeof files->error, "%s", listing_failure.text);
        return st;
}

/* False while the directory or the file's metadata is unreadable. */
static bool is_lost_file(const struct target_file *f)
{
        struct file_version unused;

        return !f->is_found && !read_file_version(f->path, &unused) && is_missing_file(errno);
}

static bool remove_lost_files(struct job_files *files)
{
        size_t kept = 0, before = files->count;

        for (size_t i = 0; i < files->count; i++) {
                if (!is_lost_file(&files->items[i])) {
                        files->items[kept++] = files->items[i];
                        continue;
                }
                log_info("scrape", "'%s' was removed: dropping %s", PRINTABLE(files->items[i].path),
                         COUNTED(files->items[i].groups.address_count, "target", "targets"));
                free_target_file(&files->items[i]);
        }
        files->count = kept;
        return kept != before;
}

static enum status refresh_job(const struct scrape_job *job, struct job_files *files, bool *changed, struct error *err)
{
        enum status st = find_target_files(job, files, err);

        if (st)
                return st;
        *changed |= remove_lost_files(files);
        for (size_t i = 0; i < files->count; i++)
                *changed |= refresh_target_file(&files->items[i]);
        return ST_OK;
}

enum status discovery_refresh(struct discovery *d, bool *changed_ret, struct error *err)
{
        bool changed = d->is_fresh;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < d->config->job_count; i++)
                st = refresh_job(&d->config->jobs[i], &d->files[i], &changed, err);
        if (!st)
                *changed_ret = changed;
        return st;
}

/* ---- targets ---- */

static void note_invalid_target(struct discovery *d, const struct error *err)
{
        if (strcmp(d->last_error, err->text) != 0)
                log_error("scrape", "%s; ignoring the target", PRINTABLE(err->text));
        snprintf(d->last_error, sizeof d->last_error, "%s", err->text);
        snprintf(d->counts.error, sizeof d->counts.error, "%s", err->text);
        d->counts.invalid++;
}

/* At most LIMIT_SCRAPE_TARGETS squared comparisons, nearly all of different URLs. */
static bool is_listed_target(const struct target_list *l, const struct scrape_target *t)
{
        for (size_t i = 0; i < l->count; i++)
                if (scrape_target_equal(&l->items[i], t))
                        return true;
        return false;
}

static enum status list_address(struct discovery *d, const struct scrape_job *job, const struct target_group *group,
                                const char *address, struct target_list *ret, struct error *err)
{
        _cleanup_scrape_target_ struct scrape_target t = { 0 };
        bool keep = false;
        enum status st = scrape_target_build(d->config, job, group, address, &t, &keep, err);

        if (st == ST_NO_MEMORY)
                return st;
        if (st) {
                note_invalid_target(d, err);
                return ST_OK;
        }
        if (!keep) {
                d->counts.dropped++;
                return ST_OK;
        }
        if (is_listed_target(ret, &t))
                return ST_OK;
        if (ret->count == LIMIT_SCRAPE_TARGETS) {
                error_set(err, ST_TOO_BIG, "more than %d targets, starting with '%.80s'", LIMIT_SCRAPE_TARGETS,
                          PRINTABLE(address));
                note_invalid_target(d, err);
                return ST_OK;
        }
        if (!array_reserve(&ret->items, &ret->capacity, ret->count))
                return error_no_memory(err);
        ret->items[ret->count++] = t;
        t = (struct scrape_target){ 0 };
        return ST_OK;
}

static enum status list_groups(struct discovery *d, const struct scrape_job *job, const struct target_groups *g,
                               struct target_list *ret, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < g->count; i++)
                for (size_t j = 0; !st && j < g->items[i].count; j++)
                        st = list_address(d, job, &g->items[i], g->items[i].addresses[j], ret, err);
        return st;
}

enum status discovery_list_targets(struct discovery *d, struct target_list *ret, struct error *err)
{
        struct error failure = { 0 };
        enum status st = ST_OK;

        d->counts = (struct discovery_counts){ 0 };
        for (size_t i = 0; !st && i < d->config->job_count; i++) {
                const struct scrape_job *job = &d->config->jobs[i];

                st = list_groups(d, job, &job->groups, ret, &failure);
                for (size_t j = 0; !st && j < d->files[i].count; j++)
                        st = list_groups(d, job, &d->files[i].items[j].groups, ret, &failure);
        }
        if (!st) {
                d->is_fresh = false;
                return ST_OK;
        }
        target_list_deinit(ret);
        if (err)
                *err = failure;
        return st;
}

static void count_failed_file(struct discovery_counts *counts, const char *error)
{
        counts->files++;
        counts->failed_files++;
        snprintf(counts->error, sizeof counts->error, "%s", error);
}

void discovery_get_counts(const struct discovery *d, struct discovery_counts *ret)
{
        *ret = d->counts;
        for (size_t i = 0; i < d->config->job_count; i++) {
                const struct job_files *files = &d->files[i];

                if (files->error[0])
                        count_failed_file(ret, files->error);
                for (size_t j = 0; j < files->count; j++) {
                        if (files->items[j].has_failed)
                                count_failed_file(ret, files->items[j].error);
                        else
                                ret->files++;
                }
        }
}
