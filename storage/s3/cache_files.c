/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/cache_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/reader.h"

#define MAGIC "cairnblk"
#define FORMAT_VERSION 1
#define DATA_SUFFIX ".data"
#define BLOCKS_SUFFIX ".blocks"
#define DIGITS 16
#define BLOCKS_BYTES_MAX MiB(64)

uint64_t count_cache_blocks(uint64_t size)
{
        return size / CACHE_BLOCK_BYTES + (size % CACHE_BLOCK_BYTES != 0);
}

enum status cached_blocks_init(struct cached_blocks *ret, const char *key, const struct storage_info *info,
                               struct error *err)
{
        uint64_t count = count_cache_blocks(info->size);

        *ret = (struct cached_blocks){ .key = strdup(key),
                                       .info = *info,
                                       .count = count,
                                       .present = calloc(count / 8 + 1, 1),
                                       .checksums = calloc(count + 1, sizeof *ret->checksums) };
        if (ret->key && ret->present && ret->checksums)
                return ST_OK;
        cached_blocks_deinit(ret);
        return error_no_memory(err);
}

void cached_blocks_deinit(struct cached_blocks *b)
{
        free(b->key);
        free(b->present);
        free(b->checksums);
        *b = (struct cached_blocks){ 0 };
}

static char *make_cache_path(const char *dir, uint64_t number, const char *suffix)
{
        char *ret;

        return asprintf(&ret, "%s/%016llx%s", dir, (unsigned long long)number, suffix) < 0 ? NULL : ret;
}

int cache_files_lock(const char *dir)
{
        _cleanup_free_ char *path = path_join(dir, "lock");
        int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
                close(fd);
                return -1;
        }
        return fd;
}

static int create_named_file(const char *dir, uint64_t *number_ret)
{
        _cleanup_free_ char *path = NULL;
        int fd;

        do {
                if (getrandom(number_ret, sizeof *number_ret, 0) != sizeof *number_ret)
                        return -1;
        } while (!*number_ret);
        path = make_cache_path(dir, *number_ret, DATA_SUFFIX);
        fd = path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
        if (fd < 0)
                *number_ret = 0;
        return fd;
}

enum status cache_files_create(const char *dir, bool is_locked, struct cached_blocks *b, int *fd_ret, struct error *err)
{
        int fd = is_locked ? create_named_file(dir, &b->number) : open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd >= 0 && ftruncate(fd, (off_t)b->info.size) == 0) {
                *fd_ret = fd;
                return ST_OK;
        }
        error_os(err, errno, "cannot make a file in the cache '%s'", dir);
        if (fd >= 0)
                close(fd);
        cache_files_remove(dir, b->number);
        return ST_OS;
}

void cache_files_remove(const char *dir, uint64_t number)
{
        _cleanup_free_ char *data = make_cache_path(dir, number, DATA_SUFFIX);
        _cleanup_free_ char *blocks = make_cache_path(dir, number, BLOCKS_SUFFIX);

        if (!number || !data || !blocks)
                return;
        unlink(blocks);
        unlink(data);
}

/* ---- saving ---- */

static bool is_block_present(const struct cached_blocks *b, uint64_t block)
{
        return b->present[block / 8] >> block % 8 & 1;
}

static void encode_blocks(const struct cached_blocks *b, struct buf *to)
{
        uint32_t key_size = (uint32_t)strlen(b->key), etag_size = (uint32_t)strlen(b->info.etag);

        buf_append(to, MAGIC, strlen(MAGIC));
        buf_append_u32(to, FORMAT_VERSION);
        buf_append_u64(to, b->info.size);
        buf_append_u64(to, (uint64_t)b->info.modified_ms);
        buf_append_u32(to, key_size);
        buf_append(to, b->key, key_size);
        buf_append_u32(to, etag_size);
        buf_append(to, b->info.etag, etag_size);
        for (uint64_t i = 0; i < b->count; i++) {
                buf_append_u8(to, is_block_present(b, i));
                buf_append_u64(to, b->checksums[i]);
        }
        buf_append_u64(to, hash_bytes64(to->data, to->size));
}

void cache_files_save(const char *dir, const struct cached_blocks *b)
{
        _cleanup_free_ char *path = make_cache_path(dir, b->number, BLOCKS_SUFFIX);
        _cleanup_free_ char *making = make_cache_path(dir, b->number, BLOCKS_SUFFIX ".new");
        _cleanup_close_ int fd = -1;
        _cleanup_buf_ struct buf text;

        buf_init(&text, BLOCKS_BYTES_MAX);
        if (!b->number || !path || !making)
                return;
        encode_blocks(b, &text);
        fd = text.failed ? -1 : open(making, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || file_write_all(fd, text.data, text.size, making, NULL) || rename(making, path) < 0)
                unlink(making);
}

/* ---- loading ---- */

static bool read_text(struct reader *r, const uint8_t **ret, uint32_t *size_ret)
{
        return reader_u32(r, size_ret) && reader_bytes(r, *size_ret, ret) && !memchr(*ret, 0, *size_ret);
}

