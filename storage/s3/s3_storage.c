/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of storage.h as requests. Keys of storage.h are below the prefix of the client; only lists have whole keys,
 * from which the prefix is cut.
 *
 * In the file: uploads; reading; maps; lists and removal; the rest.
 */
#include "storage/s3/s3_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/text.h"
#include "storage/s3/remote_cache.h"
#include "storage/s3/s3_client.h"
#include "storage/s3/s3_page.h"
#include "storage/s3/s3_upload.h"
#include "storage/storage_operations.h"

#define TAIL_BYTES KiB(64) /* fetched with the size of an object; has the footer of most tables' files */

struct s3_storage {
        struct storage storage;
        struct s3_client *client;
        struct remote_cache *cache;
        char *cache_dir;
};

static struct s3_client *get_client(struct storage *s)
{
        return ((struct s3_storage *)s)->client;
}

static struct remote_cache *get_cache(struct storage *s)
{
        return ((struct s3_storage *)s)->cache;
}

static void close_s3_storage(struct storage *storage)
{
        struct s3_storage *s = (struct s3_storage *)storage;

        remote_cache_destroy(s->cache);
        s3_client_destroy(s->client);
        free(s->cache_dir);
        free(s);
}

/*
 * What an administrator must change, such as a missing right or expired keys, says nothing of the object: to callers of
 * storage.h the store cannot be reached, and they try again. A flush would set its batches aside otherwise.
 */
static enum status hide_refusal(enum status st, struct error *err)
{
        if (st == ST_OS && err && !err->os_errno)
                err->os_errno = EREMOTEIO;
        if (st != ST_USAGE)
                return st;
        if (err) {
                err->code = ST_OS;
                err->os_errno = EACCES;
        }
        return ST_OS;
}

static enum status send_storage_request(struct s3_client *c, const struct s3_request *q, struct s3_response *response,
                                        struct error *err)
{
        return hide_refusal(s3_send(c, q, response, err), err);
}

/* ---- uploads ---- */

static enum status make_no_folder(struct storage *s, const char *key, struct error *err)
{
        (void)s, (void)key, (void)err;
        return ST_OK;
}

/* The file loses its name at once, so that nothing is left of it after a crash. */
static enum status begin_s3_upload(struct storage *s, struct storage_upload *u, struct error *err)
{
        _cleanup_free_ char *path = path_join(((struct s3_storage *)s)->cache_dir, path_base(u->name));
        enum status st = path ? file_create_temporary(path, &u->tmp, &u->fd, err) : error_no_memory(err);

        if (!st)
                unlink(u->tmp);
        return st;
}

static enum status publish_s3_upload(struct storage *s, struct storage_upload *u, enum storage_mode mode,
                                     struct error *err)
{
        struct stat info;
        enum status st = fstat(u->fd, &info) < 0 ? error_os(err, errno, "cannot read '%s'", u->tmp) : ST_OK;

        if (!st)
                st = hide_refusal(s3_upload_file(get_client(s), u->key, u->fd, (uint64_t)info.st_size, mode, err), err);
        remote_cache_remove(get_cache(s), u->key);
        close(u->fd);
        return st;
}

/* ---- reading ---- */

static void copy_info(const struct s3_response *r, struct storage_info *ret)
{
        *ret = (struct storage_info){ .size = r->size, .modified_ms = r->modified_ms };
        memcpy(ret->etag, r->etag, sizeof ret->etag);
}

static enum status stat_s3_object(struct storage *s, const char *key, struct storage_info *ret, struct error *err)
{
        const struct s3_request q = { .method = "HEAD", .key = key };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        enum status st = send_storage_request(get_client(s), &q, &response, err);

        if (!st)
                copy_info(&response, ret);
        return st;
}

struct buf_writer {
        struct buf *buf;
        size_t before; /* its size */
};

static enum status append_to_buf(void *context, const void *data, size_t n)
{
        return buf_append(((struct buf_writer *)context)->buf, data, n);
}

static void restart_buf(void *context)
{
        struct buf_writer *w = context;

        w->buf->size = w->before;
}

