/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract_table() runs the sources from the most to the least precise: DWARF, Go's pclntab, ELF symbols, PLT,
 * boundaries of functions. Each one fills only what the earlier ones left open (symbolizer/table/gap_fill.h), so the
 * order is the precedence. Then the table is finished and the segments are added.
 *
 * ELF symbols are collected at the first use, and at most once: DWARF may need them for names of its functions, before
 * they are merged as a source of their own. A source that cannot be read becomes a note in the table's list of
 * unreadable parts; lack of memory, system errors and a full table are failures of the extraction.
 *
 * With an address filter the lesser sources are skipped if DWARF names all its addresses. The filter is dropped once
 * all units were read, which makes the table complete. Files prelinked to other addresses have a bias, as has the DWARF
 * of relocatable files: DWARF is read in its own addresses, then all is moved to those of the executable.
 *
 * Order: ELF symbols, PLT, Go, segments, DWARF, the observer's view, code maps, extract_table().
 */
#include "symbolizer/extraction/extract.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/limits.h"
#include "symbolizer/sources/dwarf_extract.h"
#include "symbolizer/extraction/prelink_bias.h"
#include "symbolizer/extraction/extract_files.h"
#include "symbolizer/extraction/minidebuginfo.h"
#include "symbolizer/extraction/extract_observer.h"
#include "symbolizer/sources/code_symbols.h"
#include "symbolizer/sources/function_boundaries.h"
#include "symbolizer/sources/function_symbols.h"
#include "symbolizer/sources/source_go.h"
#include "symbolizer/sources/source_plt.h"

#define PAGE_BYTES UINT64_C(4096) /* segments begin on a page; the first one holds the ELF header */

/* ---- ELF symbols ---- */

/* The symbols of both files, collected when first needed. */
struct elf_symbols {
        struct extract_files *files;
        const struct code_map *code;
        struct code_symbols symbols;
        struct extract_notes notes; /* tables that could not be read */
        bool is_collected;
        bool has_symbol_table; /* .symtab, with symbols of code */
};

/* Symbols of an unreadable table are left out. */
static enum status add_table_symbols(struct elf_symbols *e, const struct elf_image *img, uint32_t type,
                                     enum symbol_quality quality, struct error *err)
{
        const struct symbol_source source = { img, extract_files_running(e->files), quality,
                                              extract_files_prelink_bias(e->files, img) };
        size_t before = e->symbols.count;
        struct error reason;
        enum status st;

        if (!extract_file_is_open(img))
                return ST_OK;
        st = code_symbols_add(&e->symbols, &source, type, e->code, &reason);
        e->has_symbol_table = e->has_symbol_table || (quality == QUALITY_SYMTAB && e->symbols.count > before);
        return extract_notes_add_failure(&e->notes, st, &reason, err);
}

/* All symbol tables of both files combined; duplicates count once. */
static enum status collect_symbols(struct elf_symbols *e, struct error *err)
{
        struct extract_files *f = e->files;
        const struct {
                const struct elf_image *img;
                uint32_t type;
                enum symbol_quality quality;
        } tables[] = {
                { &f->debuginfo, SHT_SYMTAB, QUALITY_SYMTAB },   { &f->executable, SHT_SYMTAB, QUALITY_SYMTAB },
                { &f->mini, SHT_SYMTAB, QUALITY_MINIDEBUGINFO }, { &f->debuginfo, SHT_DYNSYM, QUALITY_DYNSYM },
                { &f->executable, SHT_DYNSYM, QUALITY_DYNSYM },
        };
        struct error reason;
        enum status st;

        if (e->is_collected)
                return ST_OK;
        st = minidebuginfo_open(extract_files_running(f), &f->mini_bytes, &f->mini, &reason);
        st = extract_notes_add_failure(&e->notes, st, &reason, err);
        for (size_t i = 0; !st && i < sizeof tables / sizeof *tables; i++)
                st = add_table_symbols(e, tables[i].img, tables[i].type, tables[i].quality, err);
        e->is_collected = !st;
        return st;
}

static enum status give_function_symbols(void *context, const struct code_symbols **ret)
{
        struct elf_symbols *e = context;

        *ret = &e->symbols;
        return collect_symbols(e, NULL);
}

/* Consumes the symbols. */
static enum status add_elf_symbols(struct elf_symbols *e, const struct address_filter *filter,
                                   struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        enum status st = collect_symbols(e, err);
        enum symbol_quality found;

        if (!st && e->notes.text[0])
                extract_notes_add(&e->files->notes, "%s", e->notes.text);
        if (!st && filter)
                st = code_symbols_filter(&e->symbols, filter, err);
        if (st)
                return st;
        found = code_symbols_fill(&e->symbols, b);
        if (*quality < found)
                *quality = found;
        return ST_OK;
}

