/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbol_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/symbol_cache_evict.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/hash.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"

/* ---- whose directory ---- */

/* Nobody else can have put something there. */
static bool is_own(int fd, mode_t type)
{
        struct stat s;

        return fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == type && s.st_uid == geteuid() &&
               !(s.st_mode & (S_IWGRP | S_IWOTH));
}

/* Where caches are kept; made when it is missing, inside of a directory that is the user's. */
static int open_base(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *parent = NULL;
        char *slash;

        if (fd >= 0)
                return is_own(fd, S_IFDIR) ? steal_fd(&fd) : -1;
        parent = strdup(path);
        slash = parent ? strrchr(parent, '/') : NULL;
        if (!slash || slash == parent)
                return -1;
        *slash = 0;
        _cleanup_close_ int parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (parent_fd < 0 || !is_own(parent_fd, S_IFDIR) || mkdirat(parent_fd, slash + 1, 0700))
                return -1;
        fd = openat(parent_fd, slash + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0 && is_own(fd, S_IFDIR) ? steal_fd(&fd) : -1;
}

static int open_inside(int base, const char *name)
{
        _cleanup_close_ int fd = -1;

        if (base < 0)
                return -1;
        (void)!mkdirat(base, name, 0700);
        fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0 && is_own(fd, S_IFDIR) ? steal_fd(&fd) : -1;
}

/* Relative paths are not taken, as the XDG base directory specification has it. */
int symbol_cache_open_directory(void)
{
        const char *own = secure_getenv("CAIRN_CACHE_DIR"), *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
        _cleanup_close_ int base = -1;
        char path[PATH_MAX];

        if (own)
                return own[0] == '/' ? open_base(own) : -1;
        if (xdg && xdg[0]) {
                base = xdg[0] == '/' ? open_base(xdg) : -1;
        } else if (home && home[0] == '/') {
                int n = snprintf(path, sizeof path, "%s/.cache", home);

                base = n < (int)sizeof path ? open_base(path) : -1;
        }
        return open_inside(base, "cairn");
}

/* ---- whose book ---- */

/*
 * A change leaves another ctime, which nobody can set back, unless it comes in
 * the same tick of the clock that the file system writes down: so a file that
 * changed a moment ago is not kept. Whole seconds mean a coarse clock.
 */
#define TICK_NS INT64_C(50000000)
#define COARSE_TICK_NS INT64_C(2000000000)

static bool is_settled(const struct stat *s)
{
        struct timespec now;
        int64_t age_ns;

        clock_gettime(CLOCK_REALTIME, &now);
        age_ns = (now.tv_sec - s->st_ctim.tv_sec) * INT64_C(1000000000) + now.tv_nsec - s->st_ctim.tv_nsec;
        return age_ns > (s->st_ctim.tv_nsec ? TICK_NS : COARSE_TICK_NS);
}

static void describe(struct buf *key, const char *what, const struct stat *s)
{
        buf_printf(key, "%s %llu %llu %lld %lld.%09ld %lld.%09ld\n", what, (unsigned long long)s->st_dev,
                   (unsigned long long)s->st_ino, (long long)s->st_size, (long long)s->st_mtim.tv_sec,
                   s->st_mtim.tv_nsec, (long long)s->st_ctim.tv_sec, s->st_ctim.tv_nsec);
}

/* Files without a build-id are mostly small ones of somebody who builds them over and over. */
#define HASHED_BYTES_MAX MiB(64)

static bool describe_content(struct buf *key, int fd)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        char hex[BUILD_ID_HEX_MAX];

        if (elf_image_from_fd(fd, "input", &img, NULL))
                return false;
        if (img.build_id.size)
                buf_printf(key, "build-id %s\n", build_id_hex(&img.build_id, hex));
        else if (img.size <= HASHED_BYTES_MAX)
                buf_printf(key, "hash %016llx\n", (unsigned long long)hash64(img.data, img.size));
        return true;
}

static bool describe_file(struct buf *key, const char *what, int fd, bool *settled)
{
        struct stat s;

        if (fd < 0)
                return true;
        if (fstat(fd, &s) || !S_ISREG(s.st_mode))
                return false;
        describe(key, what, &s);
        *settled &= is_settled(&s);
        return describe_content(key, fd);
}

/* Another build of this program may read the same file better. */
static bool describe_program(struct buf *key)
{
        struct stat s;

        if (stat("/proc/self/exe", &s))
                return false;
        describe(key, "cairn " CAIRN_VERSION, &s);
        return true;
}

static bool make_name(struct symbol_cache *c, const struct extract_inputs *in)
{
        _cleanup_buf_ struct buf key = { 0 };
        uint8_t digest[SHA256_BYTES];
        char hex[SHA256_HEX_MAX];
        struct sha256 hash;

        buf_init(&key, KiB(64));
        c->is_settled = true;
        if (!describe_program(&key) || !describe_file(&key, "debuginfo", in->debuginfo_fd, &c->is_settled) ||
            !describe_file(&key, "executable", in->executable_fd, &c->is_settled) ||
            !describe_file(&key, "altlink", in->altlink_fd, &c->is_settled) ||
            !describe_file(&key, "dwp", in->dwp_fd > 0 ? in->dwp_fd : -1, &c->is_settled) || key.failed || sha256_init(&hash, NULL))
                return false;
        sha256_update(&hash, key.data, key.size);
        sha256_final(&hash, digest);
        sha256_deinit(&hash);
        snprintf(c->name, sizeof c->name, "%s" SYMBOL_CACHE_SUFFIX, sha256_hex(digest, hex));
        return true;
}

/* ---- the cache ---- */

void symbol_cache_open(const struct extract_inputs *in, struct symbol_cache *ret)
{
        *ret = (struct symbol_cache){ .directory_fd = symbol_cache_open_directory() };
        if (ret->directory_fd >= 0 && !make_name(ret, in))
                symbol_cache_close(ret);
}

void symbol_cache_close(struct symbol_cache *c)
{
        cleanup_close(&c->directory_fd);
        c->directory_fd = -1;
}

bool symbol_cache_get(struct symbol_cache *c, struct symbol_book *ret)
{
        _cleanup_close_ int fd = -1;

        if (c->directory_fd < 0)
                return false;
        fd = openat(c->directory_fd, c->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || !is_own(fd, S_IFREG))
                return false;
        if (symbol_book_open(fd, c->name, ret, NULL)) {
                symbol_cache_drop(c);
                return false;
        }
        futimens(fd, NULL); /* used now */
        return true;
}

#define DISK_BLOCK_BYTES 4096 /* of most file systems: a file takes whole ones */

void symbol_cache_put(struct symbol_cache *c, const struct symbol_book *book, uint64_t max_bytes)
{
        uint64_t bytes = (book->map.size + DISK_BLOCK_BYTES - 1) & ~(uint64_t)(DISK_BLOCK_BYTES - 1);
        _cleanup_close_ int fd = -1;
        char temporary[64];

        if (c->directory_fd < 0 || !c->is_settled || bytes > max_bytes)
                return;
        symbol_cache_evict(c->directory_fd, max_bytes - bytes);
        snprintf(temporary, sizeof temporary, SYMBOL_CACHE_TEMPORARY "%d", (int)getpid());
        fd = openat(c->directory_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return;
        if (file_write_all(fd, book->map.data, book->map.size, temporary, NULL) ||
            renameat(c->directory_fd, temporary, c->directory_fd, c->name))
                unlinkat(c->directory_fd, temporary, 0);
}

void symbol_cache_drop(struct symbol_cache *c)
{
        if (c->directory_fd >= 0)
                unlinkat(c->directory_fd, c->name, 0);
}