static enum status read_s3_object(struct storage *s, const char *key, struct buf *ret, struct storage_info *info_ret,
                                  struct error *err)
{
        struct buf_writer w = { ret, ret->size };
        const struct s3_request q = {
                .method = "GET", .key = key, .write = append_to_buf, .restart = restart_buf, .write_context = &w
        };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        enum status st = send_storage_request(get_client(s), &q, &response, err);

        if (ret->failed)
                return buf_status(ret, err, key);
        if (!st && info_ret)
                copy_info(&response, info_ret);
        return st;
}

struct file_writer {
        int fd;
        struct file_range range;
        uint64_t written;
        int failed; /* errno of a write */
};

static enum status write_fetched(void *context, const void *data, size_t n)
{
        struct file_writer *w = context;

        if (n > w->range.size - w->written)
                return ST_TOO_BIG;
        for (const char *p = data; n;) {
                ssize_t written = pwrite(w->fd, p, n, (off_t)(w->range.offset + w->written));

                if (written <= 0) {
                        w->failed = written < 0 ? errno : ENOSPC;
                        return ST_OS;
                }
                p += written;
                n -= (size_t)written;
                w->written += (uint64_t)written;
        }
        return ST_OK;
}

static void restart_file(void *context)
{
        ((struct file_writer *)context)->written = 0;
}

static enum status fetch_s3_range(void *context, const char *key, const struct storage_info *info, int fd,
                                  const struct file_range *range, struct error *err)
{
        char bytes[64], etag[STORAGE_ETAG_BYTES + 2];
        struct file_writer w = { .fd = fd, .range = *range };
        struct s3_request q = { .method = "GET",
                                .key = key,
                                .headers = { { "if-match", etag }, { "range", bytes } },
                                .header_count = 2,
                                .wanted = *range,
                                .write = write_fetched,
                                .restart = restart_file,
                                .write_context = &w };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        enum status st;

        snprintf(bytes, sizeof bytes, "bytes=%llu-%llu", (unsigned long long)range->offset,
                 (unsigned long long)(range->offset + range->size - 1));
        snprintf(etag, sizeof etag, "\"%s\"", info->etag);
        st = send_storage_request(context, &q, &response, err);
        if (w.failed)
                return error_os(err, w.failed, "cannot write '%.150s' into the local cache", key);
        return st == ST_BUSY ? error_set(err, ST_BUSY, "'%.150s' was replaced while it was read", key) : st;
}

/* ---- maps ---- */

struct tail {
        char *data; /* TAIL_BYTES */
        size_t size;
};

static enum status keep_tail(void *context, const void *data, size_t n)
{
        struct tail *t = context;

        if (n > TAIL_BYTES - t->size)
                return ST_TOO_BIG;
        memcpy(t->data + t->size, data, n);
        t->size += n;
        return ST_OK;
}

static void restart_tail(void *context)
{
        ((struct tail *)context)->size = 0;
}

static enum status store_tail(struct remote_cache *c, struct remote_object *o, const struct tail *t, struct error *err)
{
        const struct file_range range = { remote_object_info(o)->size - t->size, t->size };
        struct file_writer w = { .fd = remote_object_fd(o), .range = range };

        if (write_fetched(&w, t->data, t->size))
                return error_os(err, w.failed, "cannot write into the local cache");
        remote_cache_note_present(c, o, &range);
        return ST_OK;
}

/* An object's end, which tells its size too. An empty object has no range: 416. */
static enum status fetch_unknown_object(struct storage *s, const char *key, struct remote_object **ret,
                                        struct error *err)
{
        _cleanup_free_ char *data = malloc(TAIL_BYTES);
        struct tail tail = { .data = data };
        struct s3_request q = { .method = "GET",
                                .key = key,
                                .headers = { { "range", "bytes=-65536" } },
                                .header_count = 1,
                                .wanted.size = TAIL_BYTES,
                                .wants_end = true,
                                .write = keep_tail,
                                .restart = restart_tail,
                                .write_context = &tail };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        struct storage_info info;
        enum status st;

