/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/code_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "common/text.h"
#include "symbolizer/sources/source_plt.h"
#include "symbolizer/table/huge_array.h"
#include "symbolizer/table/interval_overlay.h"

#define STUB_SYMBOL_BYTES 16

enum { LEVEL_UNSIZED, LEVEL_SIZED };

void code_symbols_deinit(struct code_symbols *s)
{
        free(s->items);
        *s = (struct code_symbols){ 0 };
}

static bool names_code(const struct elf_image *img, const struct elf_symbol *sym)
{
        const struct elf_section *section;

        if (!sym->name[0] || sym->section == SHN_UNDEF || strcmp(sym->name, "_PROCEDURE_LINKAGE_TABLE_") == 0)
                return false;
        if (elf_symbol_is_function(sym))
                return true;
        /* Labels, except for mapping symbols (`$x`) and the assembler's local labels (.L); GHC has objects there. */
        if ((sym->type != STT_NOTYPE && sym->type != STT_OBJECT) || sym->name[0] == '$' || starts_with(sym->name, ".L"))
                return false;
        section = elf_image_section_at(img, sym->section);
        return section && (section->flags & SHF_EXECINSTR);
}

/*
 * Upper bound of a symbol's end: the end of its region; without a size also the end of its section, so that a symbol
 * at the end of a section does not cover the next one.
 */
static uint64_t find_symbol_end(const struct symbol_source *source, const struct elf_symbol *sym, uint64_t start,
                                uint64_t region_end)
{
        const struct elf_section *section = elf_image_section_at(source->img, sym->section);
        uint64_t end = region_end, begin = section ? section->address + source->prelink_bias : 0;

        if (sym->size > 0)
                return sym->size < end - start ? start + sym->size : end;
        if (section && begin <= start && section->size < end - begin)
                end = begin + section->size;
        return end > start ? end : start;
}

/*
 * mold names the stubs of the procedure linkage table, and lld moves the symbols of indirect functions to their stubs.
 * The table has to give the same names with and without them (source_plt.h).
 */
static bool is_stub_symbol(const struct elf_image *img, const struct elf_symbol *sym)
{
        const struct elf_section *section = elf_image_section_at(img, sym->section);

        return section && sym->size == 0 && is_plt_section(section);
}

/* Without the "$plt" or "$pltgot" of mold's. */
static size_t get_stub_name_size(const char *name)
{
        const char *suffix = strrchr(name, '$');

        return suffix > name && (strcmp(suffix, "$plt") == 0 || strcmp(suffix, "$pltgot") == 0)
                       ? (size_t)(suffix - name)
                       : elf_symbol_name_size(name);
}

static bool is_descriptor(const struct elf_image *img, const struct elf_symbol *sym)
{
        const struct elf_section *section = elf_image_section_at(img, sym->section);

        return img->machine == EM_PPC64 && section && strcmp(section->name, ".opd") == 0;
}

/* Replace the address of a function's descriptor by the first word in it, the address of the code. */
static void follow_descriptor(const struct elf_image *running, struct elf_symbol *sym)
{
        const struct elf_section *opd = elf_image_section(running, ".opd");
        const uint8_t *bytes;
        uint64_t entry;
        struct reader r;
        size_t size;

        if (!opd || elf_section_raw(running, opd, &bytes, &size, NULL))
                return;
        reader_init(&r, bytes, size);
        r.big_endian = running->big_endian;
        if (sym->value < opd->address || !reader_seek(&r, sym->value - opd->address) || !reader_u64(&r, &entry))
                return;
        sym->value = entry;
        sym->section = ELF_SECTION_ABS; /* not that of the descriptor */
}

