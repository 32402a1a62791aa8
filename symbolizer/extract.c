/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/limits.h"
#include "symbolizer/dwarf_extract.h"
#include "symbolizer/extract_displace.h"
#include "symbolizer/extract_files.h"
#include "symbolizer/extract_mini.h"
#include "symbolizer/extract_observer.h"
#include "symbolizer/extract_symbols.h"
#include "symbolizer/source_go.h"
#include "symbolizer/source_plt.h"

/* A table that cannot be read leaves its symbols out. */
static enum status add_symbols_of(struct extract_files *f, const struct elf_image *img, uint32_t type,
                                  enum symbol_quality quality, const struct code_map *code,
                                  struct code_symbols *symbols, struct error *err)
{
        const struct elf_section *s = extract_file_is_open(img) ? elf_image_section_of_type(img, type) : NULL;
        const struct symbol_source source = { img, quality, extract_files_displacement(f, img) };
        struct error reason;

        if (!s || !elf_section_has_content(s))
                return ST_OK;
        return extract_note_failure(&f->notes, code_symbols_add(symbols, &source, s, code, &reason), &reason, err);
}

/* Every symbol table of both files, as one: what is in two of them counts once. */
static enum status collect_symbols(struct extract_files *f, const struct code_map *code, struct code_symbols *symbols,
                                   struct error *err)
{
        const struct {
                const struct elf_image *img;
                uint32_t type;
                enum symbol_quality quality;
        } tables[] = {
                { &f->debuginfo, SHT_SYMTAB, QUALITY_SYMTAB },  { &f->executable, SHT_SYMTAB, QUALITY_SYMTAB },
                { &f->mini, SHT_SYMTAB, QUALITY_MINIDEBUGINFO }, { &f->debuginfo, SHT_DYNSYM, QUALITY_DYNSYM },
                { &f->executable, SHT_DYNSYM, QUALITY_DYNSYM },
        };
        struct error reason;
        enum status st = minidebuginfo_open(extract_files_running(f), &f->mini_bytes, &f->mini, &reason);

        st = extract_note_failure(&f->notes, st, &reason, err);
        for (size_t i = 0; !st && i < sizeof tables / sizeof *tables; i++)
                st = add_symbols_of(f, tables[i].img, tables[i].type, tables[i].quality, code, symbols, err);
        return st;
}

static enum status add_symbols(struct extract_files *f, const struct code_map *code, const struct wanted *wanted,
                               struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        struct code_symbols symbols = { 0 };
        enum status st = collect_symbols(f, code, &symbols, err);

        if (!st && wanted)
                st = code_symbols_keep(&symbols, wanted, err);
        if (!st) {
                enum symbol_quality found = code_symbols_fill(&symbols, b);

                if (*quality < found)
                        *quality = found;
        }
        code_symbols_deinit(&symbols);
        return st;
}

/* Only the file that runs has the bytes for certain; a split debug file may have kept them. */
static enum status add_plt(const struct extract_files *f, struct symbol_table_builder *b, enum symbol_quality *quality,
                           struct error *err)
{
        const struct elf_image *images[] = { &f->executable, &f->debuginfo };
        bool used = false;

        for (size_t i = 0; i < 2 && !used; i++) {
                enum status st = extract_file_is_open(images[i]) ? source_plt_fill(images[i], b, &used, err) : ST_OK;

                if (st)
                        return st;
        }
        if (used && *quality < QUALITY_DYNSYM)
                *quality = QUALITY_DYNSYM;
        return ST_OK;
}

/* The table is data of the program; in a debug file of its own it is most often without content. */
static enum status add_go(struct extract_files *f, const struct code_map *code, struct symbol_table_builder *b,
                          enum symbol_quality *quality, struct error *err)
{
        const struct elf_image *images[] = { &f->executable, &f->debuginfo };
        struct go_summary go = { 0 };

