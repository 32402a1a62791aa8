/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/table_vacuum.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/stable_clock.h"

#define LOG_FOLDER "_delta_log"
#define DAY_PREFIX "date="

/* ---- removed files ---------------------------------------------------------------------- */

/* A log written by another program may name anything: only names of our own parts are unlinked. */
static bool is_part_name(const char *name)
{
        size_t n = strlen(name);

        return *name != '_' && *name != '.' && n > 8 && strcmp(name + n - 8, ".parquet") == 0;
}

/* Remove the folder of a day if it is empty; otherwise rmdir() fails. */
static void remove_empty_day(int table, const char *file)
{
        const char *slash = strchr(file, '/');
        _cleanup_free_ char *folder = slash ? strndup(file, (size_t)(slash - file)) : NULL;

        if (folder && strncmp(folder, DAY_PREFIX, strlen(DAY_PREFIX)) == 0)
                unlinkat(table, folder, AT_REMOVEDIR);
}

/* Whether the grace period of a removed file is over. */
static bool is_grace_over(struct table_logs *l, enum table t, const struct delta_file *f, int64_t now_ms)
{
        if (f->removed_ms <= now_ms)
                return f->removed_ms < now_ms - l->grace_ms;
        if (f->removed_ms > l->future_removals[t].latest_ms) {
                l->future_removals[t].latest_ms = f->removed_ms;
                l->future_removals[t].noticed_ns = monotonic_ns();
        }
        return monotonic_ns() - l->future_removals[t].noticed_ns > l->grace_ms * 1000000;
}

static enum status vacuum_table_removed(struct table_logs *l, enum table t, int64_t now_ms,
                                        struct table_vacuum_counts *ret, struct error *err)
{
        _cleanup_free_ char *path = make_table_path(l, t, "");
        _cleanup_close_ int folder = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        struct delta_snapshot *removed;
        enum status st;

        if (folder < 0)
                return path ? error_os(err, errno, "cannot open '%s'", path) : error_no_memory(err);
        st = delta_removed_acquire(l->logs[t], &removed, err);
        if (st)
                return st;
        for (size_t i = 0; i < removed->file_count; i++) {
                const struct delta_file *f = removed->files[i];

                if (!is_grace_over(l, t, f, now_ms))
                        continue;
                if (!is_part_name(f->path)) {
                        delta_table_forget(l->logs[t], f);
                        continue;
                }
                if (unlinkat(folder, f->path, 0) == 0) {
                        ret->removed_files++;
                        ret->removed_bytes += f->size;
                        remove_empty_day(folder, f->path);
                } else if (errno != ENOENT && errno != ENOTDIR) {
                        if (!st)
                                st = error_os(err, errno, "cannot remove '%s%s'", path, f->path);
                        continue;
                }
                delta_table_forget(l->logs[t], f);
        }
        delta_snapshot_release(removed);
        return st;
}

enum status tables_vacuum_removed(struct table_logs *l, struct table_vacuum_counts *ret, struct error *err)
{
        int64_t now_ms = stable_unix_ms();
        struct table_vacuum_counts unused = { 0 };
        enum status first = ST_OK;

        for (int t = 0; t < TABLE_COUNT; t++) {
                enum status st = vacuum_table_removed(l, t, now_ms, ret ? ret : &unused, first ? NULL : err);

                first = first ? first : st;
        }
        return first;
}

/* ---- orphans ---------------------------------------------------------------------------- */

struct orphan_search {
        const struct delta_snapshot *live, *removed;
        int64_t before_s;      /* files with an older mtime are unlinked, */
        int64_t opened_s;      /* but those younger than this */
        int64_t open_before_s; /* only if older than this */
        uint64_t found;
        int failure; /* errno of the first unlink that failed */
        char failed_name[256];
};

static int compare_file_path(const void *key, const void *file)
{
        return strcmp(key, (*(const struct delta_file *const *)file)->path);
}

static bool is_in_snapshot(const struct delta_snapshot *s, const char *name)
{
        return s->file_count && bsearch(name, s->files, s->file_count, sizeof *s->files, compare_file_path);
}

/* In the log's folder only temporary files of interrupted writers are removed. */
static bool is_removable_name(const char *name, bool is_log)
{
        return strncmp(name, ".tmp-", 5) == 0 || (!is_log && is_part_name(name));
}

static bool is_old_enough(const struct orphan_search *o, const struct stat *st)
{
        return S_ISREG(st->st_mode) && st->st_mtime < o->before_s &&
               (st->st_mtime < o->opened_s || st->st_mtime < o->open_before_s);
}

