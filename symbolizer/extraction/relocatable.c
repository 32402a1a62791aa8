/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extraction/relocatable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "common/text.h"

#define ALIGNMENT_MAX MiB(64)

struct placing {
        const struct elf_image *img;
        struct buf *bytes;   /* the copy */
        uint64_t *addresses; /* owned; by section */
        uint64_t *symbols;   /* owned; values by symbol number; all ones: undefined */
        size_t symbol_count;
        uint64_t headers_at; /* of the section headers */
};

static void put_copy_number(struct placing *p, uint64_t at, uint64_t value, unsigned width)
{
        for (unsigned i = 0; i < width; i++)
                p->bytes->data[at + i] = (uint8_t)(value >> 8 * (p->img->big_endian ? width - 1 - i : i));
}

static void put_section_field(struct placing *p, size_t section, size_t field, uint64_t value)
{
        put_copy_number(p, p->headers_at + section * sizeof(Elf64_Shdr) + field, value, 8);
}

/* ---- addresses ---- */

static enum status place_section(struct placing *p, const struct elf_section *s, uint64_t *next, struct error *err)
{
        uint64_t alignment = s->alignment ? s->alignment : 1, start;

        if ((alignment & (alignment - 1)) || alignment > ALIGNMENT_MAX ||
            __builtin_add_overflow(*next, alignment - 1, &start) ||
            __builtin_add_overflow(start & ~(alignment - 1), s->size, next))
                return error_set(err, ST_BAD_DATA, "section '%.64s' of '%s' cannot be assigned an address", s->name,
                                 p->img->name);
        p->addresses[s->index] = start & ~(alignment - 1);
        return ST_OK;
}

static enum status place_sections(struct placing *p, struct error *err)
{
        const struct elf_section *text = elf_image_section(p->img, ".text");
        uint64_t next = 0;
        enum status st = ST_OK;

        if (text && elf_section_is_code(text))
                st = place_section(p, text, &next, err);
        for (int code = 1; code >= 0; code--) {
                for (size_t i = 1; !st && i < p->img->section_count; i++) {
                        const struct elf_section *s = &p->img->sections[i];

                        if ((s->flags & SHF_ALLOC) && elf_section_is_code(s) == code && !(code && s == text))
                                st = place_section(p, s, &next, err);
                }
        }
        for (size_t i = 1; !st && i < p->img->section_count; i++)
                if (p->img->sections[i].flags & SHF_ALLOC)
                        put_section_field(p, i, offsetof(Elf64_Shdr, sh_addr), p->addresses[i]);
        return st;
}

/* ---- symbols ---- */

static uint64_t get_placed_value(const struct placing *p, const struct elf_symbol *sym)
{
        if (sym->section == SHN_ABS)
                return sym->value;
        if (sym->section == SHN_UNDEF || sym->section >= p->img->section_count)
                return UINT64_MAX;
        return p->addresses[sym->section] + sym->value;
}

static enum status place_symbols(struct placing *p, struct error *err)
{
        const struct elf_section *section = elf_image_section_of_type(p->img, SHT_SYMTAB);
        struct elf_symbol_cursor c;
        struct elf_symbol sym;
        enum status st;

        if (!section)
                return ST_OK;
        st = elf_symbols_begin(p->img, section, &c, err);
        if (st)
                return st;
        p->symbols = calloc(c.count + 1, sizeof *p->symbols);
        if (!p->symbols)
                return error_no_memory(err);
        while (elf_symbols_next(&c, &sym)) {
                uint64_t value = get_placed_value(p, &sym);

                p->symbols[p->symbol_count] = value;
                if (value != UINT64_MAX)
                        put_copy_number(
                                p, section->offset + p->symbol_count * c.entry_size + offsetof(Elf64_Sym, st_value),
                                value, 8);
                p->symbol_count++;
        }
        return ST_OK;
}

/* ---- relocations of the DWARF ---- */

enum formula { SKIP, ABSOLUTE, RELATIVE_TO_PLACE, ADDEND };

static bool find_formula(uint16_t machine, uint32_t type, enum formula *formula, unsigned *width)
{
        static const struct {
                uint16_t machine;
                uint32_t type;
                enum formula formula;
                unsigned width;
        } known[] = {
                { EM_X86_64, R_X86_64_NONE, SKIP, 0 },
                { EM_X86_64, R_X86_64_64, ABSOLUTE, 8 },
                { EM_X86_64, R_X86_64_32, ABSOLUTE, 4 },
                { EM_X86_64, R_X86_64_32S, ABSOLUTE, 4 },
                { EM_X86_64, R_X86_64_PC32, RELATIVE_TO_PLACE, 4 },
                { EM_X86_64, R_X86_64_PC64, RELATIVE_TO_PLACE, 8 },
                { EM_X86_64, R_X86_64_DTPOFF32, ADDEND, 4 },
                { EM_X86_64, R_X86_64_DTPOFF64, ADDEND, 8 },
                { EM_AARCH64, R_AARCH64_NONE, SKIP, 0 },
                { EM_AARCH64, R_AARCH64_ABS64, ABSOLUTE, 8 },
                { EM_AARCH64, R_AARCH64_ABS32, ABSOLUTE, 4 },
                { EM_AARCH64, R_AARCH64_PREL64, RELATIVE_TO_PLACE, 8 },
                { EM_AARCH64, R_AARCH64_PREL32, RELATIVE_TO_PLACE, 4 },
                { EM_AARCH64, R_AARCH64_TLS_DTPREL, ADDEND, 8 },
        };

        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
                if (known[i].machine == machine && known[i].type == type) {
                        *formula = known[i].formula;
                        *width = known[i].width;
                        return true;
                }
        }
        return false;
}

