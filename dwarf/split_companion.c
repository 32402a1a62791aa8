/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/split_companion.h"

#include <stdlib.h>

#include "dwarf/package.h"

static enum status init_companion_file(struct dwarf_companion *c, enum status st, const struct dwarf_sections *sections,
                                       struct dwarf_companion **ret)
{
        if (!st)
                st = dwarf_file_init(&c->file, sections, NULL);
        if (!st && !c->file.units.count)
                st = c->file.units.damage.code ? c->file.units.damage.code : ST_NOT_FOUND;
        if (st) {
                dwarf_companion_close(c);
                return st;
        }
        *ret = c;
        return ST_OK;
}

enum status dwarf_companion_from_fd(int fd, struct dwarf_companion **ret)
{
        struct dwarf_companion *c = calloc(1, sizeof *c);
        struct dwarf_sections sections;
        enum status st;

        if (!c)
                return ST_NO_MEMORY;
        st = elf_image_from_fd(fd, "companion", &c->image, NULL);
        if (!st)
                st = dwarf_sections_load(&c->image, DWARF_SPLIT, &sections, NULL);
        return init_companion_file(c, st, &sections, ret);
}

enum status dwarf_companion_from_package(const struct dwarf_package *p, uint64_t id, struct dwarf_companion **ret)
{
        struct dwarf_companion *c;
        struct dwarf_sections sections;
        enum status st = dwarf_package_find(p, &p->index, id, &sections);

        if (st)
                return st;
        c = calloc(1, sizeof *c);
        return c ? init_companion_file(c, ST_OK, &sections, ret) : ST_NO_MEMORY;
}

enum status dwarf_companion_of_type(const struct dwarf_package *p, uint64_t signature, struct dwarf_companion **ret)
{
        struct dwarf_companion *c;
        struct dwarf_sections sections;
        enum status st = dwarf_package_find(p, &p->types, signature, &sections);

        if (st)
                return st;
        if (sections.data[DWARF_TYPES].size)
                dwarf_sections_of_types(&sections, &sections);
        c = calloc(1, sizeof *c);
        return c ? init_companion_file(c, ST_OK, &sections, ret) : ST_NO_MEMORY;
}

void dwarf_companion_close(struct dwarf_companion *c)
{
        if (!c)
                return;
        dwarf_file_deinit(&c->file);
        elf_image_close(&c->image);
        free(c);
}
