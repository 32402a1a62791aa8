/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbols/held_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/open_files.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "sampling/objects/object_cache.h"
#include "sampling/objects/open_in_root.h"
#include "symbolizer/extraction/debug_file_search.h"

struct held_file {
        struct build_id id;
        char *name; /* owned */
        int fd;
        int debug; /* its debug file from the process's root directory; -1 none */
};

void held_files_init(struct held_files *h)
{
        uint64_t most = raise_open_files_limit(2 * LIMIT_RECORD_FILES) / 2;

        *h = (struct held_files){ .max = most < LIMIT_RECORD_FILES ? most : LIMIT_RECORD_FILES };
}

void held_files_deinit(struct held_files *h)
{
        for (size_t i = 0; i < h->count; i++) {
                free(h->items[i].name);
                close(h->items[i].fd);
                cleanup_close(&h->items[i].debug);
        }
        free(h->items);
        *h = (struct held_files){ 0 };
}

static struct held_file *find_held_file(const struct held_files *h, const struct build_id *id, const char *name)
{
        for (size_t i = 0; i < h->count; i++)
                if (id->size ? build_id_equal(&h->items[i].id, id)
                             : !h->items[i].id.size && strcmp(h->items[i].name, name) == 0)
                        return &h->items[i];
        return NULL;
}

/* By build-id, below the root directory of a process in another root than ours. Only regular files are opened. */
static int open_container_debug_file(int proc_fd, const struct build_id *id)
{
        _cleanup_close_ int root = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), found = -1;
        char hex[BUILD_ID_HEX_MAX], path[sizeof DEBUG_DIRECTORY + BUILD_ID_HEX_MAX + 32];
        struct stat own, its;

        if (id->size < 2 || root < 0 || stat("/", &own) < 0 || fstat(root, &its) < 0 ||
            (own.st_dev == its.st_dev && own.st_ino == its.st_ino))
                return -1;
        build_id_hex(id, hex);
        snprintf(path, sizeof path, DEBUG_DIRECTORY "/.build-id/%.2s/%s.debug", hex, hex + 2);
        found = open_in_root(root, path, O_PATH);
        if (found < 0 || fstat(found, &its) < 0 || !S_ISREG(its.st_mode))
                return -1;
        snprintf(path, sizeof path, "/proc/self/fd/%d", found);
        return open(path, O_RDONLY | O_CLOEXEC);
}

void held_files_observe(void *ctx, const struct object *object, int proc_fd, const struct proc_mapping *mapping,
                        int *fd)
{
        struct held_files *h = ctx;
        struct held_file file = { .id = object->build_id, .debug = -1 };

        if (find_held_file(h, &object->build_id, mapping->path))
                return;
        if (h->count < h->max && array_reserve(&h->items, &h->capacity, h->count))
                file.name = strdup(mapping->path);
        if (!file.name) {
                h->missed++;
                return;
        }
        file.debug = open_container_debug_file(proc_fd, &object->build_id);
        file.fd = steal_fd(fd);
        h->items[h->count++] = file;
}

static bool is_same_file(const char *path, int fd)
{
        struct stat by_path, held;

        return path[0] == '/' && stat(path, &by_path) == 0 && fstat(fd, &held) == 0 && by_path.st_dev == held.st_dev &&
               by_path.st_ino == held.st_ino;
}

bool held_files_find(const struct held_files *h, const struct build_id *id, const char *name,
                     char ret[static HELD_PATH_SIZE])
{
        const struct held_file *file = find_held_file(h, id, name);

        /* Opening it by name also finds a debug file beside it. */
        if (!file || is_same_file(name, file->fd))
                return false;
        snprintf(ret, HELD_PATH_SIZE, "/proc/self/fd/%d", file->debug >= 0 ? file->debug : file->fd);
        return true;
}