/* The executable has the content of .plt; a debug file may have it. */
static enum status add_plt(const struct extract_files *f, struct symbol_table_builder *b, enum symbol_quality *quality,
                           struct error *err)
{
        const struct elf_image *images[] = { &f->executable, &f->debuginfo };
        bool used = false;

        for (size_t i = 0; i < 2 && !used; i++) {
                const struct elf_image *other = extract_file_is_open(images[1 - i]) ? images[1 - i] : NULL;
                enum status st =
                        extract_file_is_open(images[i]) ? fill_from_plt(images[i], other, b, &used, err) : ST_OK;

                if (st)
                        return st;
        }
        if (used && *quality < QUALITY_DYNSYM)
                *quality = QUALITY_DYNSYM;
        return ST_OK;
}

/* Only without a symbol table: what such a table leaves open is padding or data. */
static enum status add_boundaries(const struct elf_symbols *e, const struct address_filter *filter,
                                  struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        const struct boundary_input in = { .img = extract_files_running(e->files),
                                           .file_name = e->files->file_name,
                                           .code = e->code,
                                           .filter = filter };
        bool used = false;
        enum status st = !e->has_symbol_table ? fill_from_function_boundaries(&in, b, &used, err) : ST_OK;

        if (used && *quality < QUALITY_BOUNDARIES)
                *quality = QUALITY_BOUNDARIES;
        return st;
}

/* The pclntab is program data; in a debug file it usually has no content. */
static enum status add_go(struct extract_files *f, const struct code_map *code, struct symbol_table_builder *b,
                          enum symbol_quality *quality, struct error *err)
{
        const struct elf_image *images[] = { &f->executable, &f->debuginfo };
        struct go_summary go = { 0 };

        for (size_t i = 0; i < 2 && !go.used; i++) {
                struct error reason;
                enum status st = ST_OK;

                if (extract_file_is_open(images[i]))
                        st = fill_from_go_table(images[i], code, b, &go, &reason);
                st = extract_notes_add_failure(&f->notes, st, &reason, err);
                if (st)
                        return st;
                if (go.broken)
                        extract_notes_add(&f->notes,
                                          "%" PRIu64 " of %" PRIu64 " functions of the pclntab could not be read",
                                          go.broken, go.function_count);
        }
        if (go.used && *quality < QUALITY_GO_PCLNTAB)
                *quality = QUALITY_GO_PCLNTAB;
        return ST_OK;
}

static void add_segment(struct symbol_table *t, uint64_t offset, uint64_t size, uint64_t address)
{
        t->segments[t->segment_count++] = (struct symbol_segment){ offset, size, address };
}

static bool find_first_address(const struct elf_image *img, uint64_t *ret)
{
        bool found = false;

        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if ((s->flags & SHF_ALLOC) && (!found || s->address < *ret)) {
                        *ret = s->address;
                        found = true;
                }
        }
        return found;
}

/* Sections that keep their distance from the file to memory are one segment. */
static void add_code_section(struct symbol_table *t, const struct elf_section *s)
{
        struct symbol_segment *last = t->segment_count ? &t->segments[t->segment_count - 1] : NULL;

        if (last && s->offset >= last->file_offset + last->file_size &&
            s->offset - last->file_offset == s->address - last->address)
                last->file_size = s->offset + s->size - last->file_offset;
        else
                add_segment(t, s->offset, s->size, s->address);
}

/* An object file may have a section per function. More segments than a table may have are left out. */
static void add_code_sections(const struct elf_image *img, struct symbol_table *t)
{
        for (size_t i = 0; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (elf_section_is_code(s) && elf_section_has_content(s))
                        add_code_section(t, s);
        }
        if (t->segment_count > LIMIT_ELF_SEGMENTS) {
                t->segment_count = 0;
                add_segment(t, 0, 0, t->segments[0].address);
        }
}

/*
 * File offsets are those of the executable. The offsets of a debug file are unrelated, so only the address of its
 * first segment is kept, with size 0; without segments, the page of its first section. A kernel module has no segments;
 * its code sections replace them.
 */
static enum status add_segments(const struct extract_files *f, struct symbol_table *t, struct error *err)
{
        const struct elf_image *img = extract_files_running(f);
        bool runs = extract_file_is_open(&f->executable) || (elf_image_kind(img) & ELF_KIND_EXECUTABLE);
        uint64_t first = 0;