static bool read_all_blocks(struct reader *r, struct cached_blocks *b)
{
        for (uint64_t i = 0; i < b->count; i++) {
                uint8_t present;

                if (!reader_u8(r, &present) || present > 1 || !reader_u64(r, &b->checksums[i]))
                        return false;
                b->present[i / 8] |= (uint8_t)(present << i % 8);
        }
        return true;
}

/* The file may be damaged in any way. */
static bool decode_blocks(const struct buf *text, struct cached_blocks *ret)
{
        struct storage_info info = { 0 };
        const uint8_t *magic, *key, *etag;
        uint32_t version, key_size, etag_size;
        _cleanup_free_ char *name = NULL;
        uint64_t modified, sum;
        struct reader r;

        if (text->size < sizeof sum)
                return false;
        reader_init(&r, text->data + text->size - sizeof sum, sizeof sum);
        if (!reader_u64(&r, &sum) || sum != hash_bytes64(text->data, text->size - sizeof sum))
                return false;
        reader_init(&r, text->data, text->size - sizeof sum);
        if (!reader_bytes(&r, strlen(MAGIC), &magic) || memcmp(magic, MAGIC, strlen(MAGIC)) != 0 ||
            !reader_u32(&r, &version) || version != FORMAT_VERSION || !reader_u64(&r, &info.size) ||
            !reader_u64(&r, &modified) || !read_text(&r, &key, &key_size) || !read_text(&r, &etag, &etag_size) ||
            etag_size >= sizeof info.etag || count_cache_blocks(info.size) > text->size)
                return false;
        info.modified_ms = (int64_t)modified;
        memcpy(info.etag, etag, etag_size);
        name = strndup((const char *)key, key_size);
        if (!name || cached_blocks_init(ret, name, &info, NULL))
                return false;
        if (read_all_blocks(&r, ret))
                return true;
        cached_blocks_deinit(ret);
        return false;
}

/* Files of one number. */
struct saved_files {
        uint64_t number;
        struct timespec saved;
};

struct saved_list {
        struct saved_files *items;
        size_t count, capacity;
};

static bool parse_cache_number(const char *name, uint64_t *ret)
{
        char *end;

        if (strspn(name, "0123456789abcdef") != DIGITS || name[DIGITS] != '.')
                return false;
        *ret = strtoull(name, &end, 16);
        return end == name + DIGITS && *ret;
}

static int compare_saved(const void *a, const void *b)
{
        const struct timespec *x = &((const struct saved_files *)a)->saved,
                              *y = &((const struct saved_files *)b)->saved;

        return x->tv_sec != y->tv_sec ? (x->tv_sec < y->tv_sec ? -1 : 1)
                                      : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static enum status list_saved_files(const char *dir, struct saved_list *ret, struct error *err)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        const struct dirent *entry;

        if (!d)
                return error_os(err, errno, "cannot read the cache '%s'", dir);
        while ((entry = readdir(d))) {
                struct saved_files f = { 0 };
                struct stat info;

                if (!parse_cache_number(entry->d_name, &f.number) || strcmp(entry->d_name + DIGITS, DATA_SUFFIX) != 0)
                        continue;
                if (fstatat(dirfd(d), entry->d_name, &info, 0) == 0)
                        f.saved = info.st_mtim;
                if (!array_reserve(&ret->items, &ret->capacity, ret->count))
                        return error_no_memory(err);
                ret->items[ret->count++] = f;
        }
        if (ret->count)
                qsort(ret->items, ret->count, sizeof *ret->items, compare_saved);
        return ST_OK;
}

/* False: the files are of no use. */
static bool read_saved_files(const char *dir, uint64_t number, struct cached_blocks *ret, int *fd_ret)
{
        _cleanup_free_ char *data = make_cache_path(dir, number, DATA_SUFFIX);
        _cleanup_free_ char *blocks = make_cache_path(dir, number, BLOCKS_SUFFIX);
        _cleanup_buf_ struct buf text;
        _cleanup_close_ int fd = -1;
        struct stat info;

        buf_init(&text, BLOCKS_BYTES_MAX);
        if (!data || !blocks || file_read(blocks, &text, NULL) || !decode_blocks(&text, ret))
                return false;
        ret->number = number;
        fd = open(data, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fstat(fd, &info) < 0 || (uint64_t)info.st_size != ret->info.size) {
                cached_blocks_deinit(ret);
                return false;
        }
        *fd_ret = steal_fd(&fd);
        return true;
}

enum status cache_files_load(const char *dir, cache_files_take *take, void *context, struct error *err)
{
        struct saved_list l = { 0 };
        enum status st = list_saved_files(dir, &l, err);

        for (size_t i = 0; !st && i < l.count; i++) {
                struct cached_blocks b;
                int fd;

                if (read_saved_files(dir, l.items[i].number, &b, &fd))
                        st = take(context, &b, fd, err);
                else
                        cache_files_remove(dir, l.items[i].number);
        }
        free(l.items);
        return st;
}
