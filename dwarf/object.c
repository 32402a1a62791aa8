/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/object.h"

#include <stdlib.h>

#include "common/limits.h"
#include "dwarf/outline.h"

static enum status load(const struct elf_image *img, struct dwarf_file *ret, struct error *err)
{
        enum status st = dwarf_sections_load(img, &ret->sections, err);

        if (!st)
                st = dwarf_units_read(&ret->sections, &ret->units, err);
        if (st == ST_BAD_DATA)
                return error_prefix(err, st, "cannot read the DWARF of '%s'", img->name);
        return st;
}

static void unload(struct dwarf_file *f)
{
        dwarf_sections_free(&f->sections);
        dwarf_units_deinit(&f->units);
}

static int64_t budget(const struct dwarf_object *o, enum dwarf_section_id id, uint64_t times)
{
        return (int64_t)((o->main.sections.data[id].size + o->alt.sections.data[id].size + MiB(1)) * times);
}

enum status dwarf_object_open(const struct elf_image *img, const struct elf_image *alt, struct dwarf_object *ret,
                              struct error *err)
{
        enum status st;

        *ret = (struct dwarf_object){ .outlines_lock = PTHREAD_MUTEX_INITIALIZER };
        st = load(img, &ret->main, err);
        if (!st && alt)
                st = load(alt, &ret->alt, err);
        if (!st && !ret->main.sections.data[DWARF_INFO].size && !ret->main.sections.data[DWARF_LINE].size)
                st = error_set(err, ST_NOT_FOUND, "'%s' has no DWARF", img->name);
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