        for (size_t i = 0; i < 2 && !go.used; i++) {
                struct error reason;
                enum status st = ST_OK;

                if (extract_file_is_open(images[i]))
                        st = source_go_fill(images[i], code, b, &go, &reason);
                st = extract_note_failure(&f->notes, st, &reason, err);
                if (st)
                        return st;
                if (go.broken)
                        extract_note(&f->notes, "%" PRIu64 " of %" PRIu64 " functions of the pclntab could not be read",
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

/*
 * File offsets are those of the file that runs; a debug file's own have nothing to do with them, so of it only the
 * address of the first segment is kept, as one without bytes. A kernel module has no segments; its sections of code
 * stand for them.
 */
static enum status add_segments(const struct extract_files *f, struct symbol_table *t, struct error *err)
{
        const struct elf_image *img = extract_files_running(f);
        bool runs = extract_file_is_open(&f->executable) || (elf_image_kind(img) & ELF_KIND_EXECUTABLE);

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
        for (size_t i = 0; runs && !img->segment_count && i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if ((s->flags & SHF_EXECINSTR) && (s->flags & SHF_ALLOC) && elf_section_has_content(s))
                        add_segment(t, s->offset, s->size, s->address);
        }
        return ST_OK;
}

/* @param wanted becomes NULL when all was read. */
static enum status add_dwarf(struct extract_files *f, const struct code_map *code, const struct wanted **wanted,
                             struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        const struct dwarf_companions companions = extract_files_companions(f);
        const struct elf_image *img = extract_files_best(f);
        struct dwarf_summary dwarf = { .quality = QUALITY_NONE };
        struct error reason;
        enum status st = dwarf_extract_wanted(img, extract_files_altlink(f, img), &companions, code, *wanted, b, &dwarf,
                                              &reason);

        if (st || dwarf.is_complete)
                *wanted = NULL;
        if (st && b->failed) {
                if (err)
                        *err = reason;
                return st;
        }
        *quality = dwarf.quality;
        extract_note_dwarf(&f->notes, &dwarf);
        return extract_note_failure(&f->notes, st, &reason, err);
}

static bool all_named(struct symbol_table_builder *b, const struct wanted *w)
{
        size_t named = 0;

        symbol_table_builder_settle(b);
        for (size_t i = 0; i < b->range_count && !b->failed; i++) {
                const struct symbol_range *r = &b->ranges[i];

                if (!symbol_table_builder_is_nameless(b, r->chain))
                        named += wanted_from(w, r->end) - wanted_from(w, r->start);
        }
        return named == w->count;
}

static enum status add_others(struct extract_files *f, const struct code_map *code, const struct wanted *wanted,
                              struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        enum status st = add_go(f, code, b, quality, err);

        if (!st)
                st = add_symbols(f, code, wanted, b, quality, err);
        return st ? st : add_plt(f, b, quality, err);
}

static const struct elf_image *or_null(const struct elf_image *img)
{
        return extract_file_is_open(img) ? img : NULL;
}

static enum status show(const struct extract_files *f, const struct code_map *code, const struct symbol_table *t,
                        const struct extract_observer *o, struct error *err)
{
        const struct dwarf_companions companions = extract_files_companions(f);
        const struct elf_image *best = extract_files_best(f);
        const struct extract_view v = { .debuginfo = or_null(&f->debuginfo),
                                        .executable = or_null(&f->executable),
                                        .best = best,
                                        .altlink = extract_files_altlink(f, best),
                                        .mini = or_null(&f->mini),
                                        .code = code,
                                        .displacement = extract_files_displacement(f, best),
                                        .companions = &companions };

        return o->done(o->context, &v, t, err);
}

static enum status extract(struct extract_files *f, struct code_map *code, const struct wanted *wanted,
                           struct symbol_table_builder *b, const struct extract_observer *o, struct symbol_table *t,
                           struct error *err)
{
        enum symbol_quality quality = QUALITY_NONE;
        uint64_t displacement = extract_files_displacement(f, extract_files_best(f));
        enum status st;
        uint32_t partial;

        if (displacement)
                wanted = NULL; /* these are addresses of the file that runs */
        st = add_dwarf(f, code, &wanted, b, &quality, err);
        if (displacement)
                extract_displace(b, code, displacement);
        if (!st && o) {
                symbol_table_builder_settle(b);
                st = o->dwarf(o->context, b, err);
        }
        if (!st && !(wanted && all_named(b, wanted)))
                st = add_others(f, code, wanted, b, &quality, err);
        if (st)
                return st;
        if (!wanted && f->notes.text[0] && !b->failed && b->range_count == 0)
                return error_set(err, ST_BAD_DATA, "no symbol could be read: %s", f->notes.text);
        partial = symbol_table_builder_string(b, f->notes.text);
        st = symbol_table_builder_finish(b, t, err);
        if (!st) {
                t->quality = quality;
                t->partial = partial;
                t->is_complete = !wanted;
                t->build_id = f->debuginfo.build_id.size ? f->debuginfo.build_id : f->executable.build_id;
                st = add_segments(f, t, err);
        }
        if (!st && o)
                st = show(f, code, t, o, err);
        return st;
}

enum status symbol_table_extract(const struct extract_inputs *in, struct symbol_table *ret, struct error *err)
{
        return symbol_table_extract_watched(in, NULL, ret, err);
}

enum status symbol_table_extract_watched(const struct extract_inputs *in, const struct extract_observer *observer,
                                         struct symbol_table *ret, struct error *err)
{
        struct extract_files f = { 0 };
        struct code_map code = { 0 };
        struct symbol_table_builder b;
        struct symbol_table t = { 0 };
        enum status st;

        symbol_table_builder_init(&b);
        st = extract_files_open(in, &f, err);
        if (!st)
                st = code_map_from_image(extract_files_best(&f), &code, err);
        if (!st)
                st = extract(&f, &code, in->wanted, &b, observer, &t, err);
        symbol_table_builder_deinit(&b);
        code_map_deinit(&code);
        extract_files_close(&f);
        if (st) {
                symbol_table_deinit(&t);
                return st;
        }
        *ret = t;
        return ST_OK;
}
