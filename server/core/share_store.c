/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/share_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/stable_clock.h"

#define SUFFIX ".pb.gz"
#define NAME_CHARS (SHARE_ID_CHARS + sizeof SUFFIX - 1)
#define UNFINISHED_S 3600 /* age at which a temporary file counts as abandoned */

static struct metric shares = METRIC_GAUGE("cairn_shares", "Stored shared profiles.", "");
static struct metric share_bytes = METRIC_GAUGE("cairn_share_bytes", "Bytes of stored shares.", "");
#define REMOVED(reason) METRIC_COUNTER("cairn_shares_removed_total", "Shares removed, by reason.", reason)
static struct metric removed_by_age = REMOVED("reason=\"age\"");
static struct metric removed_by_size = REMOVED("reason=\"size\"");

struct share_store {
        char *dir; /* owned */
        struct share_limits limits;
        bool read_only;
        int64_t published_count, published_bytes; /* contribution to the metrics; protected by lock */
        pthread_mutex_t lock;                     /* serializes changes of the folder */
};

/* One file of the folder. */
struct share_file {
        char name[NAME_CHARS + 1];
        int64_t modified_s;
        uint64_t size;
};

/* All shares of the folder, oldest first. */
struct share_list {
        struct share_file *files; /* owned */
        size_t count, capacity;
        uint64_t bytes;
};

enum status share_store_open(const char *dir, const struct share_limits *limits, bool read_only,
                             struct share_store **ret, struct error *err)
{
        struct share_store *s = calloc(1, sizeof *s);

        if (!s)
                return error_no_memory(err);
        s->dir = path_join(dir, "shares");
        if (!s->dir) {
                free(s);
                return error_no_memory(err);
        }
        s->limits = *limits;
        s->read_only = read_only;
        pthread_mutex_init(&s->lock, NULL);
        metric_register(&shares);
        metric_register(&share_bytes);
        metric_register(&removed_by_age);
        metric_register(&removed_by_size);
        *ret = s;
        return ST_OK;
}

void share_store_close(struct share_store *s)
{
        if (!s)
                return;
        metric_add(&shares, -s->published_count);
        metric_add(&share_bytes, -s->published_bytes);
        pthread_mutex_destroy(&s->lock);
        free(s->dir);
        free(s);
}

static bool is_share_id(const char *id, size_t n)
{
        return n == SHARE_ID_CHARS && strspn(id, "0123456789abcdef") >= n;
}

static bool is_share_name(const char *name)
{
        return strlen(name) == NAME_CHARS && strcmp(name + SHARE_ID_CHARS, SUFFIX) == 0 &&
               is_share_id(name, SHARE_ID_CHARS);
}

static bool is_too_old(const struct share_store *s, int64_t modified_s)
{
        return s->limits.age_s && stable_unix_s() - modified_s > (int64_t)s->limits.age_s;
}

static int compare_share_age(const void *a, const void *b)
{
        const struct share_file *x = a, *y = b;

        if (x->modified_s != y->modified_s)
                return x->modified_s < y->modified_s ? -1 : 1;
        return strcmp(x->name, y->name);
}

/* Also removes abandoned temporary files. */
static enum status list_shares(const struct share_store *s, struct share_list *ret, struct error *err)
{
        _cleanup_closedir_ DIR *dir = opendir(s->dir);
        const struct dirent *e;
        struct stat st;

        if (!dir)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot read '%s'", s->dir);
        while ((e = readdir(dir))) {
                struct share_file *f;

                if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
                        continue;
                if (strncmp(e->d_name, ".tmp-", 5) == 0 && stable_unix_s() - st.st_mtime > UNFINISHED_S)
                        unlinkat(dirfd(dir), e->d_name, 0);
                if (!is_share_name(e->d_name))
                        continue;
                if (!array_reserve(&ret->files, &ret->capacity, ret->count))
                        return error_no_memory(err);
                f = &ret->files[ret->count++];
                memcpy(f->name, e->d_name, sizeof f->name);
                f->modified_s = st.st_mtime;
                f->size = (uint64_t)st.st_size;
                ret->bytes += f->size;
        }
        if (ret->count)
                qsort(ret->files, ret->count, sizeof *ret->files, compare_share_age);
        return ST_OK;
}

