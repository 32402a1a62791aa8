/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/go_tables.h"

#include <stdlib.h>
#include <string.h>

#include "common/reader.h"
#include "symbolizer/sources/data_pieces.h"
#include "symbolizer/sources/dynamic_relocations.h"

#define MODULE_WORDS 64     /* of moduledata that are read, of about 75 */
#define MODULE_TEXT_WORD 22 /* runtime.text, since Go 1.16 */
#define TABLE_STEP 8        /* a pclntab is aligned to at least that */

/* State of the search. */
struct go_search {
        const struct elf_image *img;
        struct dynamic_relocations relocations;
        uint64_t symbol_pclntab, symbol_text, symbol_trees; /* 0 unknown */
        uint64_t module[MODULE_WORDS];                      /* words of moduledata */
        size_t module_words;                                /* 0: not found */
        uint64_t module_address;
};

void go_tables_deinit(struct go_tables *t)
{
        free(t->owned);
        *t = (struct go_tables){ 0 };
}

static void find_go_symbols(struct go_search *s)
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

/* Open the table at address, of at most size bytes; relocated when the file has relocations. */
static enum status open_table_at(struct go_search *s, uint64_t address, const uint8_t *bytes, size_t size,
                                 struct go_tables *ret, struct error *err)
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

static enum status open_section_table(struct go_search *s, const char *name, struct go_tables *ret, struct error *err)
{
        const struct elf_section *section = elf_image_section(s->img, name);
        const uint8_t *bytes;
        size_t size;
        enum status st;

        if (!section || !elf_section_has_content(section))
                return ST_NOT_FOUND;
        st = elf_section_raw(s->img, section, &bytes, &size, err);
        return st ? st : open_table_at(s, section->address, bytes, size, ret, err);
}

/* Open the table that reaches from address to the end of its piece of data. */
static enum status open_address_table(struct go_search *s, uint64_t address, struct go_tables *ret, struct error *err)
{
        struct data_piece p;
        size_t cursor = 0;

        while (next_data_piece(s->img, &cursor, &p)) {
                uint64_t before = address - p.address;

                if (address >= p.address && before < p.size)
                        return open_table_at(s, address, p.bytes + before, p.size - before, ret, err);
        }
        return ST_NOT_FOUND;
}

static bool has_go_marks(const struct elf_image *img)
{
        return img->build_id_kind == ELF_BUILD_ID_GO || elf_image_section(img, ".go.buildinfo") ||
               elf_image_section(img, ".note.go.buildid") || elf_image_section(img, ".go.module");
}

static enum status scan_for_table(struct go_search *s, struct go_tables *ret, struct error *err)
{
        struct data_piece p;
        size_t cursor = 0;

        while (next_data_piece(s->img, &cursor, &p)) {
                for (size_t at = -p.address % TABLE_STEP; at < p.size; at += TABLE_STEP) {
                        struct go_pclntab trial;

                        if (go_pclntab_has_magic(p.bytes + at, p.size - at, s->img->big_endian) &&
                            go_pclntab_open(s->img, p.bytes + at, p.size - at, p.address + at, &trial, NULL) == ST_OK)
                                return open_table_at(s, p.address + at, p.bytes + at, p.size - at, ret, err);
                }
        }
        return error_set(err, ST_NOT_FOUND, "'%s' has no pclntab", s->img->name);
}

static enum status find_go_table(struct go_search *s, struct go_tables *ret, struct error *err)
{
        enum status st = open_section_table(s, ".gopclntab", ret, err);

        if (st == ST_NOT_FOUND)
                st = open_section_table(s, ".data.rel.ro.gopclntab", ret, err);
        if (st == ST_NOT_FOUND && s->symbol_pclntab)
                st = open_address_table(s, s->symbol_pclntab, ret, err);
        if (st != ST_NOT_FOUND)
                return st;
        if (!has_go_marks(s->img))
                return error_set(err, ST_NOT_FOUND, "'%s' is not a Go program", s->img->name);
        return scan_for_table(s, ret, err);
}

/* ---- moduledata ---- */

