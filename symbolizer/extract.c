/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/limits.h"
#include "dwarf/package.h"
#include "symbolizer/dwarf_extract.h"
#include "symbolizer/extract_displace.h"
#include "symbolizer/extract_mini.h"
#include "symbolizer/extract_notes.h"
#include "symbolizer/extract_observer.h"
#include "symbolizer/extract_symbols.h"
#include "symbolizer/source_go.h"
#include "symbolizer/source_plt.h"
#include "symbolizer/source_relocatable.h"

struct files {
        struct elf_image debuginfo, executable, altlink;
        struct elf_image mini; /* inside the executable */
        struct buf mini_bytes;
        struct buf debuginfo_placed, executable_placed; /* bytes of what were relocatable files */
        struct elf_image dwp;
        struct dwarf_package package; /* of dwp; all zero without one */
        struct dwarf_dwo_source dwo;
        struct extract_notes notes;
};

static void files_close(struct files *f)
{
        elf_image_close(&f->debuginfo);
        elf_image_close(&f->executable);
        elf_image_close(&f->altlink);
        dwarf_package_close(&f->package);
        elf_image_close(&f->dwp);
        elf_image_close(&f->mini);
        buf_deinit(&f->mini_bytes);
        buf_deinit(&f->debuginfo_placed);
        buf_deinit(&f->executable_placed);
}

static bool is_open(const struct elf_image *img)
{
        return img->data != NULL;
}

/* A relocatable file is replaced by its copy with addresses. */
static enum status place(struct elf_image *img, struct buf *bytes, struct error *err)
{
        struct elf_image placed;
        enum status st;

        if (img->type != ET_REL)
                return ST_OK;
        st = relocatable_place(img, bytes, &placed, err);
        if (st)
                return st;
        elf_image_close(img);
        *img = placed;
        return elf_image_check_complete(img, err);
}

/* @param placed NULL: of no use when it is relocatable. */
static enum status open_one(int fd, const char *name, const char *what, struct elf_image *ret, struct buf *placed,
                            struct error *err)
{
        char full[LIMIT_PATH_BYTES];
        struct elf_image img;
        enum status st;

        if (fd < 0)
                return ST_OK;
        snprintf(full, sizeof full, "%s%s", name, what);
        st = elf_image_from_fd(fd, full, &img, err);
        if (st)
                return st;
        st = elf_image_check_complete(&img, err);
        if (!st && placed)
                st = place(&img, placed, err);
        if (st)
                elf_image_close(&img);
        else
                *ret = img;
        return st;
}

/* Somebody guessed that it belongs to the rest; what it lacks is missing, whatever it is. */
static enum status open_package(int fd, const char *name, struct files *f, struct error *err)
{
        struct error reason;
        enum status st = fd > 0 ? open_one(fd, name, " (package)", &f->dwp, NULL, &reason) : ST_NOT_FOUND;

        if (!st)
                st = dwarf_package_open(&f->dwp, &f->package, &reason);
        return extract_note_failure(&f->notes, st, &reason, err);
}

/* One good file is enough. */
static enum status files_open(const struct extract_inputs *in, struct files *f, struct error *err)
{
        struct error reasons[3];
        enum status st[] = {
                open_one(in->debuginfo_fd, in->name, "", &f->debuginfo, &f->debuginfo_placed, &reasons[0]),
                open_one(in->executable_fd, in->name, " (executable)", &f->executable, &f->executable_placed, &reasons[1]),
                open_one(in->altlink_fd, in->name, " (dwz supplementary file)", &f->altlink, NULL, &reasons[2]),
        };

        for (size_t i = 0; i < 3; i++)
                if (extract_note_failure(&f->notes, st[i], &reasons[i], err))
                        return st[i];
        f->dwo = in->dwo;
        if (open_package(in->dwp_fd, in->name, f, err))
                return ST_NO_MEMORY;
        if (!is_open(&f->debuginfo) && !is_open(&f->executable)) {
                size_t failed = st[0] ? 0 : 1;

                if (!st[failed])
                        return error_set(err, ST_USAGE, "no file to take symbols from");
                if (err)
                        *err = reasons[failed];
                return st[failed];
        }
        if (f->debuginfo.build_id.size && f->executable.build_id.size &&
            !build_id_equal(&f->debuginfo.build_id, &f->executable.build_id))
                return error_set(err, ST_BAD_DATA, "'%s': debuginfo and executable have different build-ids", in->name);
        return ST_OK;
}

static const struct elf_image *that_runs(const struct files *f)
{
        return is_open(&f->executable) ? &f->executable : &f->debuginfo;
}

/* How far the file that runs was moved from where an image thinks it is. */
static uint64_t displacement_of(const struct files *f, const struct elf_image *img)
{
        return img == that_runs(f) || !is_open(img) ? 0 : extract_displacement(that_runs(f), img);
}

/* The file that says most; its sections tell where code is, also when their bytes were stripped. */
static const struct elf_image *best(const struct files *f)
{
        if (!is_open(&f->debuginfo))
                return &f->executable;
        if (!is_open(&f->executable))
                return &f->debuginfo;
        return elf_image_quality(&f->executable) > elf_image_quality(&f->debuginfo) ? &f->executable : &f->debuginfo;
}

/* The dwz file is a guess of the caller's; only the one that the DWARF names may serve. */
static const struct elf_image *altlink_of(const struct files *f, const struct elf_image *img)
{
        const char *path;
        struct build_id id;

        if (!is_open(&f->altlink) || elf_image_altlink(img, &path, &id, NULL))
                return NULL;
        return elf_image_is_supplement_of(&f->altlink, &id) ? &f->altlink : NULL;
}