/* @param start offset of the target section in the copy. */
static enum status relocate_section(struct placing *p, const struct elf_section *relocations, uint64_t start,
                                    uint64_t size, struct error *err)
{
        const uint8_t *raw;
        struct reader r;
        size_t raw_size;
        enum status st = elf_section_raw(p->img, relocations, &raw, &raw_size, err);

        if (st)
                return st;
        reader_init(&r, raw, raw_size);
        r.big_endian = p->img->big_endian;
        while (reader_left(&r) >= sizeof(Elf64_Rela)) {
                uint64_t at, info, addend, value;
                enum formula formula;
                unsigned width;

                if (!reader_u64(&r, &at) || !reader_u64(&r, &info) || !reader_u64(&r, &addend))
                        return reader_error(&r, err, relocations->name);
                if (!find_formula(p->img->machine, (uint32_t)info, &formula, &width))
                        return error_set(err, ST_UNSUPPORTED,
                                         "'%s' has a relocation of type %" PRIu32
                                         " for machine %u in %.64s; link it first",
                                         p->img->name, (uint32_t)info, p->img->machine, relocations->name);
                if (formula == SKIP)
                        continue;
                if (at > size || width > size - at)
                        return error_at(err, ST_BAD_DATA, relocations->offset + r.pos,
                                        "a relocation in %.64s of '%s' is outside its section", relocations->name,
                                        p->img->name);
                value = info >> 32 < p->symbol_count ? p->symbols[info >> 32] : UINT64_MAX;
                if (formula == ADDEND)
                        value = addend;
                else if (value != UINT64_MAX)
                        value += addend - (formula == RELATIVE_TO_PLACE ? at : 0);
                put_copy_number(p, start + at, value, width);
        }
        return ST_OK;
}

/* Append the unpacked content to the copy and update the section header. */
static enum status unpack_section(struct placing *p, const struct elf_section *s, uint64_t *start, size_t *size,
                                  struct error *err)
{
        _cleanup_elf_section_data_ struct elf_section_data d = { 0 };
        enum status st = elf_section_data(p->img, s, LIMIT_SECTION_UNPACKED_BYTES, &d, err);

        if (st)
                return st;
        *start = p->bytes->size;
        *size = d.size;
        buf_append(p->bytes, d.bytes, d.size);
        st = buf_status(p->bytes, err, s->name);
        if (st)
                return st;
        put_section_field(p, s->index, offsetof(Elf64_Shdr, sh_flags), s->flags & ~(uint64_t)SHF_COMPRESSED);
        put_section_field(p, s->index, offsetof(Elf64_Shdr, sh_offset), *start);
        put_section_field(p, s->index, offsetof(Elf64_Shdr, sh_size), *size);
        return ST_OK;
}

static enum status relocate_dwarf(struct placing *p, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 1; !st && i < p->img->section_count; i++) {
                const struct elf_section *s = &p->img->sections[i];
                const struct elf_section *target = elf_image_section_at(p->img, s->info);
                const uint8_t *raw;
                uint64_t start;
                size_t size;

                if ((s->type != SHT_RELA && s->type != SHT_REL) || !target || !elf_section_has_content(target) ||
                    !starts_with(target->name, ".debug_"))
                        continue;
                if (s->type == SHT_REL)
                        return error_set(err, ST_UNSUPPORTED, "'%s' has relocations without addends; link it first",
                                         p->img->name);
                st = elf_section_raw(p->img, target, &raw, &size, err);
                start = target->offset;
                if (!st && elf_section_is_compressed(target))
                        st = unpack_section(p, target, &start, &size, err);
                if (!st)
                        st = relocate_section(p, s, start, size, err);
        }
        return st;
}

/* ---- the copy ---- */

static enum status copy_image(struct placing *p, struct error *err)
{
        const struct elf_image *img = p->img;
        struct reader r;
        uint16_t header_size;

        buf_init(p->bytes, LIMIT_OBJECT_BYTES);
        buf_append(p->bytes, img->data, img->size);
        reader_init(&r, img->data, img->size);
        r.big_endian = img->big_endian;
        if (!reader_seek(&r, offsetof(Elf64_Ehdr, e_shoff)) || !reader_u64(&r, &p->headers_at) ||
            !reader_seek(&r, offsetof(Elf64_Ehdr, e_shentsize)) || !reader_u16(&r, &header_size))
                return reader_error(&r, err, "the ELF header");
        if (header_size != sizeof(Elf64_Shdr))
                return error_set(err, ST_UNSUPPORTED, "'%s' has section headers of %u bytes; link it first", img->name,
                                 header_size);
        p->addresses = calloc(img->section_count + 1, sizeof *p->addresses);
        if (!p->addresses)
                return error_no_memory(err);
        return buf_status(p->bytes, err, img->name);
}

enum status relocatable_assign_addresses(const struct elf_image *img, struct buf *bytes, struct elf_image *ret,
                                         struct error *err)
{
        struct placing p = { .img = img, .bytes = bytes };
        enum status st;

        if (!img->is_64)
                return error_set(err, ST_UNSUPPORTED, "'%s' is a 32-bit relocatable file; link it first", img->name);
        st = copy_image(&p, err);
        if (!st) {
                put_copy_number(&p, offsetof(Elf64_Ehdr, e_type), ET_EXEC, 2);
                st = place_sections(&p, err);
        }
        if (!st)
                st = place_symbols(&p, err);
        if (!st)
                st = relocate_dwarf(&p, err);
        if (!st)
                st = elf_image_from_memory(bytes->data, bytes->size, img->name, ret, err);
        free(p.addresses);
        free(p.symbols);
        return st;
}
