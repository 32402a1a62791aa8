/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call makes the path of its object and leaves the work to common/files/file.h. Both calls that walk folders
 * collect keys first, with collect_keys(), and sort them: readdir() has no order.
 *
 * In the file: uploads; reading; lists; removal; the rest.
 */
#include "storage/local_storage.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/clock.h"
#include "common/memory/array.h"
#include "common/stable_clock.h"
#include "storage/storage_operations.h"

struct local_storage {
        struct storage storage;
        char *staging; /* path of the folder for uploads; NULL: that of the object */
};

static void close_local_storage(struct storage *s)
{
        free(((struct local_storage *)s)->staging);
        free(s);
}

/* ---- uploads ---- */

static enum status make_object_folder(struct storage *s, const char *key, struct error *err)
{
        _cleanup_free_ char *path = storage_make_name(s, key);
        _cleanup_free_ char *folder = path ? strndup(path, (size_t)(path_base(path) - path - 1)) : NULL;

        return folder ? file_make_dirs(folder, err) : error_no_memory(err);
}

static enum status begin_local_upload(struct storage *s, struct storage_upload *u, struct error *err)
{
        const char *staging = ((struct local_storage *)s)->staging;
        _cleanup_free_ char *staged = staging ? path_join(staging, path_base(u->name)) : NULL;

        if (staging && !staged)
                return error_no_memory(err);
        return file_create_temporary(staged ? staged : u->name, &u->tmp, &u->fd, err);
}

static enum status publish_local_upload(struct storage *s, struct storage_upload *u, enum storage_mode mode,
                                        struct error *err)
{
        (void)s;
        return mode == STORAGE_NEW ? file_publish_new(u->fd, u->tmp, u->name, err)
                                   : file_publish(u->fd, u->tmp, u->name, err);
}

/* ---- reading ---- */

static enum status map_stored_file(struct storage *s, const char *key, size_t max, struct storage_map *ret,
                                   struct error *err)
{
        _cleanup_free_ char *path = storage_make_name(s, key);

        return path ? file_map_open(path, max, &ret->file, err) : error_no_memory(err);
}

static void get_file_info(const struct stat *from, struct storage_info *ret)
{
        *ret = (struct storage_info){ .size = (uint64_t)from->st_size,
                                      .modified_ms = from->st_mtim.tv_sec * 1000 + from->st_mtim.tv_nsec / 1000000 };
}

/* Without the ctime: hard links, as made by snapshots, change it. */
static void make_file_etag(const struct stat *from, struct storage_info *ret)
{
        snprintf(ret->etag, sizeof ret->etag, "%jx-%jx-%jx-%jx.%lx", (uintmax_t)from->st_dev, (uintmax_t)from->st_ino,
                 (uintmax_t)from->st_size, (uintmax_t)from->st_mtim.tv_sec, from->st_mtim.tv_nsec);
}

static enum status report_file_error(const char *what, const char *path, int failed, struct error *err)
{
        return failed == ENOENT || failed == ENOTDIR ? error_set(err, ST_NOT_FOUND, "'%s' does not exist", path)
                                                     : error_os(err, failed, "cannot %s '%s'", what, path);
}

static enum status describe_regular_file(const char *path, int failed, const struct stat *info,
                                         struct storage_info *ret, struct error *err)
{
        if (failed)
                return report_file_error("open", path, failed, err);
        if (!S_ISREG(info->st_mode))
                return error_set(err, ST_USAGE, "'%s' is not a regular file", path);
        get_file_info(info, ret);
        make_file_etag(info, ret);
        return ST_OK;
}

static enum status open_stored_file(struct storage *s, const char *key, int *fd_ret, struct storage_info *ret,
                                    struct error *err)
{
        _cleanup_free_ char *path = storage_make_name(s, key);
        _cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
        struct stat info = { 0 };
        int failed = fd < 0 || fstat(fd, &info) < 0 ? errno : 0;
        enum status st = path ? describe_regular_file(path, failed, &info, ret, err) : error_no_memory(err);

        if (!st)
                *fd_ret = steal_fd(&fd);
        return st;
}