/* A table that cannot be read leaves its symbols out. */
static enum status add_symbols_of(struct files *f, const struct elf_image *img, uint32_t type, enum symbol_quality quality,
                                  const struct code_map *code, struct code_symbols *symbols, struct error *err)
{
        const struct elf_section *s = is_open(img) ? elf_image_section_of_type(img, type) : NULL;
        const struct symbol_source source = { img, quality, displacement_of(f, img) };
        struct error reason;

        if (!s || !elf_section_has_content(s))
                return ST_OK;
        return extract_note_failure(&f->notes, code_symbols_add(symbols, &source, s, code, &reason), &reason, err);
}

/* Every symbol table of both files, as one: what is in two of them counts once. */
static enum status collect_symbols(struct files *f, const struct code_map *code, struct code_symbols *symbols,
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
        enum status st = minidebuginfo_open(that_runs(f), &f->mini_bytes, &f->mini, &reason);

        st = extract_note_failure(&f->notes, st, &reason, err);
        for (size_t i = 0; !st && i < sizeof tables / sizeof *tables; i++)
                st = add_symbols_of(f, tables[i].img, tables[i].type, tables[i].quality, code, symbols, err);
        return st;
}

static enum status add_symbols(struct files *f, const struct code_map *code, const struct wanted *wanted,
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
static enum status add_plt(const struct files *f, struct symbol_table_builder *b, enum symbol_quality *quality,
                           struct error *err)
{
        const struct elf_image *images[] = { &f->executable, &f->debuginfo };
        bool used = false;

        for (size_t i = 0; i < 2 && !used; i++) {
                enum status st = is_open(images[i]) ? source_plt_fill(images[i], b, &used, err) : ST_OK;

                if (st)
                        return st;
        }
        if (used && *quality < QUALITY_DYNSYM)
                *quality = QUALITY_DYNSYM;
        return ST_OK;
}

/* The table is data of the program; in a debug file of its own it is most often without content. */
static enum status add_go(struct files *f, const struct code_map *code, struct symbol_table_builder *b,
                          enum symbol_quality *quality, struct error *err)
{
        const struct elf_image *images[] = { &f->executable, &f->debuginfo };
        struct go_summary go = { 0 };

        for (size_t i = 0; i < 2 && !go.used; i++) {
                struct error reason;
                enum status st = is_open(images[i]) ? source_go_fill(images[i], code, b, &go, &reason) : ST_OK;

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
static enum status add_segments(const struct files *f, struct symbol_table *t, struct error *err)
{
        const struct elf_image *img = that_runs(f);
        bool runs = is_open(&f->executable) || (elf_image_kind(img) & ELF_KIND_EXECUTABLE);

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

static struct dwarf_companions companions_of(const struct files *f)
{
        return (struct dwarf_companions){ .package = f->package.index.rows ? &f->package : NULL, .dwo = f->dwo };
}

/* @param wanted becomes NULL when all was read. */
static enum status add_dwarf(struct files *f, const struct code_map *code, const struct wanted **wanted,
                             struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        const struct dwarf_companions companions = companions_of(f);
        const struct elf_image *img = best(f);
        struct dwarf_summary dwarf = { .quality = QUALITY_NONE };
        struct error reason;
        enum status st = dwarf_extract_wanted(img, altlink_of(f, img), &companions, code, *wanted, b, &dwarf, &reason);

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

static enum status add_others(struct files *f, const struct code_map *code, const struct wanted *wanted,
                              struct symbol_table_builder *b, enum symbol_quality *quality, struct error *err)
{
        enum status st = add_go(f, code, b, quality, err);

        if (!st)
                st = add_symbols(f, code, wanted, b, quality, err);
        return st ? st : add_plt(f, b, quality, err);
}

static const struct elf_image *or_null(const struct elf_image *img)
{
        return is_open(img) ? img : NULL;
}

static enum status show(const struct files *f, const struct code_map *code, const struct symbol_table *t,
                        const struct extract_observer *o, struct error *err)
{
        const struct dwarf_companions companions = companions_of(f);
        const struct extract_view v = { .debuginfo = or_null(&f->debuginfo), .executable = or_null(&f->executable),
                                        .best = best(f), .altlink = altlink_of(f, best(f)), .mini = or_null(&f->mini),
                                        .code = code, .displacement = displacement_of(f, best(f)),
                                        .companions = &companions };

        return o->done(o->context, &v, t, err);
}

static enum status extract(struct files *f, struct code_map *code, const struct wanted *wanted,
                           struct symbol_table_builder *b, const struct extract_observer *o, struct symbol_table *t,
                           struct error *err)
{
        enum symbol_quality quality = QUALITY_NONE;
        uint64_t displacement = displacement_of(f, best(f));
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
        struct files f = { 0 };
        struct code_map code = { 0 };
        struct symbol_table_builder b;
        struct symbol_table t = { 0 };
        enum status st;

        symbol_table_builder_init(&b);
        st = files_open(in, &f, err);
        if (!st)
                st = code_map_from_image(best(&f), &code, err);
        if (!st)
                st = extract(&f, &code, in->wanted, &b, observer, &t, err);
        symbol_table_builder_deinit(&b);
        code_map_deinit(&code);
        files_close(&f);
        if (st) {
                symbol_table_deinit(&t);
                return st;
        }
        *ret = t;
        return ST_OK;
}
