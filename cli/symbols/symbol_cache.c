/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbols/symbol_cache.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sha2.h> /* of libmd: loading libcrypto would take longer than a small program runs */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/text.h"
#include "elf-image/elf_image.h"

/* ---- eviction ---- */

#define TEMPORARY_AGE_S 3600
#define LISTED_FILES_MAX 65536 /* listed at once */
#define CACHED_FILES_MAX 16384
#define BLOCK_BYTES 512 /* of st_blocks */

struct cached_file {
        struct timespec used;
        uint64_t bytes;
        char name[96];
};

struct listing {
        struct cached_file *symcaches; /* owned */
        size_t count, capacity;
        uint64_t bytes;
};

static bool has_cache_suffix(const char *name, const char *suffix)
{
        size_t n = strlen(name), m = strlen(suffix);

        return n >= m && strcmp(name + n - m, suffix) == 0;
}

static void list_cached_file(struct listing *l, const char *name, const struct stat *s)
{
        if (!array_reserve(&l->symcaches, &l->capacity, l->count))
                return;
        l->symcaches[l->count] =
                (struct cached_file){ .used = s->st_mtim, .bytes = (uint64_t)s->st_blocks * BLOCK_BYTES };
        memcpy(l->symcaches[l->count].name, name, strlen(name) + 1);
        l->bytes += l->symcaches[l->count++].bytes;
}

static void visit_cache_entry(struct listing *l, int directory_fd, const char *name)
{
        struct stat s;

        if (l->count == LISTED_FILES_MAX || strlen(name) >= sizeof l->symcaches->name ||
            fstatat(directory_fd, name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode))
                return;
        if (starts_with(name, SYMBOL_CACHE_TEMPORARY)) {
                if (time(NULL) - s.st_mtim.tv_sec > TEMPORARY_AGE_S)
                        unlinkat(directory_fd, name, 0);
        } else if (has_cache_suffix(name, SYMBOL_CACHE_SUFFIX)) {
                list_cached_file(l, name, &s);
        }
}