static enum status stat_stored_file(struct storage *s, const char *key, struct storage_info *ret, struct error *err)
{
        _cleanup_free_ char *path = storage_make_name(s, key);
        struct stat info = { 0 };

        return path ? describe_regular_file(path, stat(path, &info) < 0 ? errno : 0, &info, ret, err)
                    : error_no_memory(err);
}

static enum status read_stored_file(struct storage *s, const char *key, struct buf *ret, struct storage_info *info_ret,
                                    struct error *err)
{
        _cleanup_free_ char *path = storage_make_name(s, key);
        enum status st = info_ret ? stat_stored_file(s, key, info_ret, err) : ST_OK;

        if (st)
                return st;
        return path ? file_read(path, ret, err) : error_no_memory(err);
}

/* ---- lists ---- */

struct key_list {
        char **items; /* owned */
        size_t count, capacity;
};

static void key_list_deinit(struct key_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->items[i]);
        free(l->items);
}

static enum status append_key(struct key_list *l, const char *folder, const char *name, const char *end,
                              struct error *err)
{
        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        if (asprintf(&l->items[l->count], "%s%s%s", folder, name, end) < 0)
                return error_no_memory(err);
        l->count++;
        return ST_OK;
}

static bool is_unfinished_name(const char *name)
{
        return strncmp(name, ".tmp-", 5) == 0;
}

static int compare_keys(const void *x, const void *y)
{
        return strcmp(*(char *const *)x, *(char *const *)y);
}

/*
 * Append the keys in a folder and its subfolders: those of temporary files, or those of objects behind `after`. A file
 * system that does not tell types is asked for them by opening, so other files than regular ones may be among them.
 */
static enum status collect_keys(const struct storage *s, const char *folder, const char *after, bool is_unfinished,
                                int depth, struct key_list *to, struct error *err)
{
        _cleanup_free_ char *path = storage_make_name(s, folder);
        _cleanup_close_ int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        _cleanup_closedir_ DIR *d = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        enum status st = ST_OK;

        if (!path)
                return error_no_memory(err);
        if (!d && (errno == ENOENT || (depth < LOCAL_STORAGE_DEPTH && (errno == ENOTDIR || errno == EACCES))))
                return ST_OK;
        if (!d)
                return error_os(err, errno, "cannot list '%s'", path);
        (void)steal_fd(&fd);
        while (!st && (errno = 0, e = readdir(d))) {
                bool is_dir = e->d_type == DT_DIR || e->d_type == DT_UNKNOWN;

                if (is_dir && depth && e->d_name[0] != '.') {
                        struct key_list below = { 0 };

                        st = append_key(&below, folder, e->d_name, "/", err);
                        if (!st)
                                st = collect_keys(s, below.items[0], after, is_unfinished, depth - 1, to, err);
                        key_list_deinit(&below);
                }
                if (st || e->d_type == DT_DIR || (is_unfinished ? !is_unfinished_name(e->d_name) : e->d_name[0] == '.'))
                        continue;
                st = append_key(to, folder, e->d_name, "", err);
                if (!st && strcmp(to->items[to->count - 1], after) <= 0)
                        free(to->items[--to->count]);
        }
        return !st && errno ? error_os(err, errno, "cannot list '%s'", path) : st;
}