        t->segments = calloc(img->segment_count + img->section_count + 1, sizeof *t->segments);
        if (!t->segments)
                return error_no_memory(err);
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];

                if (s->type == PT_LOAD && runs && s->file_size)
                        add_segment(t, s->offset, s->file_size, s->address);
                else if (s->type == PT_LOAD && !runs && t->segment_count == 0)
                        add_segment(t, 0, 0, s->address);
        }
        if (!runs && t->segment_count == 0 && find_first_address(img, &first))
                add_segment(t, 0, 0, first & ~(PAGE_BYTES - 1));
        if (runs && !img->segment_count)
                add_code_sections(img, t);
        return ST_OK;
}

/* ---- DWARF ---- */

/* The work of symbol_table_extract(), with what is released at its end. */
struct extraction {
        struct extract_files files;
        struct code_map code, dwarf_code; /* in addresses of the executable; of the DWARF */
        struct elf_symbols elf;
        struct function_symbols functions; /* those of elf */
        struct symbol_table_builder builder;
};

static int compare_filter_addresses(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

/* Modulo 2^64, as the bias. @param moved_ret owned, also after a failure; addresses of ret */
static enum status move_filter(const struct address_filter *filter, uint64_t by, uint64_t **moved_ret,
                               struct address_filter *ret, struct error *err)
{
        uint64_t *moved = *moved_ret = calloc(filter->count + 1, sizeof *moved);

        if (!moved)
                return error_no_memory(err);
        for (size_t i = 0; i < filter->count; i++)
                moved[i] = filter->addresses[i] + by;
        qsort(moved, filter->count, sizeof *moved, compare_filter_addresses);
        *ret = *filter;
        ret->addresses = moved;
        return ST_OK;
}

/* In its own addresses. @param filter becomes NULL when all units were read. */
static enum status read_dwarf_ranges(struct extraction *x, const struct address_filter **filter,
                                     enum symbol_quality *quality, struct error *err)
{
        struct extract_files *f = &x->files;
        const struct dwarf_companions companions = extract_files_companions(f);
        const struct elf_image *img = extract_files_best(f);
        const struct dwarf_input input = { .img = img,
                                           .altlink = extract_files_altlink(f, img),
                                           .code = &x->dwarf_code,
                                           .companions = &companions,
                                           .filter = *filter,
                                           .symbols = &x->functions,
                                           .has_relative_paths = f->has_relative_paths };
        struct dwarf_summary dwarf = { .quality = QUALITY_NONE };
        struct error reason;
        enum status st = dwarf_extract(&input, &x->builder, &dwarf, &reason);

        if (st || dwarf.is_complete)
                *filter = NULL;
        if (st && x->builder.failed) {
                if (err)
                        *err = reason;
                return st;
        }
        *quality = dwarf.quality;
        extract_notes_add_dwarf(&f->notes, &dwarf);
        return extract_notes_add_failure(&f->notes, st, &reason, err);
}

/* @param filter becomes NULL when all units were read. */
static enum status add_dwarf_ranges(struct extraction *x, uint64_t dwarf_bias, const struct address_filter **filter,
                                    enum symbol_quality *quality, struct error *err)
{
        _cleanup_free_ uint64_t *addresses = NULL;
        const struct address_filter *read = *filter;
        struct address_filter moved;
        enum status st = ST_OK;

        if (read && dwarf_bias) {
                st = move_filter(*filter, -dwarf_bias, &addresses, &moved, err);
                read = &moved;
        }
        if (!st)
                st = read_dwarf_ranges(x, &read, quality, err);
        if (!read)
                *filter = NULL;
        add_prelink_bias(&x->builder, &x->dwarf_code, dwarf_bias);
        return st;
}

static bool are_all_named(struct symbol_table_builder *b, const struct address_filter *w)
{
        size_t named = 0;

        symbol_table_builder_settle(b);
        for (size_t i = 0; i < b->range_count && !b->failed; i++) {
                const struct symbol_range *r = &b->ranges[i];

                if (!symbol_table_builder_is_nameless(b, r->chain))
                        named += address_filter_lower_bound(w, r->end) - address_filter_lower_bound(w, r->start);
        }
        return named == w->count;
}

static enum status add_lesser_sources(struct elf_symbols *symbols, const struct address_filter *filter,
                                      struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        enum status st = add_go(symbols->files, symbols->code, b, quality, err);

        if (!st)
                st = add_elf_symbols(symbols, filter, b, quality, err);
        if (!st)
                st = add_plt(symbols->files, b, quality, err);
        return st ? st : add_boundaries(symbols, filter, b, quality, err);
}

static const struct elf_image *get_open_image(const struct elf_image *img)
{
        return extract_file_is_open(img) ? img : NULL;
}

static enum status show_result(const struct extract_files *f, const struct code_map *code, bool has_boundaries,
                               struct function_symbols *symbols, const struct symbol_table *t,
                               const struct extract_observer *o, struct error *err)
{
        const struct dwarf_companions companions = extract_files_companions(f);
        const struct elf_image *best = extract_files_best(f);
        const struct extract_view v = { .debuginfo = get_open_image(&f->debuginfo),
                                        .executable = get_open_image(&f->executable),
                                        .best = best,
                                        .altlink = extract_files_altlink(f, best),
                                        .mini = get_open_image(&f->mini),
                                        .code = code,
                                        .file_name = f->file_name,
                                        .has_boundaries = has_boundaries,
                                        .dwarf_bias = extract_files_dwarf_bias(f, best),
                                        .companions = &companions,
                                        .symbols = symbols };

        return o->done(o->context, &v, t, err);
}

/* In the addresses of the best file; one of debug sections alone has those of the executable. */
static enum status locate_code(const struct extract_files *f, struct code_map *ret, struct error *err)
{
        const struct elf_image *images[] = { extract_files_best(f), extract_files_running(f) };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < 2 && ret->count == 0; i++) {
                code_map_deinit(ret);
                st = code_map_from_image(images[i], ret, err);
        }
        if (!st && ret->count == 0)
                code_map_cover_all(ret);
        return st;
}