        _Static_assert(TAIL_BYTES == 65536, "the range above");
        if (!data)
                return error_no_memory(err);
        st = send_storage_request(get_client(s), &q, &response, err);
        if (st && response.code == 416)
                st = stat_s3_object(s, key, &info, err);
        else
                copy_info(&response, &info);
        if (!st)
                st = remote_cache_add(get_cache(s), key, &info, ret, err);
        if (st || !tail.size)
                return st;
        st = store_tail(get_cache(s), *ret, &tail, err);
        if (st)
                remote_cache_release(get_cache(s), *ret);
        return st;
}

static enum status get_remote_object(struct storage *s, const char *key, struct remote_object **ret, struct error *err)
{
        *ret = remote_cache_get(get_cache(s), key);
        return *ret ? ST_OK : fetch_unknown_object(s, key, ret, err);
}

static bool has_s3_object_at_hand(struct storage *s, const char *key)
{
        struct remote_object *o = remote_cache_get(get_cache(s), key);

        if (o)
                remote_cache_release(get_cache(s), o);
        return o;
}

/* An object of the cache that was replaced is forgotten, so that the next map is of the new one. */
static enum status require_cached_ranges(struct storage *s, struct remote_object *o, const struct file_range *ranges,
                                         size_t count, remote_cache_fetch *fetch, struct error *err)
{
        enum status st = remote_cache_require(get_cache(s), o, ranges, count, fetch, get_client(s), err);

        if (st != ST_BUSY)
                return st;
        remote_cache_forget(get_cache(s), o);
        return error_set(err, ST_OS, "an object of '%.150s' was replaced while it was read", storage_root(s));
}

static enum status require_s3_ranges(struct storage_map *m, const struct file_range *ranges, size_t count,
                                     struct error *err)
{
        return require_cached_ranges(m->storage, m->state, ranges, count, m->is_cached_only ? NULL : fetch_s3_range,
                                     err);
}

static enum status reload_s3_ranges(struct storage_map *m, const struct file_range *ranges, size_t count,
                                    struct error *err)
{
        return remote_cache_drop(get_cache(m->storage), m->state, ranges, count)
                       ? require_s3_ranges(m, ranges, count, err)
                       : ST_UNSUPPORTED;
}

static void unmap_s3_object(struct storage_map *m)
{
        if (m->file.data)
                munmap((void *)(uintptr_t)m->file.data, m->file.size);
        if (m->state)
                remote_cache_release(get_cache(m->storage), m->state);
}

static enum status map_s3_object(struct storage *s, const char *key, size_t max, struct storage_map *ret,
                                 struct error *err)
{
        struct remote_object *o;
        const void *data = NULL;
        uint64_t size;
        enum status st = get_remote_object(s, key, &o, err);

        if (st)
                return st;
        size = remote_object_info(o)->size;
        if (size > max)
                st = error_set(err, ST_TOO_BIG, "'%.150s' has %llu bytes, more than the limit of %zu", key,
                               (unsigned long long)size, max);
        else if (size)
                data = mmap(NULL, size, PROT_READ, MAP_SHARED, remote_object_fd(o), 0);
        if (data == MAP_FAILED)
                st = error_os(err, errno, "cannot map '%.150s'", key);
        if (st) {
                remote_cache_release(get_cache(s), o);
                return st;
        }
        ret->file = (struct file_map){ data, size };
        ret->state = o;
        return ST_OK;
}

/* A descriptor of its own, whose offset is nobody else's, and which outlives the cache. */
static enum status open_s3_object(struct storage *s, const char *key, int *fd_ret, struct storage_info *ret,
                                  struct error *err)
{
        struct remote_object *o;
        char path[64];
        enum status st = get_remote_object(s, key, &o, err);