static enum status visit_keys(struct storage *s, const char *folder, const char *after, bool is_unfinished,
                              storage_visit *visit, void *context, struct error *err)
{
        _cleanup_(key_list_deinit) struct key_list l = { 0 };
        _cleanup_close_ int root = open(s->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        enum status st = ST_OK;

        if (root < 0)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot list '%s'", s->root);
        st = collect_keys(s, folder, after, is_unfinished, LOCAL_STORAGE_DEPTH, &l, err);
        if (l.count)
                qsort(l.items, l.count, sizeof *l.items, compare_keys);
        for (size_t i = 0; !st && i < l.count; i++) {
                struct storage_info info;
                struct stat file;

                if (fstatat(root, l.items[i], &file, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(file.st_mode))
                        continue; /* removed meanwhile, or no object */
                get_file_info(&file, &info);
                st = visit(context, l.items[i], &info, err);
        }
        return st;
}

static enum status list_stored_files(struct storage *s, const char *folder, const char *after, storage_visit *visit,
                                     void *context, struct error *err)
{
        return visit_keys(s, folder, after, false, visit, context, err);
}

/* ---- removal ---- */

/* The folder of a key is removed if it is empty, unless it is the root or directly below it. */
static void remove_empty_folder(const char *path, const char *key)
{
        const char *slash = strchr(key, '/');
        _cleanup_free_ char *folder = NULL;

        if (!slash || !strchr(slash + 1, '/'))
                return;
        folder = strndup(path, (size_t)(path_base(path) - path - 1));
        if (folder)
                rmdir(folder);
}

static enum status remove_stored_file(struct storage *s, const char *key, struct error *err)
{
        _cleanup_free_ char *path = storage_make_name(s, key);

        if (!path)
                return error_no_memory(err);
        if (unlink(path) < 0)
                return report_file_error("remove", path, errno, err);
        remove_empty_folder(path, key);
        return ST_OK;
}

struct unfinished_removal {
        struct storage *storage;
        int64_t before_ms;
        uint64_t count;
        enum status first;
};

static enum status remove_unfinished_file(void *context, const char *key, const struct storage_info *info,
                                          struct error *err)
{
        struct unfinished_removal *r = context;
        _cleanup_free_ char *path = info->modified_ms < r->before_ms ? storage_make_name(r->storage, key) : NULL;

        if (path && unlink(path) == 0)
                r->count++;
        else if (path && errno != ENOENT && !r->first)
                r->first = error_os(err, errno, "cannot remove '%s'", path);
        return ST_OK;
}

static enum status remove_unfinished_files(struct storage *s, const char *folder, int64_t before_ms,
                                           uint64_t *count_ret, struct error *err)
{
        struct unfinished_removal r = { .storage = s, .before_ms = before_ms };
        enum status st = visit_keys(s, folder, "", true, remove_unfinished_file, &r, err);

        *count_ret += r.count;
        return st ? st : r.first;
}

/* ---- the rest ---- */

static enum status export_stored_file(struct storage *s, const char *key, const char *path, uint64_t *copied_bytes_ret,
                                      struct error *err)
{
        _cleanup_free_ char *from = storage_make_name(s, key);

        return from ? file_link_or_copy(from, path, copied_bytes_ret, err) : error_no_memory(err);
}

static uint64_t get_file_system_space(struct storage *s)
{
        struct statvfs fs;

        return statvfs(s->root, &fs) < 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

static int64_t read_local_clock(struct storage *s)
{
        (void)s;
        return stable_unix_ms();
}

static const struct storage_operations local_operations = {
        .close = close_local_storage,
        .make_folder = make_object_folder,
        .begin = begin_local_upload,
        .publish = publish_local_upload,
        .read = read_stored_file,
        .open = open_stored_file,
        .map = map_stored_file,
        .list = list_stored_files,
        .stat = stat_stored_file,
        .remove = remove_stored_file,
        .remove_unfinished = remove_unfinished_files,
        .export = export_stored_file,
        .get_free_bytes = get_file_system_space,
        .now_ms = read_local_clock,
};

enum status local_storage_open_staged(const char *dir, const char *staging, struct storage **ret, struct error *err)
{
        struct local_storage *s = calloc(1, sizeof *s);
        size_t n = strlen(dir);

        while (n > 1 && dir[n - 1] == '/')
                n--;
        if (s)
                *s = (struct local_storage){ .storage = { .operations = &local_operations, .root = strndup(dir, n) },
                                             .staging = staging ? path_join(dir, staging) : NULL };
        if (!s || !s->storage.root || (staging && !s->staging)) {
                if (s)
                        storage_close(&s->storage);
                return error_no_memory(err);
        }
        *ret = &s->storage;
        return ST_OK;
}

enum status local_storage_open(const char *dir, struct storage **ret, struct error *err)
{
        return local_storage_open_staged(dir, NULL, ret, err);
}
