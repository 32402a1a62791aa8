/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/types.h"

#include <stdlib.h>

static bool is_type(const struct dwarf_unit *u)
{
        return u->type == DW_UT_type || u->type == DW_UT_split_type;
}

static size_t count_types(const struct dwarf_units *units)
{
        size_t count = 0;

        for (size_t i = 0; i < units->count; i++)
                count += is_type(&units->items[i]);
        return count;
}

static void add(struct dwarf_types *t, struct dwarf_file *f)
{
        for (size_t i = 0; i < f->units.count; i++)
                if (is_type(&f->units.items[i]))
                        t->items[t->count++] = (struct dwarf_type){ .signature = f->units.items[i].signature, .file = f,
                                                                    .unit = &f->units.items[i] };
}

static int by_signature(const void *x, const void *y)
{
        const struct dwarf_type *a = x, *b = y;

        if (a->signature != b->signature)
                return a->signature < b->signature ? -1 : 1;
        if (a->file != b->file)
                return a->file->sections.holds_types ? 1 : -1;
        return a->unit < b->unit ? -1 : a->unit > b->unit;
}

static struct dwarf_types *make(struct dwarf_file *f)
{
        struct dwarf_types *t = calloc(1, sizeof *t);
        struct dwarf_sections sections;
        size_t count;

        if (!t)
                return NULL;
        dwarf_sections_of_types(&f->sections, &sections);
        if (dwarf_file_init(&t->old, &sections, NULL)) {
                dwarf_types_destroy(t);
                return NULL;
        }
        count = count_types(&f->units) + count_types(&t->old.units);
        t->items = calloc(count + 1, sizeof *t->items);
        if (!t->items) {
                dwarf_types_destroy(t);
                return NULL;
        }
        add(t, f);
        add(t, &t->old);
        qsort(t->items, t->count, sizeof *t->items, by_signature);
        return t;
}

void dwarf_types_destroy(struct dwarf_types *t)
{
        if (!t)
                return;
        dwarf_file_deinit(&t->old);
        free(t->items);
        free(t);
}

static struct dwarf_types *types_of(struct dwarf_file *f)
{
        struct dwarf_types *t = atomic_load_explicit(&f->types, memory_order_acquire);

        if (t)
                return t;
        pthread_mutex_lock(&f->lock);
        t = atomic_load_explicit(&f->types, memory_order_relaxed);
        if (!t) {
                t = make(f);
                atomic_store_explicit(&f->types, t, memory_order_release);
        }
        pthread_mutex_unlock(&f->lock);
        return t;
}

enum status dwarf_types_find(struct dwarf_file *f, uint64_t signature, struct dwarf_type **ret)
{
        struct dwarf_types *t = types_of(f);
        size_t low = 0, high = t ? t->count : 0;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (t->items[mid].signature < signature)
                        low = mid + 1;
                else
                        high = mid;
        }
        if (!t)
                return ST_NO_MEMORY;
        if (low == t->count || t->items[low].signature != signature)
                return ST_NOT_FOUND;
        *ret = &t->items[low];
        return ST_OK;
}