        if (st)
                return st;
        *ret = *remote_object_info(o);
        st = require_cached_ranges(s, o, &(struct file_range){ 0, ret->size }, 1, fetch_s3_range, err);
        snprintf(path, sizeof path, "/proc/self/fd/%d", remote_object_fd(o));
        if (!st) {
                *fd_ret = open(path, O_RDONLY | O_CLOEXEC);
                if (*fd_ret < 0)
                        st = error_os(err, errno, "cannot open '%.150s' in the cache", key);
        }
        remote_cache_release(get_cache(s), o);
        return st;
}

struct export
{
        int fd;
        const char *path;
};

static enum status write_exported(void *context, const void *data, size_t n, struct error *err)
{
        const struct export *e = context;

        return file_write_all(e->fd, data, n, e->path, err);
}

static enum status export_s3_object(struct storage *s, const char *key, const char *path, uint64_t *copied_bytes_ret,
                                    struct error *err)
{
        _cleanup_close_ int from = -1, to = -1;
        struct storage_info info;
        enum status st = open_s3_object(s, key, &from, &info, err);

        if (st)
                return st;
        to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (to < 0)
                return error_os(err, errno, "cannot create '%s'", path);
        return file_read_chunks(from, key, write_exported, &(struct export){ to, path }, copied_bytes_ret, err);
}

/* ---- lists and removal ---- */

struct list_walk {
        struct storage *storage;
        size_t prefix_size; /* of whole keys, with the slash */
        storage_visit *visit;
        void *context;
};

/* What another program may have put there is no object of ours: components that are empty or begin with a dot. */
static bool is_storage_key(const char *key)
{
        for (const char *at = key; at; at = strchr(at, '/')) {
                at += at != key;
                if (!*at || *at == '/' || *at == '.')
                        return false;
        }
        return true;
}

static enum status visit_listed_object(void *context, const struct s3_page_entry *e, struct error *err)
{
        struct list_walk *w = context;
        const struct storage_info info = { .size = e->size, .modified_ms = e->modified_ms };
        const char *key = e->key;

        if (strlen(key) <= w->prefix_size || !is_storage_key(key + w->prefix_size))
                return ST_OK;
        return w->visit(w->context, key + w->prefix_size, &info, err);
}

static size_t get_prefix_size(struct storage *s)
{
        size_t n = strlen(s3_client_prefix(get_client(s)));

        return n ? n + 1 : 0;
}

/* "name=value&..." for a whole key: the prefix, a slash, and the rest. */
static void append_key_parameter(struct storage *s, struct buf *query, const char *name, const char *key)
{
        const char *prefix = s3_client_prefix(get_client(s));

        buf_printf(query, "%s%s=", query->size ? "&" : "", name);
        buf_append_url_encoded(query, prefix, "");
        buf_append_str(query, *prefix ? "%2F" : "");
        buf_append_url_encoded(query, key, "");
}

static enum status ask_for_page(struct storage *s, struct buf *query, s3_page_visit *visit, void *context,
                                struct buf *next, struct error *err)
{
        struct s3_request q = {
                .method = "GET", .query = buf_cstr(query), .max_response = S3_PAGE_BYTES, .wants_xml = true
        };
        _cleanup_s3_response_ struct s3_response response = { 0 };
        enum status st = q.query ? send_storage_request(get_client(s), &q, &response, err) : error_no_memory(err);

        buf_clear(next);
        return st ? st : s3_page_read(response.body.data, response.body.size, visit, context, next, err);
}

static enum status list_s3_objects(struct storage *s, const char *folder, const char *after, storage_visit *visit,
                                   void *context, struct error *err)
{
        struct list_walk w = { s, get_prefix_size(s), visit, context };
        _cleanup_buf_ struct buf query, next;
        enum status st;

        buf_init(&query, LIMIT_S3_REQUEST_TEXT_BYTES);
        buf_init(&next, KiB(4));
        do {
                buf_clear(&query);
                if (next.size) {
                        buf_printf(&query, "continuation-token=");
                        buf_append_url_encoded(&query, buf_cstr(&next), "");
                }
                buf_printf(&query, "%slist-type=2", query.size ? "&" : "");
                append_key_parameter(s, &query, "prefix", folder);
                if (*after)
                        append_key_parameter(s, &query, "start-after", after);
                st = ask_for_page(s, &query, visit_listed_object, &w, &next, err);
        } while (!st && next.size);
        return st;
}

