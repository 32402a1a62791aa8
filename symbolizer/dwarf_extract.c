/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarf_extract.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "symbolizer/dwarf_extract_run.h"
#include "symbolizer/dwarf_select.h"

static void note_missing(struct dwarf_summary *s, const struct dwarf_file *f)
{
        s->left_out += f->units.left_out;
        if (!s->missing.code)
                s->missing = f->sections.damage.code ? f->sections.damage : f->units.damage;
}

/* ---- all of it ---- */

static enum status extract_all(struct dwarf_extraction *x, struct error *err)
{
        _cleanup_free_ uint64_t *tables = calloc(x->object.main.units.count + 1, sizeof *tables);
        enum status st;

        if (!tables)
                return error_no_memory(err);
        x->tables = tables;
        x->wanted = NULL;
        x->units = NULL;
        x->unit_count = x->object.main.units.count;
        x->unit_bytes = x->object.main.sections.data[DWARF_INFO].size;
        x->summary.is_complete = true;
        st = dwarf_extraction_run(x, err);
        x->tables = NULL;
        return st;
}

/* ---- what covers a few addresses ---- */

/* Whether there are functions is said of the whole file; nearly always the first unit with code has one. */
static enum status count_a_function(struct dwarf_extraction *x, struct error *err)
{
        struct dwarf_reader *r;
        struct dwarf_code code;
        enum status st = dwarf_reader_create(&x->object, x->regions, &r, err);

        if (st)
                return st;
        dwarf_code_init(&code);
        for (size_t i = 0; !st && !x->function_count && i < x->object.main.units.count; i++) {
                st = dwarf_reader_unit(r, i, &code);
                x->function_count += code.function_count;
        }
        dwarf_code_deinit(&code);
        dwarf_reader_destroy(r);
        return st ? error_no_memory(err) : ST_OK;
}

static enum status extract_selected(struct dwarf_extraction *x, const struct wanted *w, struct dwarf_selection *selection,
                                    bool *enough_ret, struct error *err)
{
        enum status st = dwarf_select(&x->object, w, selection);
        uint64_t bytes = x->object.main.sections.data[DWARF_INFO].size;

        if (st)
                return error_no_memory(err);
        *enough_ret = selection->bytes * 100 <= bytes * w->max_percent;
        if (!*enough_ret)
                return ST_OK;
        x->tables = selection->tables;
        x->units = selection->units;
        x->unit_count = selection->count;
        x->unit_bytes = selection->bytes;
        x->wanted = w;
        st = dwarf_extraction_run(x, err);
        x->tables = NULL;
        if (!st && !x->function_count)
                st = count_a_function(x, err);
        if (!st)
                *enough_ret = x->function_count != 0;
        return st;
}

static enum status extract_wanted(struct dwarf_extraction *x, const struct wanted *w, struct error *err)
{
        struct dwarf_selection selection;
        bool enough = false;
        enum status st = extract_selected(x, w, &selection, &enough, err);

        dwarf_selection_deinit(&selection);
        if (st || enough)
                return st;
        dwarf_extraction_forget(x);
        symbol_table_builder_deinit(x->builder);
        symbol_table_builder_init(x->builder);
        return extract_all(x, err);
}

static void deinit(struct dwarf_extraction *x)
{
        dwarf_extraction_forget(x);
        dwarf_object_close(&x->object);
}

enum status dwarf_extract_wanted(const struct elf_image *img, const struct elf_image *altlink,
                                 const struct dwarf_companions *companions, const struct code_map *code,
                                 const struct wanted *wanted, struct symbol_table_builder *builder,
                                 struct dwarf_summary *ret, struct error *err)
{
        struct dwarf_extraction x = { .builder = builder, .lock = PTHREAD_MUTEX_INITIALIZER,
                                .changed = PTHREAD_COND_INITIALIZER };
        _cleanup_free_ struct dwarf_region *regions = calloc(code->count + 1, sizeof *regions);
        enum status st;

        if (!regions)
                return error_no_memory(err);
        for (size_t i = 0; i < code->count; i++)
                regions[i] = (struct dwarf_region){ code->regions[i].start, code->regions[i].end };
        x.regions = (struct dwarf_regions){ regions, code->count };
        st = dwarf_object_open(img, altlink, &x.object, err);
        if (st == ST_NOT_FOUND) {
                *ret = (struct dwarf_summary){ .quality = QUALITY_NONE, .is_complete = true };
                return ST_OK;
        }
        if (st)
                return st;
        if (companions)
                x.object.companions = *companions;
        st = wanted ? extract_wanted(&x, wanted, err) : extract_all(&x, err);
        if (!st) {
                *ret = x.summary;
                note_missing(ret, &x.object.main);
                note_missing(ret, &x.object.alt);
                ret->quality = x.function_count ? QUALITY_DWARF : builder->range_count ? QUALITY_LINES : QUALITY_NONE;
        }
        deinit(&x);
        return st;
}

enum status dwarf_extract(const struct elf_image *img, const struct elf_image *altlink, const struct code_map *code,
                          struct symbol_table_builder *builder, struct dwarf_summary *ret, struct error *err)
{
        return dwarf_extract_wanted(img, altlink, NULL, code, NULL, builder, ret, err);
}
