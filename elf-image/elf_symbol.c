/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol tables. Source: gABI chapter 4, "Symbol Table". */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "elf-image/elf_image.h"

/* The SHT_SYMTAB_SHNDX section of this table, if it has one. */
static void find_wide_indices(const struct elf_image *img, const struct elf_section *s, struct elf_symbol_cursor *c)
{
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *x = &img->sections[i];
                size_t size;

                if (x->type != SHT_SYMTAB_SHNDX || x->link != s->index)
                        continue;
                if (elf_section_raw(img, x, &c->sections, &size, NULL) == ST_OK)
                        c->section_words = size / sizeof(uint32_t);
                return;
        }
}

enum status elf_symbols_begin(const struct elf_image *img, const struct elf_section *s, struct elf_symbol_cursor *ret,
                              struct error *err)
{
        struct elf_symbol_cursor c = { .img = img };
        const struct elf_section *strings = elf_image_section_at(img, s->link);
        size_t entry_min = img->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
        size_t size;
        enum status st;

        if (s->type != SHT_SYMTAB && s->type != SHT_DYNSYM)
                return error_at(err, ST_BAD_DATA, s->offset, "section '%.64s' of '%s' is not a symbol table", s->name,
                                img->name);
        st = elf_section_raw(img, s, &c.entries, &size, err);
        if (st)
                return st;
        c.entry_size = s->entry_size ? s->entry_size : entry_min;
        if (c.entry_size < entry_min)
                return error_at(err, ST_BAD_DATA, s->offset,
                                "section '%.64s' of '%s' has entries of %zu bytes, %zu are needed", s->name, img->name,
                                c.entry_size, entry_min);
        c.count = size / c.entry_size;
        if (c.count > LIMIT_SYMBOLS)
                return error_at(err, ST_TOO_BIG, s->offset,
                                "section '%.64s' of '%s' has %zu symbols, at most %d are read", s->name, img->name,
                                c.count, LIMIT_SYMBOLS);
        if (strings) {
                st = elf_section_raw(img, strings, &c.strings, &c.string_size, err);
                if (st)
                        return st;
        }
        find_wide_indices(img, s, &c);
        *ret = c;
        return ST_OK;
}

static const char *elf_symbol_name(const struct elf_symbol_cursor *c, uint32_t offset)
{
        if (offset >= c->string_size || !memchr(c->strings + offset, 0, c->string_size - offset))
                return "";
        return (const char *)c->strings + offset;
}

static uint32_t symbol_wide_index(const struct elf_symbol_cursor *c, size_t index)
{
        struct reader r;
        uint32_t v;

        if (index >= c->section_words)
                return SHN_UNDEF;
        reader_init(&r, c->sections + index * sizeof v, sizeof v);
        r.big_endian = c->img->big_endian;
        return reader_u32(&r, &v) ? v : SHN_UNDEF;
}

bool elf_symbols_next(struct elf_symbol_cursor *c, struct elf_symbol *ret)
{
        struct elf_symbol sym = { 0 };
        struct reader r;
        uint32_t name, value32, size32;
        uint16_t section;
        uint8_t info, other;

        assert(c->index <= c->count);
        if (c->index >= c->count)
                return false;
        reader_init(&r, c->entries + c->index * c->entry_size, c->entry_size);
        r.big_endian = c->img->big_endian;
        if (c->img->is_64) {
                if (!reader_u32(&r, &name) || !reader_u8(&r, &info) || !reader_u8(&r, &other) ||
                    !reader_u16(&r, &section) || !reader_u64(&r, &sym.value) || !reader_u64(&r, &sym.size))
                        return false;
        } else {
                if (!reader_u32(&r, &name) || !reader_u32(&r, &value32) || !reader_u32(&r, &size32) ||
                    !reader_u8(&r, &info) || !reader_u8(&r, &other) || !reader_u16(&r, &section))
                        return false;
                sym.value = value32;
                sym.size = size32;
        }
        sym.name = elf_symbol_name(c, name);
        sym.section = section == SHN_XINDEX ? symbol_wide_index(c, c->index) : section;
        sym.type = ELF64_ST_TYPE(info);
        sym.binding = ELF64_ST_BIND(info);
        sym.visibility = ELF64_ST_VISIBILITY(other);
        c->index++;
        *ret = sym;
        return true;
}

bool elf_symbol_is_function(const struct elf_symbol *sym)
{
        return (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC) && sym->section != SHN_UNDEF;
}