enum status code_symbols_add(struct code_symbols *s, const struct symbol_source *source, uint32_t type,
                             const struct code_map *code, struct error *err)
{
        const struct elf_image *img = source->img;
        struct elf_symbol_cursor cursor;
        struct elf_symbol sym;
        enum status st = elf_symbols_begin_type(img, type, &cursor, err);

        if (st)
                return st;
        while (elf_symbols_next(&cursor, &sym)) {
                const struct code_region *region;
                struct code_symbol c;

                if (!names_code(img, &sym))
                        continue;
                if (is_descriptor(img, &sym))
                        follow_descriptor(source->running, &sym);
                c = (struct code_symbol){ .name = sym.name,
                                          .start = sym.value + source->prelink_bias,
                                          .binding = sym.binding,
                                          .source = source->quality };
                if (img->machine == EM_ARM)
                        c.start &= ~1ull; /* Thumb */
                region = code_map_find(code, c.start);
                if (!region)
                        continue;
                c.is_function = elf_symbol_is_function(&sym);
                c.is_sized = sym.size > 0;
                c.is_stub = is_stub_symbol(img, &sym);
                c.end = find_symbol_end(source, &sym, c.start, region->end);
                if (c.is_stub && c.end - c.start > STUB_SYMBOL_BYTES)
                        c.end = c.start + STUB_SYMBOL_BYTES;
                if (c.end == c.start)
                        continue;
                if (!huge_array_reserve(&s->items, &s->capacity, s->count))
                        return error_no_memory(err);
                s->items[s->count++] = c;
        }
        return ST_OK;
}

static int binding_rank(uint8_t binding)
{
        return binding == STB_GLOBAL || binding == STB_GNU_UNIQUE ? 0 : binding == STB_WEAK ? 1 : 2;
}

int compare_code_symbols(const void *a, const void *b)
{
        const struct code_symbol *x = a, *y = b;
        size_t under_x, under_y, size_x, size_y;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        if (x->is_function != y->is_function)
                return x->is_function ? -1 : 1;
        if (x->is_sized != y->is_sized)
                return x->is_sized ? -1 : 1;
        if (binding_rank(x->binding) != binding_rank(y->binding))
                return binding_rank(x->binding) - binding_rank(y->binding);
        under_x = strspn(x->name, "_");
        under_y = strspn(y->name, "_");
        if (under_x != under_y)
                return under_x < under_y ? -1 : 1;
        size_x = strlen(x->name);
        size_y = strlen(y->name);
        if (size_x != size_y)
                return size_x < size_y ? -1 : 1;
        return strcmp(x->name, y->name) ? strcmp(x->name, y->name) : (int)y->source - (int)x->source;
}

static void drop_duplicate_starts(struct code_symbols *s)
{
        size_t kept = 0;

        if (s->count)
                qsort(s->items, s->count, sizeof *s->items, compare_code_symbols);
        for (size_t i = 0; i < s->count; i++)
                if (kept == 0 || s->items[kept - 1].start != s->items[i].start)
                        s->items[kept++] = s->items[i];
        s->count = kept;
}

/* ---- for a few addresses ---- */

struct starts {
        uint64_t *items; /* owned */
        size_t count, capacity;
};

static bool starts_add(struct starts *s, uint64_t start)
{
        if (!huge_array_reserve(&s->items, &s->capacity, s->count))
                return false;
        s->items[s->count++] = start;
        return true;
}

