/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbol_cache_evict.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/cleanup.h"

#define TEMPORARY_AGE_S 3600
#define BOOKS_MAX 65536 /* looked at in one go */
#define BOOKS_KEPT 16384
#define BLOCK_BYTES 512 /* of st_blocks */

struct kept_book {
        struct timespec used;
        uint64_t bytes;
        char name[96];
};

struct listing {
        struct kept_book *books; /* owned */
        size_t count, capacity;
        uint64_t bytes;
};

static bool ends_with(const char *name, const char *suffix)
{
        size_t n = strlen(name), m = strlen(suffix);

        return n >= m && strcmp(name + n - m, suffix) == 0;
}

static void add(struct listing *l, const char *name, const struct stat *s)
{
        if (!array_reserve(&l->books, &l->capacity, l->count))
                return;
        l->books[l->count] = (struct kept_book){ .used = s->st_mtim, .bytes = (uint64_t)s->st_blocks * BLOCK_BYTES };
        memcpy(l->books[l->count].name, name, strlen(name) + 1);
        l->bytes += l->books[l->count++].bytes;
}

static void look_at(struct listing *l, int directory_fd, const char *name)
{
        struct stat s;

        if (l->count == BOOKS_MAX || strlen(name) >= sizeof l->books->name || fstatat(directory_fd, name, &s, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(s.st_mode))
                return;
        if (strncmp(name, SYMBOL_CACHE_TEMPORARY, strlen(SYMBOL_CACHE_TEMPORARY)) == 0) {
                if (time(NULL) - s.st_mtim.tv_sec > TEMPORARY_AGE_S)
                        unlinkat(directory_fd, name, 0);
        } else if (ends_with(name, SYMBOL_CACHE_SUFFIX)) {
                add(l, name, &s);
        }
}

static int by_use(const void *a, const void *b)
{
        const struct kept_book *x = a, *y = b;

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
                look_at(&l, directory_fd, entry->d_name);
        closedir(directory);
        if (l.bytes > max_bytes || l.count > BOOKS_KEPT)
                qsort(l.books, l.count, sizeof *l.books, by_use);
        for (size_t i = 0; i < l.count && (l.bytes > max_bytes || l.count - i > BOOKS_KEPT); i++) {
                if (unlinkat(directory_fd, l.books[i].name, 0) == 0)
                        l.bytes -= l.books[i].bytes;
        }
        free(l.books);
}