/* The metrics are sums over the stores of all tenants. */
static void publish_share_metrics(struct share_store *s, int64_t count, int64_t bytes)
{
        metric_add(&shares, count - s->published_count);
        metric_add(&share_bytes, bytes - s->published_bytes);
        s->published_count = count;
        s->published_bytes = bytes;
}

/* Remove expired shares, then the oldest until new_count files of new_bytes fit. */
static enum status make_share_room(struct share_store *s, size_t new_count, uint64_t new_bytes, struct error *err)
{
        struct share_list list = { 0 };
        enum status st = list_shares(s, &list, err);
        size_t first = 0;

        for (; !st && first < list.count; first++) {
                const struct share_file *f = &list.files[first];
                _cleanup_free_ char *path = path_join(s->dir, f->name);
                bool old = is_too_old(s, f->modified_s);

                if (!old && list.count - first + new_count <= LIMIT_SHARES && list.bytes + new_bytes <= s->limits.bytes)
                        break;
                if (!path)
                        st = error_no_memory(err);
                else if (unlink(path) && errno != ENOENT)
                        st = error_os(err, errno, "cannot remove '%s'", path);
                if (st)
                        break;
                list.bytes -= f->size;
                metric_add(old ? &removed_by_age : &removed_by_size, 1);
        }
        publish_share_metrics(s, (int64_t)(list.count - first + new_count), (int64_t)(list.bytes + new_bytes));
        free(list.files);
        return st;
}

static char *make_share_path(const struct share_store *s, const char *id)
{
        char name[NAME_CHARS + 1];

        snprintf(name, sizeof name, "%s" SUFFIX, id);
        return path_join(s->dir, name);
}

static enum status make_share_id(char ret[SHARE_ID_CHARS + 1], struct error *err)
{
        uint8_t random[SHARE_ID_CHARS / 2];

        if (getrandom(random, sizeof random, 0) != sizeof random)
                return error_os(err, errno, "cannot get random bytes");
        for (size_t i = 0; i < sizeof random; i++)
                snprintf(ret + 2 * i, 3, "%02x", random[i]);
        return ST_OK;
}

enum status share_store_add(struct share_store *s, const void *data, size_t n, char id_ret[SHARE_ID_CHARS + 1],
                            int64_t *expires_ret, struct error *err)
{
        _cleanup_free_ char *path = NULL;
        enum status st;

        if (!s->limits.bytes || s->read_only)
                return error_set(err, ST_UNSUPPORTED, "sharing is disabled on this service (--share-size)");
        if (n > LIMIT_SHARE_BYTES || n > s->limits.bytes)
                return error_set(err, ST_TOO_BIG, "the profile takes %zu bytes, a share at most %" PRIu64, n,
                                 s->limits.bytes < LIMIT_SHARE_BYTES ? s->limits.bytes : (uint64_t)LIMIT_SHARE_BYTES);
        st = make_share_id(id_ret, err);
        if (st)
                return st;
        path = make_share_path(s, id_ret);
        if (!path)
                return error_no_memory(err);
        pthread_mutex_lock(&s->lock);
        st = file_make_dirs(s->dir, err);
        if (!st)
                st = make_share_room(s, 1, n, err);
        if (!st)
                st = file_write_durable(path, data, n, err);
        pthread_mutex_unlock(&s->lock);
        if (!st)
                *expires_ret = s->limits.age_s ? stable_unix_s() + (int64_t)s->limits.age_s : 0;
        return st;
}

enum status share_store_get(struct share_store *s, const char *id, int *fd_ret, struct error *err)
{
        _cleanup_free_ char *path = is_share_id(id, strlen(id)) ? make_share_path(s, id) : NULL;
        _cleanup_close_ int fd = path && s->limits.bytes ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || is_too_old(s, st.st_mtime))
                return error_set(err, ST_NOT_FOUND, "the share does not exist; the oldest shares are removed");
        *fd_ret = steal_fd(&fd);
        return ST_OK;
}

void share_store_expire(struct share_store *s)
{
        struct error err;
        enum status st;

        if (!s->limits.bytes || s->read_only)
                return;
        pthread_mutex_lock(&s->lock);
        st = make_share_room(s, 0, 0, &err);
        pthread_mutex_unlock(&s->lock);
        if (st)
                log_error("share", "cannot remove expired shares: %s; retrying within the hour", err.text);
}