static int compare_cached_use(const void *a, const void *b)
{
        const struct cached_file *x = a, *y = b;

        if (x->used.tv_sec != y->used.tv_sec)
                return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

void symbol_cache_evict(int directory_fd, uint64_t max_bytes)
{
        struct listing l = { 0 };
        int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;

        if (!directory) {
                cleanup_close(&fd);
                return;
        }
        while ((entry = readdir(directory)))
                visit_cache_entry(&l, directory_fd, entry->d_name);
        closedir(directory);
        if (l.bytes > max_bytes || l.count > CACHED_FILES_MAX)
                qsort(l.symcaches, l.count, sizeof *l.symcaches, compare_cached_use);
        for (size_t i = 0; i < l.count && (l.bytes > max_bytes || l.count - i > CACHED_FILES_MAX); i++) {
                if (unlinkat(directory_fd, l.symcaches[i].name, 0) == 0)
                        l.bytes -= l.symcaches[i].bytes;
        }
        free(l.symcaches);
}

/* ---- the directory and its owner ---- */

/* Only this user can have created it. */
static bool is_owned_by_user(int fd, mode_t type)
{
        struct stat s;

        return fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == type && s.st_uid == geteuid() &&
               !(s.st_mode & (S_IWGRP | S_IWOTH));
}

/* Open the parent of the cache; if it is missing, create it in a directory of this user. */
static int open_cache_base(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *parent = NULL;
        char *slash;

        if (fd >= 0)
                return is_owned_by_user(fd, S_IFDIR) ? steal_fd(&fd) : -1;
        parent = strdup(path);
        slash = parent ? strrchr(parent, '/') : NULL;
        if (!slash || slash == parent)
                return -1;
        *slash = 0;
        _cleanup_close_ int parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (parent_fd < 0 || !is_owned_by_user(parent_fd, S_IFDIR) || mkdirat(parent_fd, slash + 1, 0700))
                return -1;
        fd = openat(parent_fd, slash + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0 && is_owned_by_user(fd, S_IFDIR) ? steal_fd(&fd) : -1;
}

static int open_cache_directory_at(int base, const char *name)
{
        _cleanup_close_ int fd = -1;

        if (base < 0)
                return -1;
        (void)!mkdirat(base, name, 0700);
        fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0 && is_owned_by_user(fd, S_IFDIR) ? steal_fd(&fd) : -1;
}

/* Relative paths are ignored, as the XDG base directory specification requires. */
/* The cache directory of this user; a descriptor, -1 none. */
static int symbol_cache_open_directory(void)
{
        const char *own = secure_getenv("CAIRN_CACHE_DIR"), *xdg = secure_getenv("XDG_CACHE_HOME"),
                   *home = secure_getenv("HOME");
        _cleanup_close_ int base = -1;
        char path[PATH_MAX];

        if (own)
                return own[0] == '/' ? open_cache_base(own) : -1;
        if (xdg && xdg[0]) {
                base = xdg[0] == '/' ? open_cache_base(xdg) : -1;
        } else if (home && home[0] == '/') {
                int n = snprintf(path, sizeof path, "%s/.cache", home);

                base = n < (int)sizeof path ? open_cache_base(path) : -1;
        }
        return open_cache_directory_at(base, "cairn");
}

/* ---- the key of a symcache ---- */

/* A change to a file updates its ctime, which cannot be set back, except within one clock tick of the file system: so a
 * file that changed a moment ago is not cached. Whole seconds indicate a coarse clock. */
#define TICK_NS INT64_C(50000000)
#define COARSE_TICK_NS INT64_C(2000000000)

static bool is_ctime_settled(const struct stat *s)
{
        struct timespec now;
        int64_t age_ns;

        clock_gettime(CLOCK_REALTIME, &now);
        age_ns = (now.tv_sec - s->st_ctim.tv_sec) * INT64_C(1000000000) + now.tv_nsec - s->st_ctim.tv_nsec;
        return age_ns > (s->st_ctim.tv_nsec ? TICK_NS : COARSE_TICK_NS);
}

static void add_stat_to_key(struct buf *key, const char *what, const struct stat *s)
{
        buf_printf(key, "%s %llu %llu %lld %lld.%09ld %lld.%09ld\n", what, (unsigned long long)s->st_dev,
                   (unsigned long long)s->st_ino, (long long)s->st_size, (long long)s->st_mtim.tv_sec,
                   s->st_mtim.tv_nsec, (long long)s->st_ctim.tv_sec, s->st_ctim.tv_nsec);
}

/* Files without a build-id are mostly small local builds. */
#define HASHED_BYTES_MAX MiB(64)

static bool add_content_to_key(struct buf *key, int fd)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        char hex[BUILD_ID_HEX_MAX];

        if (elf_image_from_fd(fd, "input", &img, NULL))
                return false;
        if (img.build_id.size)
                buf_printf(key, "build-id %s\n", build_id_hex(&img.build_id, hex));
        else if (img.size <= HASHED_BYTES_MAX)
                buf_printf(key, "hash %016llx\n", (unsigned long long)hash_bytes64(img.data, img.size));
        return true;
}

static bool add_file_to_key(struct buf *key, const char *what, int fd, bool *settled)
{
        struct stat s;

        if (fd < 0)
                return true;
        if (fstat(fd, &s) || !S_ISREG(s.st_mode))
                return false;
        add_stat_to_key(key, what, &s);
        *settled &= is_ctime_settled(&s);
        return add_content_to_key(key, fd);
}

/* Another build of this program may extract more. */
static bool add_program_to_key(struct buf *key)
{
        struct stat s;

        if (stat("/proc/self/exe", &s))
                return false;
        add_stat_to_key(key, "cairn " CAIRN_VERSION, &s);
        return true;
}

static bool make_cache_name(struct symbol_cache *c, const struct extract_inputs *in)
{
        _cleanup_buf_ struct buf key = { 0 };
        uint8_t digest[SHA256_BYTES];
        char hex[SHA256_HEX_MAX];
        SHA2_CTX hash;

        buf_init(&key, KiB(64));
        c->is_settled = true;
        if (in->with_positions)
                buf_append_str(&key, in->has_relative_paths ? "positions and relative paths\n" : "positions\n");
        if (!add_program_to_key(&key) || !add_file_to_key(&key, "debuginfo", in->debuginfo_fd, &c->is_settled) ||
            !add_file_to_key(&key, "executable", in->executable_fd, &c->is_settled) ||
            !add_file_to_key(&key, "altlink", in->altlink_fd, &c->is_settled) ||
            !add_file_to_key(&key, "dwp", in->dwp_fd > 0 ? in->dwp_fd : -1, &c->is_settled) || key.failed)
                return false;
        SHA256Init(&hash);
        SHA256Update(&hash, key.data, key.size);
        SHA256Final(digest, &hash);
        snprintf(c->name, sizeof c->name, "%s" SYMBOL_CACHE_SUFFIX, hex_encode(digest, sizeof digest, hex));
        return true;
}

/* ---- the cache ---- */

void symbol_cache_open(const struct extract_inputs *in, struct symbol_cache *ret)
{
        *ret = (struct symbol_cache){ .directory_fd = symbol_cache_open_directory() };
        if (ret->directory_fd >= 0 && !make_cache_name(ret, in))
                symbol_cache_close(ret);
}

void symbol_cache_close(struct symbol_cache *c)
{
        cleanup_close(&c->directory_fd);
        c->directory_fd = -1;
}

bool symbol_cache_get(struct symbol_cache *c, struct symcache *ret)
{
        _cleanup_close_ int fd = -1;

        if (c->directory_fd < 0)
                return false;
        fd = openat(c->directory_fd, c->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || !is_owned_by_user(fd, S_IFREG))
                return false;
        if (symcache_open(fd, c->name, ret, NULL)) {
                symbol_cache_drop(c);
                return false;
        }
        futimens(fd, NULL); /* last use */
        return true;
}

#define DISK_BLOCK_BYTES 4096 /* usual allocation unit */

void symbol_cache_put(struct symbol_cache *c, const struct symcache *symcache, uint64_t max_bytes)
{
        uint64_t bytes = (symcache->map.size + DISK_BLOCK_BYTES - 1) & ~(uint64_t)(DISK_BLOCK_BYTES - 1);
        _cleanup_close_ int fd = -1;
        char temporary[64];

        assert(symcache->map.size > 0);
        if (c->directory_fd < 0 || !c->is_settled || bytes > max_bytes)
                return;
        symbol_cache_evict(c->directory_fd, max_bytes - bytes);
        snprintf(temporary, sizeof temporary, SYMBOL_CACHE_TEMPORARY "%d", (int)getpid());
        fd = openat(c->directory_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return;
        if (file_write_all(fd, symcache->map.data, symcache->map.size, temporary, NULL) ||
            renameat(c->directory_fd, temporary, c->directory_fd, c->name))
                unlinkat(c->directory_fd, temporary, 0);
}

void symbol_cache_drop(struct symbol_cache *c)
{
        if (c->directory_fd >= 0)
                unlinkat(c->directory_fd, c->name, 0);
}
