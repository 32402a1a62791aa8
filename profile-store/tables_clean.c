/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/stable_clock.h"
#include "profile-store/tables.h"

#define LOG_FOLDER "_delta_log"

static int name_order(const void *key, const void *part)
{
        return strcmp(key, (*(struct table_part *const *)part)->name);
}

static bool is_live(const struct tables *now, enum table t, const char *name)
{
        return now->part_count[t] &&
               bsearch(name, now->parts[t], now->part_count[t], sizeof *now->parts[t], name_order);
}

static bool is_leftover(const char *name)
{
        return strncmp(name, ".tmp-", 5) == 0;
}

/* What the log says is not said by names: only a writer that died left something there that goes. */
static bool is_ours(const char *name, bool is_log)
{
        size_t n = strlen(name);

        return is_leftover(name) || (!is_log && n > 8 && strcmp(name + n - 8, ".parquet") == 0);
}

/* Files of one folder; prefix is its path below the table's folder, with a slash, or empty. */
static void clean_folder(int folder, const struct tables *now, enum table t, const char *prefix, int64_t before_s)
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

                if (!is_ours(e->d_name, is_log))
                        continue;
                if (asprintf(&name, "%s%s", prefix, e->d_name) < 0) {
                        name = NULL;
                        continue;
                }
                if (!is_live(now, t, name) && fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(st.st_mode) && st.st_mtime < before_s)
                        unlinkat(folder, e->d_name, 0);
        }
}

/* The folders of days, and the log's. */
static void clean_inner(int table, const struct tables *now, enum table t, int64_t before_s)
{
        int copy = openat(table, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *d = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *e;

        while (d && (e = readdir(d))) {
                _cleanup_free_ char *prefix = NULL;
                _cleanup_close_ int inner = -1;

                if (strncmp(e->d_name, "date=", 5) != 0 && strcmp(e->d_name, LOG_FOLDER) != 0)
                        continue;
                inner = openat(table, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (asprintf(&prefix, "%s/", e->d_name) < 0)
                        prefix = NULL;
                if (inner >= 0 && prefix)
                        clean_folder(inner, now, t, prefix, before_s);
        }
}

enum status tables_clean(struct table_logs *l, const struct tables *now, struct error *err)
{
        int64_t before_s = stable_unix_s() - TABLES_GRACE_S;

        for (int t = 0; t < TABLE_COUNT; t++) {
                _cleanup_free_ char *path = table_path(l, t, "");
                _cleanup_close_ int fd = -1;

                if (!path)
                        return error_no_memory(err);
                fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd < 0)
                        return error_os(err, errno, "cannot list '%s'", path);
                clean_folder(fd, now, t, "", before_s);
                clean_inner(fd, now, t, before_s);
        }
        return ST_OK;
}