static bool read_module_word(const struct elf_image *img, const uint8_t *bytes, size_t size, unsigned pointer_size,
                             size_t index, uint64_t *ret)
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
static bool is_moduledata(const struct go_search *s, const struct go_pclntab *t, const uint8_t *bytes, size_t size)
{
        const struct {
                size_t index;
                uint64_t offset;
        } known[] = { { 0, 0 }, { 1, t->names }, { 4, t->units }, { 7, t->files }, { 10, t->tables } };

        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
                uint64_t v;

                if (!read_module_word(s->img, bytes, size, t->pointer_size, known[i].index, &v) ||
                    v != t->address + known[i].offset)
                        return false;
        }
        return true;
}

static enum status find_moduledata_in(struct go_search *s, const struct go_pclntab *t, const struct data_piece *p,
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
                if (!is_moduledata(s, t, bytes + at, p->size - at))
                        continue;
                s->module_address = p->address + at;
                while (s->module_words < MODULE_WORDS &&
                       read_module_word(s->img, bytes + at, p->size - at, t->pointer_size, s->module_words,
                                        &s->module[s->module_words]))
                        s->module_words++;
        }
        return ST_OK;
}

static enum status find_moduledata(struct go_search *s, const struct go_pclntab *t, struct error *err)
{
        struct data_piece p;
        size_t cursor = 0;
        enum status st = ST_OK;

        while (!st && !s->module_words && next_data_piece(s->img, &cursor, &p))
                if (p.writable)
                        st = find_moduledata_in(s, t, &p, err);
        return st;
}

/* ---- values from moduledata ---- */

/* The header's word is 0 since Go 1.26. */
static enum status find_text_start(const struct go_search *s, struct go_pclntab *t, struct error *err)
{
        if (t->layout < GO_1_18 || t->text_start)
                return ST_OK;
        t->text_start = s->symbol_text                       ? s->symbol_text
                        : s->module_words > MODULE_TEXT_WORD ? s->module[MODULE_TEXT_WORD]
                                                             : 0;
        if (!t->text_start)
                return error_set(err, ST_BAD_DATA,
                                 "the pclntab of '%s' has no start of the text, "
                                 "and there is no moduledata",
                                 s->img->name);
        return ST_OK;
}

static void find_inlining_1_18(const struct go_search *s, struct go_pclntab *t)
{
        if (s->symbol_trees && go_pclntab_try_inlining(t, 2, 3, s->symbol_trees))
                return;
        for (size_t i = 0; i < s->module_words; i++)
                if (s->module[i] && go_pclntab_try_inlining(t, 2, 3, s->module[i]))
                        return;
        /* Go 1.26 and later: they follow the data of the functions. */
        for (unsigned alignment = 8; alignment <= 32; alignment *= 2)
                if (go_pclntab_try_inlining(t, 2, 3, go_pclntab_data_end(t, alignment)))
                        return;
}

static void find_table_inlining(const struct go_search *s, struct go_pclntab *t)
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

static enum status find_go_parts(struct go_search *s, struct go_tables *t, struct error *err)
{
        enum status st = find_go_table(s, t, err);

        if (!st && t->pclntab.layout >= GO_1_18 && !(s->symbol_text && s->symbol_trees))
                st = find_moduledata(s, &t->pclntab, err);
        if (!st)
                st = find_text_start(s, &t->pclntab, err);
        if (!st)
                find_table_inlining(s, &t->pclntab);
        return st;
}

static bool may_be_go(const struct elf_image *img)
{
        return has_go_marks(img) || elf_image_section(img, ".gopclntab") ||
               elf_image_section(img, ".data.rel.ro.gopclntab");
}

enum status go_tables_find(const struct elf_image *img, struct go_tables *ret, struct error *err)
{
        struct go_search s = { .img = img };
        struct go_tables t = { 0 };
        enum status st;

        if (!may_be_go(img))
                return error_set(err, ST_NOT_FOUND, "'%s' is not a Go program", img->name);
        st = dynamic_relocations_read(img, &s.relocations, err);
        if (st)
                return st;
        find_go_symbols(&s);
        st = find_go_parts(&s, &t, err);
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