static enum status remove_s3_object(struct storage *s, const char *key, struct error *err)
{
        const struct s3_request q = { .method = "DELETE", .key = key };
        _cleanup_s3_response_ struct s3_response response = { 0 };

        remote_cache_remove(get_cache(s), key);
        return send_storage_request(get_client(s), &q, &response, err);
}

struct abort_walk {
        struct storage *storage;
        int64_t before_ms;
        uint64_t count;
        enum status first;
};

static enum status abort_old_upload(void *context, const struct s3_page_entry *e, struct error *err)
{
        struct abort_walk *w = context;
        size_t n = get_prefix_size(w->storage);
        enum status st;

        if (!e->upload_id || strlen(e->key) <= n || e->modified_ms < 0 || e->modified_ms >= w->before_ms)
                return ST_OK;
        st = s3_abort_upload(get_client(w->storage), e->key + n, e->upload_id, w->first ? NULL : err);
        if (!st)
                w->count++;
        else if (st != ST_NOT_FOUND && !w->first)
                w->first = st;
        return ST_OK;
}

static enum status abort_old_uploads(struct storage *s, const char *folder, int64_t before_ms, uint64_t *count_ret,
                                     struct error *err)
{
        struct abort_walk w = { .storage = s, .before_ms = before_ms };
        _cleanup_buf_ struct buf query, next;
        enum status st;

        buf_init(&query, LIMIT_S3_REQUEST_TEXT_BYTES);
        buf_init(&next, KiB(4));
        do {
                buf_clear(&query);
                if (next.size) {
                        buf_printf(&query, "key-marker=");
                        buf_append_url_encoded(&query, buf_cstr(&next), "");
                }
                append_key_parameter(s, &query, "prefix", folder);
                buf_printf(&query, "&uploads=");
                st = ask_for_page(s, &query, abort_old_upload, &w, &next, err);
        } while (!st && next.size);
        *count_ret += w.count;
        return st ? st : w.first;
}

/* ---- the rest ---- */

static uint64_t get_no_limit(struct storage *s)
{
        (void)s;
        return UINT64_MAX;
}

static int64_t read_store_clock(struct storage *s)
{
        return s3_client_now_ms(get_client(s));
}

static const struct storage_operations s3_operations = {
        .close = close_s3_storage,
        .make_folder = make_no_folder,
        .begin = begin_s3_upload,
        .publish = publish_s3_upload,
        .read = read_s3_object,
        .open = open_s3_object,
        .map = map_s3_object,
        .require = require_s3_ranges,
        .reload = reload_s3_ranges,
        .unmap = unmap_s3_object,
        .has_at_hand = has_s3_object_at_hand,
        .list = list_s3_objects,
        .stat = stat_s3_object,
        .ask = storage_ask_at_once,
        .remove = remove_s3_object,
        .remove_unfinished = abort_old_uploads,
        .export = export_s3_object,
        .get_free_bytes = get_no_limit,
        .now_ms = read_store_clock,
};

static const atomic_bool *process_stop;

void s3_storage_set_stop(const atomic_bool *stop)
{
        process_stop = stop;
}

enum status s3_storage_open(const char *url, const struct s3_storage_options *o, struct storage **ret,
                            struct error *err)
{
        struct s3_storage *s = calloc(1, sizeof *s);
        size_t n = strlen(url);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s3_register_metrics();
        while (n && url[n - 1] == '/')
                n--;
        s->storage = (struct storage){ .operations = &s3_operations, .root = strndup(url, n) };
        s->cache_dir = strdup(o->cache_dir);
        st = s->storage.root && s->cache_dir ? s3_client_create(url, o->stop ? o->stop : process_stop, &s->client, err)
                                             : error_no_memory(err);
        if (!st)
                st = remote_cache_create(o->cache_dir, o->cache_bytes, &s->cache, err);
        if (st)
                storage_close(&s->storage);
        else
                *ret = &s->storage;
        return st;
}