/* Unlink orphans in one folder; prefix is its path below the table's folder with a trailing slash, or empty. */
static void unlink_folder_orphans(struct orphan_search *o, int folder, const char *prefix)
{
        bool is_log = strncmp(prefix, LOG_FOLDER, strlen(LOG_FOLDER)) == 0;
        int copy = dup(folder);
        _cleanup_closedir_ DIR *d = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *e;

        if (!d) {
                if (copy >= 0)
                        close(copy);
                return;
        }
        while ((e = readdir(d))) {
                _cleanup_free_ char *name = NULL;
                struct stat st;

                if (!is_removable_name(e->d_name, is_log))
                        continue;
                if (asprintf(&name, "%s%s", prefix, e->d_name) < 0) {
                        name = NULL;
                        continue;
                }
                if (is_in_snapshot(o->live, name) || is_in_snapshot(o->removed, name) ||
                    fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_old_enough(o, &st))
                        continue;
                if (unlinkat(folder, e->d_name, 0) == 0) {
                        o->found++;
                } else if (!o->failure) {
                        o->failure = errno;
                        snprintf(o->failed_name, sizeof o->failed_name, "%s", name);
                }
        }
}

/* Day folders, and the log's folder. */
static void unlink_subfolder_orphans(struct orphan_search *o, int table)
{
        int copy = openat(table, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *d = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *e;

        while (d && (e = readdir(d))) {
                _cleanup_free_ char *prefix = NULL;
                _cleanup_close_ int inner = -1;

                if (strncmp(e->d_name, DAY_PREFIX, strlen(DAY_PREFIX)) != 0 && strcmp(e->d_name, LOG_FOLDER) != 0)
                        continue;
                inner = openat(table, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (asprintf(&prefix, "%s/", e->d_name) < 0)
                        prefix = NULL;
                if (inner >= 0 && prefix)
                        unlink_folder_orphans(o, inner, prefix);
        }
}

static enum status vacuum_table_orphans(struct table_logs *l, enum table t, struct orphan_search *o, struct error *err)
{
        _cleanup_free_ char *path = make_table_path(l, t, "");
        _cleanup_close_ int folder = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        struct delta_snapshot *live = NULL, *removed = NULL;
        enum status st;

        if (folder < 0)
                return path ? error_os(err, errno, "cannot list '%s'", path) : error_no_memory(err);
        st = delta_table_refresh(l->logs[t], err);
        if (!st)
                st = delta_snapshot_acquire(l->logs[t], &live, err);
        if (!st)
                st = delta_removed_acquire(l->logs[t], &removed, err);
        if (!st) {
                o->live = live;
                o->removed = removed;
                unlink_folder_orphans(o, folder, "");
                unlink_subfolder_orphans(o, folder);
                if (o->failure)
                        st = error_os(err, o->failure, "cannot remove '%s%s'", path, o->failed_name);
        }
        delta_snapshot_release(live);
        delta_snapshot_release(removed);
        return st;
}

enum status tables_vacuum_orphans(struct table_logs *l, struct table_vacuum_counts *ret, struct error *err)
{
        int64_t now_s = stable_unix_s(), age_s = l->grace_ms / 1000;
        enum status first = ST_OK;

        age_s = age_s > ORPHAN_LEAST_S ? age_s : ORPHAN_LEAST_S;
        for (int t = 0; t < TABLE_COUNT; t++) {
                struct orphan_search o = { .before_s = now_s - age_s,
                                           .opened_s = l->opened_s,
                                           .open_before_s = now_s - ORPHAN_OPEN_S };
                enum status st = vacuum_table_orphans(l, t, &o, first ? NULL : err);

                first = first ? first : st;
                if (ret)
                        ret->orphans += o.found;
        }
        return first;
}

/* ---- logs ------------------------------------------------------------------------------- */

#define S_PER_DAY 86400

enum status tables_clean_up_logs(struct table_logs *l, struct delta_log_cleanup *ret, struct error *err)
{
        int64_t s = stable_unix_s() - l->grace_ms / 1000;
        enum status first = ST_OK;

        s -= s % S_PER_DAY;
        for (int t = 0; t < TABLE_COUNT; t++) {
                enum status st = delta_table_clean_up_log(l->logs[t], s * 1000, ret, first ? NULL : err);

                first = first ? first : st;
        }
        return first;
}
