/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/object_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/memory/array.h"
#include "sampling/objects/mount_probe.h"
#include "sampling/objects/open_in_root.h"
#include "sampling/objects/vdso.h"

/* No padding: the bytes are the key. */
struct file_key {
        uint64_t device, inode, size;
        int64_t changed_s, changed_ns;
};

void object_cache_forget(struct object_cache *c)
{
        for (size_t i = 0; i < c->count; i++) {
                if (c->objects[i])
                        object_deinit(c->objects[i]);
                free(c->objects[i]);
        }
        id_table_deinit(&c->by_file);
        id_table_deinit(&c->by_mapping);
        c->count = 0;
}

void object_cache_deinit(struct object_cache *c)
{
        object_cache_forget(c);
        if (c->vdso)
                object_deinit(c->vdso);
        free(c->vdso);
        free(c->objects);
        *c = (struct object_cache){ 0 };
}

bool object_cache_is_full(const struct object_cache *c)
{
        return c->count >= LIMIT_AGENT_OBJECTS;
}

/* No padding: the bytes are the key. */
struct mapping_key {
        uint64_t device, inode, path;
};

static struct mapping_key make_mapping_key(const struct proc_mapping *m)
{
        return (struct mapping_key){ makedev(m->device_major, m->device_minor), m->inode,
                                     hash_bytes64(m->path, strlen(m->path)) };
}

static int reopen_if_same_file(int fd, const struct proc_mapping *mapping, bool same_device)
{
        struct stat st;

        if (fd < 0)
                return -1;
        if (fstat(fd, &st) == 0 && st.st_ino == mapping->inode &&
            (!same_device || st.st_dev == makedev(mapping->device_major, mapping->device_minor)))
                return fd;
        close(fd);
        return -1;
}

#define MAP_FILE_NAME 64

/* Format the mapping's name in the directory of the process. */
static void format_map_file_name(const struct proc_mapping *mapping, char ret[static MAP_FILE_NAME])
{
        snprintf(ret, MAP_FILE_NAME, "map_files/%" PRIx64 "-%" PRIx64, mapping->start, mapping->end);
}

/* Check before any access: an access to an unresponsive mount blocks forever. */
static bool is_file_responsive(int proc_fd, const struct proc_mapping *mapping, bool opens)
{
        const uint64_t device = makedev(mapping->device_major, mapping->device_minor);
        char name[MAP_FILE_NAME];

        format_map_file_name(mapping, name);
        return mount_probe_is_responsive(&(struct mount_probe_file){ .mount = device,
                                                                     .file = mapping->inode,
                                                                     .kind = MOUNT_PROBE_MAPPING,
                                                                     .proc_fd = proc_fd,
                                                                     .name = name,
                                                                     .path = mapping->deleted ? "" : mapping->path,
                                                                     .opens = opens });
}

/* Returns O_PATH descriptors: opening a device or FIFO for reading may have side effects. */
static int open_mapped_file(int proc_fd, const struct proc_mapping *mapping)
{
        char name[MAP_FILE_NAME];
        _cleanup_close_ int root = -1;
        int fd;

        format_map_file_name(mapping, name);
        fd = openat(proc_fd, name, O_PATH | O_CLOEXEC);
        if (fd >= 0 || mapping->deleted || mapping->path[0] != '/')
                return fd;
        root = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return root < 0 ? -1 : reopen_if_same_file(open_in_root(root, mapping->path, O_PATH), mapping, false);
}

static int open_host_file(const struct proc_mapping *mapping)
{
        if (mapping->deleted || mapping->path[0] != '/')
                return -1;
        return reopen_if_same_file(open(mapping->path, O_PATH | O_CLOEXEC), mapping, true);
}

static void notify_observer(const struct object_cache *c, const struct object *o, int proc_fd,
                            const struct proc_mapping *mapping, int *fd)
{
        if (c->observer)
                c->observer(c->observer_ctx, o, proc_fd, mapping, fd);
}

static struct object *read_object_file(struct object_cache *c, int path_fd, int proc_fd,
                                       const struct proc_mapping *mapping)
{
        _cleanup_close_ int fd = reopen_for_reading(path_fd);
        _cleanup_free_ struct object *o = NULL;

        if (fd < 0) { /* once for each file, since it is cached */
                log_info("agent", "'%s' gets no names: it cannot be read: %s", mapping->path, strerror(errno));
                return NULL;
        }
        o = calloc(1, sizeof *o);
        if (!o || object_read_fd(fd, o, NULL))
                return NULL;
        o->serial = ++c->last_serial;
        notify_observer(c, o, proc_fd, mapping, &fd);
        return steal_ptr(o);
}

