/* SPDX-License-Identifier: Apache-2.0 */
#include "common/files/evict.h"

#include "common/memory/array.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES 512 /* unit of st_blocks */

struct kept_file {
        char *path; /* owned */
        struct timespec used;
        uint64_t bytes;
};

struct listing {
        struct kept_file *files; /* owned */
        size_t count, capacity;
        uint64_t bytes;
};

static void evict_list_add(struct listing *l, const char *path, const struct stat *s)
{
        if (!array_reserve(&l->files, &l->capacity, l->count))
                return;
        l->files[l->count] = (struct kept_file){ strdup(path), s->st_mtim, (uint64_t)s->st_blocks * BLOCK_BYTES };
        l->bytes += l->files[l->count].bytes;
        l->count += l->files[l->count].path != NULL;
}

static int compare_by_mtime(const void *a, const void *b)
{
        const struct kept_file *x = a, *y = b;

        if (x->used.tv_sec != y->used.tv_sec)
                return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

void evict_oldest_files(const char *directory, uint64_t max_bytes)
{
        char *const roots[] = { (char *)directory, NULL };
        FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
        struct listing l = { 0 };
        FTSENT *entry;

        while (walk && (entry = fts_read(walk)))
                if (entry->fts_info == FTS_F)
                        evict_list_add(&l, entry->fts_path, entry->fts_statp);
        if (walk)
                fts_close(walk);
        if (l.bytes > max_bytes)
                qsort(l.files, l.count, sizeof *l.files, compare_by_mtime);
        for (size_t i = 0; i < l.count; i++) {
                if (l.bytes > max_bytes && unlink(l.files[i].path) == 0)
                        l.bytes -= l.files[i].bytes;
                free(l.files[i].path);
        }
        free(l.files);
}
