/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/split_units.h"

#include "dwarf/constants.h"
#include "dwarf/context.h"
#include "dwarf/package.h"

/* Before version 5 the unit's DIE alone says that it is a skeleton. */
static bool may_be_skeleton(const struct dwarf_unit *u)
{
        return u->format.version >= 5 ? u->type == DW_UT_skeleton : u->type == DW_UT_none;
}

enum status dwarf_split_units(const struct elf_image *img, dwarf_split_each *each, void *context, struct error *err)
{
        struct dwarf_context x = { 0 };
        struct dwarf_object object;
        struct error why;
        enum status st;

        if (!elf_image_section(img, ".debug_addr")) /* every skeleton with code has its addresses there */
                return ST_OK;
        st = dwarf_object_open(img, NULL, &object, &why);
        if (st)
                return st == ST_NO_MEMORY ? error_no_memory(err) : ST_OK;
        for (size_t i = 0; !st && i < object.main.units.count; i++) {
                const struct dwarf_unit *u = &object.main.units.items[i];
                struct dwarf_die die;

                if (may_be_skeleton(u) && dwarf_context_peek(&x, &object, &object.main, u, &die) == ST_OK && x.dwo_id &&
                    x.dwo_name)
                        st = each(context, &(struct dwarf_split_unit){
                                                   .id = x.dwo_id, .directory = x.directory, .name = x.dwo_name });
        }
        dwarf_context_deinit(&x);
        dwarf_object_close(&object);
        return st;
}

enum status dwarf_split_file_id(const struct elf_image *img, uint64_t *ret, struct error *err)
{
        struct dwarf_sections sections, none;
        struct dwarf_context x = { 0 };
        struct dwarf_object object;
        uint64_t id = 0;
        enum status st;

        if (!elf_image_section(img, ".debug_info.dwo") || elf_image_section(img, ".debug_cu_index"))
                return error_set(err, ST_NOT_FOUND, "'%s' is not a .dwo file", img->name);
        dwarf_sections_init(&none, img->big_endian);
        st = dwarf_sections_load(img, DWARF_SPLIT, &sections, err);
        if (!st)
                st = dwarf_object_from_sections(&sections, &none, &object, err);
        if (st)
                return st == ST_NOT_FOUND ? error_set(err, ST_BAD_DATA, "'%s' has no units", img->name) : st;
        for (size_t i = 0; !id && i < object.main.units.count; i++) {
                const struct dwarf_unit *u = &object.main.units.items[i];
                struct dwarf_die die;

                if ((u->format.version >= 5 ? u->type == DW_UT_split_compile : u->type == DW_UT_none) &&
                    dwarf_context_peek(&x, &object, &object.main, u, &die) == ST_OK)
                        id = x.dwo_id;
        }
        dwarf_context_deinit(&x);
        dwarf_object_close(&object);
        if (!id)
                return error_set(err, ST_BAD_DATA, "no unit of '%s' has an id", img->name);
        *ret = id;
        return ST_OK;
}

struct counter {
        const struct dwarf_package *package;
        uint64_t referred;
};

static enum status count_if_skeleton(void *context, const struct dwarf_split_unit *unit)
{
        struct counter *c = context;
        uint32_t row;

        c->referred += dwarf_package_index_find(&c->package->index, unit->id, &row) == ST_OK;
        return ST_OK;
}

enum status dwarf_split_package_units(const struct elf_image *img, const struct elf_image *linked, uint64_t *units_ret,
                                      uint64_t *referred_ret, struct error *err)
{
        struct dwarf_package package;
        struct counter c = { .package = &package };
        enum status st = dwarf_package_open(img, &package, err);

        if (st)
                return st;
        if (linked)
                st = dwarf_split_units(linked, count_if_skeleton, &c, err);
        if (!st) {
                *units_ret = package.index.rows;
                *referred_ret = c.referred;
        }
        dwarf_package_close(&package);
        return st;
}
