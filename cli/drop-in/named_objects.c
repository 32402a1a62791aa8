/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/named_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/file_magic.h"
#include "common/cleanup.h"
#include "elf-image/elf_image.h"

static void destroy_object(struct named_object *object)
{
        if (object->source.close)
                object->source.close(object->source.context);
        object_symbols_close(&object->symbols);
        free(object->name);
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

static enum status open_object(struct named_objects *o, const char *name, struct named_object *object,
                               struct error *err)
{
        enum status st = read_object_class(name, object, err);
        struct debug_file_search search;

        if (!st && !o->are_debug_files_open) {
                st = debug_files_open(&o->debug_files, err);
                o->are_debug_files_open = !st;
        }
        if (st)
                return st;
        object->name = strdup(name);
        if (!object->name)
                return error_no_memory(err);
        search = debug_files_search(&o->debug_files);
        return answer_source_file(name, &search, true, o->has_relative_paths ? ANSWER_RELATIVE_DETAILS : ANSWER_DETAILS,
                                  &object->source, err);
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

enum status named_objects_get(struct named_objects *o, const char *name, struct named_object **ret, struct error *err)
{
        struct named_object *object;
        enum status st;

        o->time++;
        for (size_t i = 0; i < o->count; i++) {
                if (strcmp(o->items[i]->name, name) == 0) {
                        o->items[i]->used = o->time;
                        *ret = o->items[i];
                        return ST_OK;
                }
        }
        object = calloc(1, sizeof *object);
        if (!object)
                return error_no_memory(err);
        st = open_object(o, name, object, err);
        if (st) {
                destroy_object(object);
                return st;
        }
        object->used = o->time;
        *reserve_object_slot(o) = *ret = object;
        return ST_OK;
}

const struct object_symbols *named_objects_symbols(const struct named_objects *o, struct named_object *object)
{
        if (!object->are_symbols_read && object->is_elf &&
            object_symbols_open(object->name, &object->symbols, NULL) == ST_OK && o->has_untagged_symbols)
                object_symbols_untag(&object->symbols);
        object->are_symbols_read = true;
        return &object->symbols;
}

bool find_section_addresses(const char *path, const char *section, uint64_t *address_ret, uint64_t *size_ret)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };

        if (elf_image_open(path, &img, NULL))
                return false;
        for (size_t i = 1; i < img.section_count; i++) {
                if (strcmp(img.sections[i].name, section) == 0) {
                        *address_ret = img.sections[i].address;
                        *size_ret = img.sections[i].size;
                        return true;
                }
        }
        return false;
}
