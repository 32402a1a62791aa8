/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/dwarf_file.h"

#include <stdlib.h>

#include "dwarf/outline.h"
#include "dwarf/types.h"

enum status dwarf_file_init(struct dwarf_file *ret, const struct dwarf_sections *sections, struct error *err)
{
        *ret = (struct dwarf_file){ .sections = *sections, .lock = PTHREAD_MUTEX_INITIALIZER };
        return dwarf_units_read(&ret->sections, &ret->units, err);
}

void dwarf_file_deinit(struct dwarf_file *f)
{
        for (size_t i = 0; i < DWARF_OUTLINE_BUCKETS; i++) {
                struct dwarf_outline *outline = f->outlines[i], *next;

                for (; outline; outline = next) {
                        next = outline->next;
                        dwarf_outline_deinit(outline);
                        free(outline);
                }
                f->outlines[i] = NULL;
        }
        dwarf_types_destroy(atomic_load_explicit(&f->types, memory_order_relaxed));
        f->types = NULL;
        dwarf_sections_free(&f->sections);
        dwarf_units_deinit(&f->units);
}

static struct dwarf_outline **outline_bucket(struct dwarf_file *f, const struct dwarf_unit *unit)
{
        return &f->outlines[(uintptr_t)unit / sizeof *unit % DWARF_OUTLINE_BUCKETS];
}

struct dwarf_outline *dwarf_file_outline(struct dwarf_file *f, const struct dwarf_unit *unit)
{
        struct dwarf_outline *found;

        pthread_mutex_lock(&f->lock);
        found = *outline_bucket(f, unit);
        while (found && found->unit != unit)
                found = found->next;
        pthread_mutex_unlock(&f->lock);
        return found;
}

void dwarf_file_keep_outline(struct dwarf_file *f, struct dwarf_outline *outline)
{
        struct dwarf_outline **bucket = outline_bucket(f, outline->unit);

        pthread_mutex_lock(&f->lock);
        outline->next = *bucket;
        *bucket = outline;
        pthread_mutex_unlock(&f->lock);
}