static int compare_starts(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

/* The starts of symbols with a size that cover an address, and the last start before each address. */
static bool find_starts(const struct code_symbols *s, const struct address_filter *w, struct starts *ret)
{
        _cleanup_free_ uint64_t *last = calloc(w->count + 1, sizeof *last);
        bool ok = last != NULL;

        for (size_t i = 0; ok && i < s->count; i++) {
                const struct code_symbol *c = &s->items[i];
                size_t n = address_filter_lower_bound(w, c->start);

                if (n == w->count)
                        continue;
                if (c->start > last[n])
                        last[n] = c->start;
                if (c->is_sized && w->addresses[n] < c->end)
                        ok = starts_add(ret, c->start);
        }
        for (size_t n = 0; ok && n < w->count; n++) {
                if (n && last[n] < last[n - 1])
                        last[n] = last[n - 1];
                ok = starts_add(ret, last[n]);
        }
        return ok;
}

/*
 * All symbols with an equal start stay, since one of them is chosen later. The
 * others have no effect: a symbol without a size ends at the next start.
 */
enum status code_symbols_filter(struct code_symbols *s, const struct address_filter *filter, struct error *err)
{
        struct starts starts = { 0 };
        bool ok = find_starts(s, filter, &starts);
        size_t kept = 0;

        if (ok && starts.count)
                qsort(starts.items, starts.count, sizeof *starts.items, compare_starts);
        for (size_t i = 0; ok && starts.count && i < s->count; i++)
                if (bsearch(&s->items[i].start, starts.items, starts.count, sizeof *starts.items, compare_starts))
                        s->items[kept++] = s->items[i];
        s->count = kept;
        free(starts.items);
        return ok ? ST_OK : error_no_memory(err);
}

/* "pthread_create@@GLIBC_2.34" is pthread_create. */
static uint32_t add_symbol_function(struct symbol_table_builder *b, const struct code_symbol *c)
{
        size_t n = c->is_stub ? get_stub_name_size(c->name) : elf_symbol_name_size(c->name);
        _cleanup_buf_ struct buf name = { 0 };

        if (n == 0 || (c->name[n] == 0 && !c->is_stub))
                return symbol_table_builder_add_function(b, c->name, "");
        buf_init(&name, LIMIT_NAME_BYTES + 1);
        buf_append(&name, c->name, n);
        if (c->is_stub)
                buf_append_str(&name, "@plt");
        return symbol_table_builder_add_function(b, buf_cstr(&name) ? buf_cstr(&name) : c->name, "");
}

/* ---- ranges of the symbols ---- */

struct cover {
        struct symbol_table_builder *b;
        const struct code_symbols *symbols;
        const uint32_t *chains; /* by symbol; set during the overlay */
        struct source_ranges ranges;
        enum symbol_quality best;
};

static void add_cover_range(void *context, uint64_t start, uint64_t end, uint32_t item)
{
        struct cover *c = context;

        if (c->symbols->items[item].source > c->best)
                c->best = c->symbols->items[item].source;
        if (!source_ranges_add(&c->ranges, start, end, c->chains[item]))
                c->b->failed = ST_NO_MEMORY;
}

static void overlay_symbols(struct code_symbols *s, struct cover *c)
{
        struct interval_list list = { 0 };
        _cleanup_free_ uint32_t *chains = calloc(s->count + 1, sizeof *chains);
        bool ok = chains != NULL;

        for (size_t i = 0; ok && i < s->count; i++) {
                struct code_symbol *sym = &s->items[i];
                struct symbol_table_frame lone = { .function = add_symbol_function(c->b, sym) };

                chains[i] = symbol_table_builder_add_chain(c->b, &lone, 1);
                if (!sym->is_sized && i + 1 < s->count && s->items[i + 1].start < sym->end)
                        sym->end = s->items[i + 1].start;
                ok = interval_list_add(&list, (struct interval){ sym->start, sym->end, (uint32_t)i,
                                                                 sym->is_sized ? LEVEL_SIZED : LEVEL_UNSIZED });
        }
        c->chains = chains;
        if (!ok || !interval_list_overlay(&list, add_cover_range, c))
                c->b->failed = ST_NO_MEMORY;
        c->chains = NULL;
        interval_list_deinit(&list);
}

enum symbol_quality code_symbols_fill(struct code_symbols *s, struct symbol_table_builder *b)
{
        struct cover cover = { .b = b, .symbols = s };
        bool used;

        drop_duplicate_starts(s);
        overlay_symbols(s, &cover);
        used = fill_table_gaps(b, &cover.ranges);
        source_ranges_deinit(&cover.ranges);
        return used ? cover.best : QUALITY_NONE;
}
