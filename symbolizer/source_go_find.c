/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/source_go_find.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "symbolizer/source_bytes.h"
#include "symbolizer/source_relative.h"

#define MODULE_WORDS 64     /* of moduledata that are looked at; it has some 75 */
#define MODULE_TEXT_WORD 22 /* runtime.text, since Go 1.16 */
#define TABLE_STEP 8        /* a pclntab is aligned to at least that */

/* What the search knows. */
struct search {
        const struct elf_image *img;
        struct dynamic_relocations relocations;
        uint64_t symbol_pclntab, symbol_text, symbol_trees; /* 0 unknown */
        uint64_t module[MODULE_WORDS]; /* words of moduledata */
        size_t module_words;           /* 0: not found */
        uint64_t module_address;
};

void go_tables_deinit(struct go_tables *t)
{
        free(t->owned);
        *t = (struct go_tables){ 0 };
}

static void find_symbols(struct search *s)
{
        const struct elf_section *section = elf_image_section_of_type(s->img, SHT_SYMTAB);
        struct elf_symbol_cursor c;
        struct elf_symbol sym;

        if (!section || elf_symbols_begin(s->img, section, &c, NULL))
                return;
        while (elf_symbols_next(&c, &sym)) {
                if (strcmp(sym.name, "runtime.pclntab") == 0)
                        s->symbol_pclntab = sym.value;
                else if (strcmp(sym.name, "runtime.text") == 0)
                        s->symbol_text = sym.value;
                else if (strcmp(sym.name, "go:func.*") == 0 || strcmp(sym.name, "go.func.*") == 0)
                        s->symbol_trees = sym.value;
        }
}

/* ---- the table ---- */

/* Take what begins at address and has at most size bytes for the table, relocated if need be. */
static enum status take(struct search *s, uint64_t address, const uint8_t *bytes, size_t size, struct go_tables *ret,
                        struct error *err)
{
        struct go_tables t = { 0 };
        enum status st;

        if (s->relocations.count) {
                t.owned = malloc(size + 1);
                if (!t.owned)
                        return error_no_memory(err);
                memcpy(t.owned, bytes, size);
                dynamic_relocations_apply(&s->relocations, address, t.owned, size, s->img->big_endian);
                bytes = t.owned;
        }
        st = go_pclntab_open(s->img, bytes, size, address, &t.pclntab, err);
        if (st) {
                go_tables_deinit(&t);
                return st;
        }
        *ret = t;
        return ST_OK;
}

static enum status take_section(struct search *s, const char *name, struct go_tables *ret, struct error *err)
{
        const struct elf_section *section = elf_image_section(s->img, name);
        const uint8_t *bytes;
        size_t size;
        enum status st;

        if (!section || !elf_section_has_content(section))
                return ST_NOT_FOUND;
        st = elf_section_raw(s->img, section, &bytes, &size, err);
        return st ? st : take(s, section->address, bytes, size, ret, err);
}

/* From address to the end of its piece of the file. */
static enum status take_address(struct search *s, uint64_t address, struct go_tables *ret, struct error *err)
{
        struct source_piece p;
        size_t cursor = 0;

        while (source_next_piece(s->img, &cursor, &p)) {
                uint64_t before = address - p.address;

                if (address >= p.address && before < p.size)
                        return take(s, address, p.bytes + before, p.size - before, ret, err);
        }
        return ST_NOT_FOUND;
}

static bool says_go(const struct elf_image *img)
{
        return img->build_id_kind == ELF_BUILD_ID_GO || elf_image_section(img, ".go.buildinfo") ||
               elf_image_section(img, ".note.go.buildid") || elf_image_section(img, ".go.module");
}

static enum status scan(struct search *s, struct go_tables *ret, struct error *err)
{
        struct source_piece p;
        size_t cursor = 0;

        while (source_next_piece(s->img, &cursor, &p)) {
                for (size_t at = -p.address % TABLE_STEP; at < p.size; at += TABLE_STEP) {
                        struct go_pclntab trial;

                        if (go_pclntab_magic(p.bytes + at, p.size - at, s->img->big_endian) &&
                            go_pclntab_open(s->img, p.bytes + at, p.size - at, p.address + at, &trial, NULL) == ST_OK)
                                return take(s, p.address + at, p.bytes + at, p.size - at, ret, err);
                }
        }
        return error_set(err, ST_NOT_FOUND, "'%s' has no pclntab", s->img->name);
}

static enum status find_table(struct search *s, struct go_tables *ret, struct error *err)
{
        enum status st = take_section(s, ".gopclntab", ret, err);

        if (st == ST_NOT_FOUND)
                st = take_section(s, ".data.rel.ro.gopclntab", ret, err);
        if (st == ST_NOT_FOUND && s->symbol_pclntab)
                st = take_address(s, s->symbol_pclntab, ret, err);
        if (st != ST_NOT_FOUND)
                return st;
        if (!says_go(s->img))
                return error_set(err, ST_NOT_FOUND, "'%s' is no Go program", s->img->name);
        return scan(s, ret, err);
}

/* ---- moduledata ---- */

static bool word(const struct elf_image *img, const uint8_t *bytes, size_t size, unsigned pointer_size, size_t index,
                 uint64_t *ret)
{
        struct reader r;
        uint32_t v32;

        reader_init(&r, bytes, size);
        r.big_endian = img->big_endian;
        if (!reader_seek(&r, index * pointer_size))
                return false;
        if (pointer_size == 8)
                return reader_u64(&r, ret);
        if (!reader_u32(&r, &v32))
                return false;
        *ret = v32;
        return true;
}