static enum status extract_table(struct extraction *x, const struct address_filter *filter,
                                 const struct extract_observer *o, struct symbol_table *t, struct error *err)
{
        struct extract_files *f = &x->files;
        struct symbol_table_builder *b = &x->builder;
        enum symbol_quality quality = QUALITY_NONE;
        uint64_t prelink_bias = extract_files_prelink_bias(f, extract_files_best(f));
        uint64_t dwarf_bias = extract_files_dwarf_bias(f, extract_files_best(f));
        enum status st;
        uint32_t partial;

        x->elf = (struct elf_symbols){ .files = f, .code = &x->code };
        x->functions = (struct function_symbols){ .collect = give_function_symbols,
                                                  .context = &x->elf,
                                                  .dwarf_bias = dwarf_bias };
        add_prelink_bias(b, &x->code, prelink_bias);                    /* no ranges yet */
        add_prelink_bias(b, &x->dwarf_code, prelink_bias - dwarf_bias); /* the same */
        st = add_dwarf_ranges(x, dwarf_bias, &filter, &quality, err);
        if (!st && o && o->dwarf) {
                symbol_table_builder_settle(b);
                st = o->dwarf(o->context, b, err);
        }
        if (!st && !(filter && are_all_named(b, filter)))
                st = add_lesser_sources(&x->elf, filter, b, &quality, err);
        if (st)
                return st;
        if (!filter && f->notes.text[0] && !b->failed && b->range_count == 0)
                return error_set(err, ST_BAD_DATA, "no symbol could be read: %s", f->notes.text);
        partial = symbol_table_builder_add_string(b, f->notes.text);
        st = symbol_table_builder_finish(b, t, err);
        if (!st) {
                t->quality = quality;
                t->partial = partial;
                t->is_complete = !filter;
                t->build_id = f->debuginfo.build_id.size ? f->debuginfo.build_id : f->executable.build_id;
                st = add_segments(f, t, err);
        }
        if (!st && o)
                st = show_result(f, &x->code, x->elf.is_collected && !x->elf.has_symbol_table, &x->functions, t, o,
                                 err);
        return st;
}

enum status symbol_table_extract(const struct extract_inputs *in, struct symbol_table *ret, struct error *err)
{
        return symbol_table_extract_observed(in, NULL, ret, err);
}

enum status symbol_table_extract_observed(const struct extract_inputs *in, const struct extract_observer *observer,
                                          struct symbol_table *ret, struct error *err)
{
        struct extraction x = { 0 };
        struct symbol_table t = { 0 };
        enum status st;

        symbol_table_builder_init(&x.builder);
        x.builder.has_positions = in->with_positions;
        x.files.has_relative_paths = in->has_relative_paths;
        x.files.file_name = in->file_name;
        st = extract_files_open(in, &x.files, err);
        if (!st)
                st = locate_code(&x.files, &x.code, err);
        if (!st)
                st = locate_code(&x.files, &x.dwarf_code, err);
        if (!st)
                st = extract_table(&x, in->filter, observer, &t, err);
        symbol_table_builder_deinit(&x.builder);
        function_symbols_deinit(&x.functions);
        code_symbols_deinit(&x.elf.symbols);
        code_map_deinit(&x.code);
        code_map_deinit(&x.dwarf_code);
        extract_files_close(&x.files);
        if (st) {
                symbol_table_deinit(&t);
                return st;
        }
        *ret = t;
        return ST_OK;
}