int object_cache_open(int proc_fd, const struct proc_mapping *mapping)
{
        _cleanup_close_ int fd =
                mapping->inode && is_file_responsive(proc_fd, mapping, true) ? open_mapped_file(proc_fd, mapping) : -1;
        struct stat st;

        return fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -1 : reopen_for_reading(fd);
}

/* The image is from the kernel, so it is trusted; its program headers give the size. */
static void notify_observer_of_vdso(struct object_cache *c, const void *image, size_t size, int proc_fd,
                                    const struct proc_mapping *mapping)
{
        _cleanup_close_ int fd = c->observer ? memfd_create("vdso", MFD_CLOEXEC) : -1;

        if (fd >= 0 && !file_write_all(fd, image, size, "vdso", NULL))
                notify_observer(c, c->vdso, proc_fd, mapping, &fd);
}

static const struct object *get_vdso_object(struct object_cache *c, int proc_fd, const struct proc_mapping *mapping)
{
        const void *image;
        size_t size;

        if (mapping->start <= UINT32_MAX) /* 32-bit processes have another vDSO */
                return NULL;
        if (c->vdso_tried)
                return c->vdso;
        c->vdso_tried = true;
        if (!vdso_get_image(&image, &size))
                return NULL;
        c->vdso = calloc(1, sizeof *c->vdso);
        if (c->vdso && object_read_memory(image, size, c->vdso, NULL)) {
                free(c->vdso);
                c->vdso = NULL;
        }
        if (c->vdso) {
                c->vdso->serial = ++c->last_serial;
                notify_observer_of_vdso(c, image, size, proc_fd, mapping);
        }
        return c->vdso;
}

static struct file_key make_file_key(const struct stat *st)
{
        return (struct file_key){ st->st_dev, st->st_ino, (uint64_t)st->st_size, st->st_mtim.tv_sec,
                                  st->st_mtim.tv_nsec };
}

/* One system call instead of three for the common case of a known file. */
static bool find_cached_object(const struct object_cache *c, int proc_fd, const struct proc_mapping *mapping,
                               uint32_t *ret)
{
        char name[MAP_FILE_NAME];
        struct file_key key;
        struct stat st;

        format_map_file_name(mapping, name);
        if (fstatat(proc_fd, name, &st, 0) < 0 || !S_ISREG(st.st_mode))
                return false;
        key = make_file_key(&st);
        return id_table_find(&c->by_file, &key, sizeof key, ret);
}

static bool cache_object_of_file(struct object_cache *c, int fd, int proc_fd, const struct proc_mapping *mapping,
                                 uint32_t *ret)
{
        struct file_key key;
        struct stat st;

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        key = make_file_key(&st);
        if (id_table_find(&c->by_file, &key, sizeof key, ret))
                return true;
        if (!array_reserve(&c->objects, &c->capacity, c->count))
                return false;
        *ret = (uint32_t)c->count;
        if (!id_table_put(&c->by_file, &key, sizeof key, *ret))
                return false;
        c->objects[c->count++] = read_object_file(c, fd, proc_fd, mapping);
        return true;
}

const struct object *object_cache_get(struct object_cache *c, int proc_fd, const struct proc_mapping *mapping)
{
        struct mapping_key key;
        _cleanup_close_ int fd = -1;
        uint32_t number, before;
        bool cached;

        if (strcmp(mapping->path, "[vdso]") == 0)
                return get_vdso_object(c, proc_fd, mapping);
        if (!mapping->inode || object_cache_is_full(c))
                return NULL;
        key = make_mapping_key(mapping);
        cached = id_table_find(&c->by_mapping, &key, sizeof key, &before);
        if (!is_file_responsive(proc_fd, mapping, !cached))
                return cached ? c->objects[before] : NULL;
        if (!find_cached_object(c, proc_fd, mapping, &number)) {
                fd = open_mapped_file(proc_fd, mapping);
                if (fd < 0 && !cached)
                        fd = open_host_file(mapping);
                if (fd < 0)
                        return cached ? c->objects[before] : NULL;
                if (!cache_object_of_file(c, fd, proc_fd, mapping, &number))
                        return NULL;
        }
        if (!cached || number != before)
                (void)id_table_put(&c->by_mapping, &key, sizeof key, number); /* only needed for processes that exit */
        return c->objects[number];
}
