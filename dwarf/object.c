/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/object.h"

#include <stdlib.h>

#include "common/limits.h"
#include "dwarf/outline.h"

static void unload(struct dwarf_file *f)
{
        dwarf_sections_free(&f->sections);
        dwarf_units_deinit(&f->units);
}

static int64_t budget(const struct dwarf_object *o, enum dwarf_section_id id, uint64_t times)
{
        return (int64_t)((o->main.sections.data[id].size + o->alt.sections.data[id].size + KiB(64)) * times);
}

enum status dwarf_object_from_sections(struct dwarf_sections *main, struct dwarf_sections *alt, struct dwarf_object *ret,
                                       struct error *err)
{
        enum status st;

        *ret = (struct dwarf_object){ .outlines_lock = PTHREAD_MUTEX_INITIALIZER, .main.sections = *main,
                                      .alt.sections = *alt };
        st = dwarf_units_read(&ret->main.sections, &ret->main.units, err);
        if (!st)
                st = dwarf_units_read(&ret->alt.sections, &ret->alt.units, err);
        if (!st && !main->data[DWARF_INFO].size && !main->data[DWARF_LINE].size)
                st = main->damage.code ? error_set(err, main->damage.code, "%s", main->damage.text)
                                       : error_set(err, ST_NOT_FOUND, "there is no DWARF");
        if (st) {
                dwarf_object_close(ret);
                return st;
        }
        ret->budgets[DWARF_BUDGET_ABBREV] = budget(ret, DWARF_ABBREV, LIMIT_DWARF_ABBREV_REREAD);
        ret->budgets[DWARF_BUDGET_LINE] = budget(ret, DWARF_LINE, LIMIT_DWARF_REREAD);
        ret->budgets[DWARF_BUDGET_INFO] = budget(ret, DWARF_INFO, LIMIT_DWARF_REREAD);
        ret->budgets[DWARF_BUDGET_RANGES] = LIMIT_DWARF_RANGE_ENTRIES;
        return ST_OK;
}

enum status dwarf_object_open(const struct elf_image *img, const struct elf_image *alt, struct dwarf_object *ret,
                              struct error *err)
{
        struct dwarf_sections main_sections, alt_sections;
        enum status st = dwarf_sections_load(img, &main_sections, err);

        if (st)
                return st;
        dwarf_sections_init(&alt_sections, false);
        if (alt && (st = dwarf_sections_load(alt, &alt_sections, err))) {
                dwarf_sections_free(&main_sections);
                return st;
        }
        st = dwarf_object_from_sections(&main_sections, &alt_sections, ret, err);
        return st ? error_prefix(err, st, "cannot read the DWARF of '%s'", img->name) : ST_OK;
}

void dwarf_object_close(struct dwarf_object *o)
{
        for (size_t i = 0; i < DWARF_OUTLINE_BUCKETS; i++) {
                struct dwarf_outline *outline = o->outlines[i], *next;

                for (; outline; outline = next) {
                        next = outline->next;
                        dwarf_outline_deinit(outline);
                        free(outline);
                }
                o->outlines[i] = NULL;
        }
        unload(&o->main);
        unload(&o->alt);
}