/* moduledata begins with the table's address and, as slices, with the parts of it. */
static bool is_module(const struct search *s, const struct go_pclntab *t, const uint8_t *bytes, size_t size)
{
        const struct {
                size_t index;
                uint64_t offset;
        } known[] = { { 0, 0 }, { 1, t->names }, { 4, t->units }, { 7, t->files }, { 10, t->tables } };

        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
                uint64_t v;

                if (!word(s->img, bytes, size, t->pointer_size, known[i].index, &v) ||
                    v != t->address + known[i].offset)
                        return false;
        }
        return true;
}

static enum status find_module_in(struct search *s, const struct go_pclntab *t, const struct source_piece *p,
                                  struct error *err)
{
        const uint8_t *bytes = p->bytes;
        _cleanup_free_ uint8_t *owned = NULL;

        if (s->relocations.count) {
                owned = malloc(p->size + 1);
                if (!owned)
                        return error_no_memory(err);
                memcpy(owned, bytes, p->size);
                dynamic_relocations_apply(&s->relocations, p->address, owned, p->size, s->img->big_endian);
                bytes = owned;
        }
        for (size_t at = -p->address % t->pointer_size; !s->module_words && at < p->size; at += t->pointer_size) {
                if (!is_module(s, t, bytes + at, p->size - at))
                        continue;
                s->module_address = p->address + at;
                while (s->module_words < MODULE_WORDS &&
                       word(s->img, bytes + at, p->size - at, t->pointer_size, s->module_words,
                            &s->module[s->module_words]))
                        s->module_words++;
        }
        return ST_OK;
}

static enum status find_module(struct search *s, const struct go_pclntab *t, struct error *err)
{
        struct source_piece p;
        size_t cursor = 0;
        enum status st = ST_OK;

        while (!st && !s->module_words && source_next_piece(s->img, &cursor, &p))
                if (p.writable)
                        st = find_module_in(s, t, &p, err);
        return st;
}

/* ---- what the table needs of it ---- */

/* Go 1.26 and later leave the header's word 0. */
static enum status find_text(const struct search *s, struct go_pclntab *t, struct error *err)
{
        if (t->layout < GO_1_18 || t->text_start)
                return ST_OK;
        t->text_start = s->symbol_text                       ? s->symbol_text :
                        s->module_words > MODULE_TEXT_WORD ? s->module[MODULE_TEXT_WORD] :
                                                             0;
        if (!t->text_start)
                return error_set(err, ST_BAD_DATA, "the pclntab of '%s' does not say where the text begins, "
                                 "and there is no moduledata", s->img->name);
        return ST_OK;
}

static void find_inlining_1_18(const struct search *s, struct go_pclntab *t)
{
        if (s->symbol_trees && go_pclntab_try_inlining(t, 2, 3, s->symbol_trees))
                return;
        for (size_t i = 0; i < s->module_words; i++)
                if (s->module[i] && go_pclntab_try_inlining(t, 2, 3, s->module[i]))
                        return;
        /* Go 1.26 and later: they lie behind the data of the functions. */
        for (unsigned alignment = 8; alignment <= 32; alignment *= 2)
                if (go_pclntab_try_inlining(t, 2, 3, go_pclntab_data_end(t, alignment)))
                        return;
}

static void find_inlining(const struct search *s, struct go_pclntab *t)
{
        static const struct {
                unsigned table, tree;
        } columns[] = { { 2, 3 }, { 2, 4 }, { 1, 2 } }; /* Go 1.15 to 1.17; 1.14; 1.12 and 1.13 */

        if (t->layout >= GO_1_18) {
                find_inlining_1_18(s, t);
                return;
        }
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
                if (go_pclntab_try_inlining(t, columns[i].table, columns[i].tree, 0))
                        return;
}

static enum status find_all(struct search *s, struct go_tables *t, struct error *err)
{
        enum status st = find_table(s, t, err);

        if (!st && t->pclntab.layout >= GO_1_18 && !(s->symbol_text && s->symbol_trees))
                st = find_module(s, &t->pclntab, err);
        if (!st)
                st = find_text(s, &t->pclntab, err);
        if (!st)
                find_inlining(s, &t->pclntab);
        return st;
}

static bool may_be_go(const struct elf_image *img)
{
        return says_go(img) || elf_image_section(img, ".gopclntab") ||
               elf_image_section(img, ".data.rel.ro.gopclntab");
}

enum status go_tables_find(const struct elf_image *img, struct go_tables *ret, struct error *err)
{
        struct search s = { .img = img };
        struct go_tables t = { 0 };
        enum status st;

        if (!may_be_go(img))
                return error_set(err, ST_NOT_FOUND, "'%s' is no Go program", img->name);
        st = dynamic_relocations_read(img, &s.relocations, err);
        if (st)
                return st;
        find_symbols(&s);
        st = find_all(&s, &t, err);
        dynamic_relocations_deinit(&s.relocations);
        if (st) {
                go_tables_deinit(&t);
                return st;
        }
        t.module_address = s.module_address;
        t.module_size = s.module_words * t.pclntab.pointer_size;
        *ret = t;
        return ST_OK;
}
