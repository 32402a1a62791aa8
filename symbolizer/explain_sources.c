/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "symbolizer/explain_internal.h"
#include "symbolizer/extract_displace.h"
#include "symbolizer/extract_symbols.h"
#include "symbolizer/source_go.h"
#include "symbolizer/source_plt.h"

const char *explain_source_name(enum explain_source s)
{
        static const enum symbol_quality qualities[] = {
                [EXPLAIN_GO] = QUALITY_GO_PCLNTAB,
                [EXPLAIN_SYMTAB] = QUALITY_SYMTAB,
                [EXPLAIN_MINIDEBUGINFO] = QUALITY_MINIDEBUGINFO,
                [EXPLAIN_DYNSYM] = QUALITY_DYNSYM,
        };

        return s == EXPLAIN_PLT ? "plt" : symbol_quality_name(qualities[s]);
}

uint64_t explain_displacement(const struct extract_view *v, const struct elf_image *img)
{
        const struct elf_image *runs = v->executable ? v->executable : v->debuginfo;

        return img == runs ? 0 : extract_displacement(runs, img);
}

static enum status add_symbols(const struct elf_image *img, uint32_t type, const struct extract_view *v,
                               struct code_symbols *symbols, struct error *err)
{
        const struct elf_section *s = img ? elf_image_section_of_type(img, type) : NULL;
        struct symbol_source source = { .img = img, .quality = QUALITY_SYMTAB };

        if (!s || !elf_section_has_content(s))
                return ST_OK;
        source.displacement = explain_displacement(v, img);
        return code_symbols_add(symbols, &source, s, v->code, err);
}

static enum status fill_symbols(const struct extract_view *v, enum explain_source source, struct symbol_table_builder *b,
                                struct error *err)
{
        uint32_t type = source == EXPLAIN_DYNSYM ? SHT_DYNSYM : SHT_SYMTAB;
        struct code_symbols symbols = { 0 };
        enum status st = ST_OK;

        if (source == EXPLAIN_MINIDEBUGINFO)
                st = add_symbols(v->mini, type, v, &symbols, err);
        else
                st = add_symbols(v->debuginfo, type, v, &symbols, err);
        if (!st && source != EXPLAIN_MINIDEBUGINFO)
                st = add_symbols(v->executable, type, v, &symbols, err);
        if (!st)
                code_symbols_fill(&symbols, b);
        code_symbols_deinit(&symbols);
        return st;
}

static enum status fill(const struct extract_view *v, enum explain_source source, struct symbol_table_builder *b,
                        struct error *err)
{
        const struct elf_image *images[] = { v->executable, v->debuginfo };
        struct go_summary go = { 0 };
        enum status st = ST_OK;

        if (source != EXPLAIN_GO && source != EXPLAIN_PLT)
                return fill_symbols(v, source, b, err);
        for (size_t i = 0; !st && i < 2 && !go.used; i++) {
                if (!images[i])
                        continue;
                st = source == EXPLAIN_GO ? source_go_fill(images[i], v->code, b, &go, err) :
                                            source_plt_fill(images[i], b, &go.used, err);
        }
        return st;
}

enum status explain_sources_make(const struct extract_view *v, struct explain_sources *ret, struct error *err)
{
        struct explain_sources s = { 0 };
        enum status st = ST_OK;

        for (enum explain_source i = 0; !st && i < EXPLAIN_SOURCE_COUNT; i++) {
                struct symbol_table_builder b;

                symbol_table_builder_init(&b);
                st = fill(v, i, &b, err);
                if (st != ST_NO_MEMORY && !b.failed) /* what it cannot read it leaves out, as the extraction does */
                        st = symbol_table_builder_finish(&b, &s.tables[i], err);
                symbol_table_builder_deinit(&b);
        }
        if (st) {
                explain_sources_deinit(&s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

void explain_sources_deinit(struct explain_sources *s)
{
        for (size_t i = 0; i < EXPLAIN_SOURCE_COUNT; i++)
                symbol_table_deinit(&s->tables[i]);
}

/* ---- chains ---- */

struct explain_chain explain_chain_find(const struct symbol_table *t, uint64_t address)
{
        const struct symbol_range *r = symbol_table_find(t, address);
        const struct symbol_chain *c = r ? &t->chains[r->chain] : NULL;

        if (!r)
                return (struct explain_chain){ .table = t };
        return (struct explain_chain){ t, t->frames + c->first_frame, c->frame_count, r->start, r->end };
}

const char *explain_function(const struct symbol_table *t, const struct symbol_table_frame *f)
{
        const struct symbol_function *function;

        if (f->function == SYMBOL_NO_FUNCTION)
                return "";
        function = &t->functions[f->function];
        return t->strings[function->linkage_name] ? t->strings + function->linkage_name : t->strings + function->name;
}

static const char *outermost(const struct explain_chain *c)
{
        return c->count ? explain_function(c->table, &c->frames[c->count - 1]) : "";
}

bool explain_same_function(const struct explain_chain *a, const struct explain_chain *b)
{
        return *outermost(a) && strcmp(outermost(a), outermost(b)) == 0;
}

bool explain_chain_equal(const struct explain_chain *a, const struct explain_chain *b)
{
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++) {
                const struct symbol_table_frame *x = &a->frames[i], *y = &b->frames[i];

                if (x->line != y->line || strcmp(a->table->strings + x->file, b->table->strings + y->file) != 0 ||
                    strcmp(explain_function(a->table, x), explain_function(b->table, y)) != 0)
                        return false;
        }
        return true;
}
