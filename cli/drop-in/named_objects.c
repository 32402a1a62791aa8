/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/named_objects.h"

#include <ar.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/file_magic.h"
#include "common/cleanup.h"
#include "elf-image/elf_image.h"
#include "symbolizer/extraction/relocatable.h"

static void destroy_object(struct named_object *object)
{
        if (object->source.close)
                object->source.close(object->source.context);
        object_symbols_close(&object->symbols);
        if (object->fd >= 0)
                close(object->fd);
        free(object->name);
        free(object->path);
        free(object);
}

void named_objects_deinit(struct named_objects *o)
{
        for (size_t i = 0; i < o->count; i++)
                destroy_object(o->items[i]);
        o->count = 0;
        if (o->are_debug_files_open)
                debug_files_close(&o->debug_files);
        o->are_debug_files_open = false;
}

/* The class; ST_BAD_DATA if it is neither ELF nor compressed. */
static enum status read_object_class(const char *name, struct named_object *object, struct error *err)
{
        _cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        unsigned char ident[EI_NIDENT] = { 0 };
        struct stat st;

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", name);
        if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
                return error_os(err, EISDIR, "cannot open '%s'", name);
        object->is_64 = true;
        if (!S_ISREG(st.st_mode) || (!elf_magic_at_fd(fd) && !compressed_magic_at_fd(fd)))
                return error_set(err, ST_BAD_DATA, "'%s' is not an ELF file", name);
        object->is_elf = elf_magic_at_fd(fd);
        if (object->is_elf && pread(fd, ident, sizeof ident, 0) == (ssize_t)sizeof ident)
                object->is_64 = ident[EI_CLASS] != ELFCLASS32;
        return ST_OK;
}

bool is_object_archive(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char magic[SARMAG];

        return fd >= 0 && pread(fd, magic, SARMAG, 0) == SARMAG &&
               (memcmp(magic, ARMAG, SARMAG) == 0 || memcmp(magic, "!<thin>\n", SARMAG) == 0);
}

static enum status open_debug_files(struct named_objects *o, struct error *err)
{
        enum status st = o->are_debug_files_open ? ST_OK : debug_files_open(&o->debug_files, err);

        o->are_debug_files_open = !st;
        return st;
}

static enum status open_object(struct named_objects *o, struct named_object *object, struct error *err)
{
        enum status st = read_object_class(object->path, object, err);
        struct debug_file_search search;

        if (!st)
                st = open_debug_files(o, err);
        if (st)
                return st;
        search = debug_files_search(&o->debug_files);
        return answer_source_file(object->path, &search, true,
                                  o->has_relative_paths ? ANSWER_RELATIVE_DETAILS : ANSWER_DETAILS, &object->source,
                                  err);
}

/* A free place, that of the least recently used object if there is none. */
static struct named_object **reserve_object_slot(struct named_objects *o)
{
        size_t oldest = 0;

        if (o->count < OPEN_OBJECTS_MAX)
                return &o->items[o->count++];
        for (size_t i = 1; i < o->count; i++)
                if (o->items[i]->used < o->items[oldest]->used)
                        oldest = i;
        destroy_object(o->items[oldest]);
        return &o->items[oldest];
}

static struct named_object *find_open_object(struct named_objects *o, const char *name)
{
        o->time++;
        for (size_t i = 0; i < o->count; i++) {
                if (strcmp(o->items[i]->name, name) == 0) {
                        o->items[i]->used = o->time;
                        return o->items[i];
                }
        }
        return NULL;
}

/* @param fd  taken; -1 none */
static enum status add_object(struct named_objects *o, const char *name, const char *path, int fd,
                              struct named_object **ret, struct error *err)
{
        struct named_object *object = calloc(1, sizeof *object);
        enum status st = ST_OK;

        if (!object) {
                if (fd >= 0)
                        close(fd);
                return error_no_memory(err);
        }
        object->fd = fd;
        object->name = strdup(name);
        object->path = strdup(path);
        if (!object->name || !object->path)
                st = error_no_memory(err);
        if (!st)
                st = open_object(o, object, err);
        if (st) {
                destroy_object(object);
                return st;
        }
        object->used = o->time;
        *reserve_object_slot(o) = *ret = object;
        return ST_OK;
}

enum status named_objects_get(struct named_objects *o, const char *name, struct named_object **ret, struct error *err)
{
        struct named_object *object = find_open_object(o, name);

        if (!object)
                return add_object(o, name, name, -1, ret, err);
        *ret = object;
        return ST_OK;
}

/* ---- objects by build-id ---- */

/* @param ret  a descriptor that path refers to, owned; -1: path is that of a file in the debug directory. */
static enum status find_build_id_file(struct named_objects *o, const char *id, char *path, size_t size, int *ret,
                                      struct error *err)
{
        struct build_id build_id;
        enum status st = ST_OK;
        int n = snprintf(path, size, "%s/.build-id/%.2s/%s.debug", o->debug_files.directory, id,
                         strlen(id) > 2 ? id + 2 : "");

        *ret = -1;
        if (!build_id_from_hex(&build_id, id, strlen(id)) || n < 0 || (size_t)n >= size)
                return error_set(err, ST_NOT_FOUND, "could not find build ID");
        if (access(path, R_OK) == 0)
                return ST_OK;
        st = open_debug_files(o, err);
        if (st)
                return st;
        *ret = debug_files_fetch(&o->debug_files, &build_id, id);
        if (*ret < 0)
                return error_set(err, ST_NOT_FOUND, "could not find build ID");
        snprintf(path, size, "/proc/self/fd/%d", *ret);
        return ST_OK;
}

enum status named_objects_get_build_id(struct named_objects *o, const char *id, struct named_object **ret,
                                       struct error *err)
{
        struct named_object *object;
        char path[4096], name[BUILD_ID_HEX_MAX] = "";
        enum status st;
        int fd;

        for (size_t i = 0; id[i] && i + 1 < sizeof name; i++)
                name[i] = (char)toupper((unsigned char)id[i]);
        object = find_open_object(o, name);
        if (object) {
                *ret = object;
                return ST_OK;
        }
        st = find_build_id_file(o, id, path, sizeof path, &fd, err);
        return st ? st : add_object(o, name, path, fd, ret, err);
}

const struct object_symbols *named_objects_symbols(const struct named_objects *o, struct named_object *object)
{
        if (!object->are_symbols_read && object->is_elf &&
            object_symbols_open(object->path, o->symbol_preference, &object->symbols, NULL) == ST_OK &&
            o->has_untagged_symbols)
                object_symbols_untag(&object->symbols);
        object->are_symbols_read = true;
        return &object->symbols;
}

bool find_section_addresses(const char *path, const char *section, uint64_t *address_ret, uint64_t *size_ret)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_free_ uint64_t *placed = NULL;

        if (elf_image_open(path, &img, NULL) || (img.type == ET_REL && relocatable_place_sections(&img, &placed, NULL)))
                return false;
        for (size_t i = 1; i < img.section_count; i++) {
                if (strcmp(img.sections[i].name, section) == 0) {
                        *address_ret = placed ? placed[i] : img.sections[i].address;
                        *size_ret = img.sections[i].size;
                        return true;
                }
        }
        return false;
}
