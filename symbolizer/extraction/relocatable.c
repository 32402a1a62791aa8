/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is copied, and only the copy (p->bytes) is changed; headers, names and relocations are always read from the
 * original (p->img). Three passes: place_sections() assigns addresses and writes them to the section headers,
 * place_symbols() makes symbol values absolute, relocate_dwarf() applies the relocations of DWARF sections and of
 * .opd. A compressed section is unpacked at the end of the copy first. The copy is then opened as an ET_EXEC image.
 *
 * known_relocations maps machine and type to a formula and a width; a new machine needs only rows there. DWARF
 * sections have no address, so the place P of a PC-relative relocation is an offset in its section. An unknown type
 * drops the DWARF of the copy as a whole, rather than leave wrong addresses in it.
 *
 * An address without a relocation belongs to a function that a linker discarded (ld -r): gold removes the relocation,
 * and leaves 0. The code of the file is at 0 too, so addresses in the DWARF are those of the section headers plus
 * DWARF_BIAS, and what was not relocated lies below all code.
 *
 * Order: addresses, symbols, relocations, the copy.
 */
#include "symbolizer/extraction/relocatable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/reader.h"
#include "common/text.h"

#define ALIGNMENT_MAX MiB(64)
#define DWARF_BIAS GiB(1) /* leaves 3 GiB for code in 32-bit files */

struct placed_symbol {
        uint64_t value;  /* all ones: undefined */
        bool is_address; /* of a section with addresses */
};

struct placing {
        const struct elf_image *img;
        struct buf *bytes;             /* the copy */
        uint64_t *addresses;           /* owned; by section */
        struct placed_symbol *symbols; /* owned; by symbol number */
        size_t symbol_count;
        uint64_t headers_at; /* of the section headers */
        uint64_t dwarf_bias; /* of the addresses in the DWARF */
};

static void put_copy_number(struct placing *p, uint64_t at, uint64_t value, unsigned width)
{
        for (unsigned i = 0; i < width; i++)
                p->bytes->data[at + i] = (uint8_t)(value >> 8 * (p->img->big_endian ? width - 1 - i : i));
}

/* Fields that are 4 bytes wide in class 32 and 8 in class 64. */
#define put_section_field(p, section, field, value)                                                                    \
        put_copy_number(p,                                                                                             \
                        (p)->headers_at + ((p)->img->is_64                                                             \
                                                   ? (section) * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, field)      \
                                                   : (section) * sizeof(Elf32_Shdr) + offsetof(Elf32_Shdr, field)),    \
                        value, get_address_bytes(p))

static unsigned get_address_bytes(const struct placing *p)
{
        return p->img->is_64 ? 8 : 4;
}

/* ---- addresses ---- */

static enum status place_section(const struct elf_image *img, const struct elf_section *s, uint64_t *addresses,
                                 uint64_t *next, struct error *err)
{
        uint64_t alignment = s->alignment ? s->alignment : 1, start;

        if ((alignment & (alignment - 1)) || alignment > ALIGNMENT_MAX ||
            __builtin_add_overflow(*next, alignment - 1, &start) ||
            __builtin_add_overflow(start & ~(alignment - 1), s->size, next))
                return error_set(err, ST_BAD_DATA, "section '%.64s' of '%s' cannot be assigned an address", s->name,
                                 img->name);
        addresses[s->index] = start & ~(alignment - 1);
        return ST_OK;
}

enum status relocatable_place_sections(const struct elf_image *img, uint64_t **ret, struct error *err)
{
        const struct elf_section *text = elf_image_section(img, ".text");
        _cleanup_free_ uint64_t *addresses = calloc(img->section_count + 1, sizeof *addresses);
        uint64_t next = 0;
        enum status st = ST_OK;

        if (!addresses)
                return error_no_memory(err);
        if (text && elf_section_is_code(text))
                st = place_section(img, text, addresses, &next, err);
        for (int code = 1; code >= 0; code--) {
                for (size_t i = 1; !st && i < img->section_count; i++) {
                        const struct elf_section *s = &img->sections[i];

                        if ((s->flags & SHF_ALLOC) && elf_section_is_code(s) == code && !(code && s == text))
                                st = place_section(img, s, addresses, &next, err);
                }
        }
        if (!st)
                *ret = steal_ptr(addresses);
        return st;
}

static enum status place_sections(struct placing *p, struct error *err)
{
        enum status st = relocatable_place_sections(p->img, &p->addresses, err);

        for (size_t i = 1; !st && i < p->img->section_count; i++)
                if (p->img->sections[i].flags & SHF_ALLOC)
                        put_section_field(p, i, sh_addr, p->addresses[i]);
        return st;
}

/* ---- symbols ---- */

static struct placed_symbol place_symbol(const struct placing *p, const struct elf_symbol *sym)
{
        if (sym->section == ELF_SECTION_ABS)
                return (struct placed_symbol){ .value = sym->value };
        if (sym->section == SHN_UNDEF || sym->section >= p->img->section_count)
                return (struct placed_symbol){ .value = UINT64_MAX };
        return (struct placed_symbol){ .value = p->addresses[sym->section] + sym->value,
                                       .is_address = p->img->sections[sym->section].flags & SHF_ALLOC };
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
                size_t field = p->img->is_64 ? offsetof(Elf64_Sym, st_value) : offsetof(Elf32_Sym, st_value);
                struct placed_symbol placed = place_symbol(p, &sym);

                p->symbols[p->symbol_count] = placed;
                if (placed.value != UINT64_MAX)
                        put_copy_number(p, section->offset + p->symbol_count * c.entry_size + field, placed.value,
                                        get_address_bytes(p));
                p->symbol_count++;
        }
        return ST_OK;
}

/* ---- relocations of the DWARF ---- */

enum formula {
        DISCARDED, /* none: lld writes it at references to discarded functions; also padding */
        IGNORED,
        ABSOLUTE,          /* S + A */
        RELATIVE_TO_PLACE, /* S + A - P */
        ADDEND,            /* A */
        ADDED,             /* V + S + A, V the value at the place */
        SUBTRACTED,        /* V - S - A */
};

/* Widths that are not a number of bytes: the low six bits of a byte, and an ULEB128 of the length that it has. */
enum { WIDTH_6_BITS = 100, WIDTH_ULEB128 };

struct relocation_kind {
        uint16_t machine;
        uint32_t type;
        enum formula formula;
        unsigned width;
};

/* Those of DWARF sections, and of .opd. Values that elf.h of this system lacks are given as numbers. */
static const struct relocation_kind known_relocations[] = {
        { EM_X86_64, R_X86_64_NONE, DISCARDED, 0 },
        { EM_X86_64, R_X86_64_64, ABSOLUTE, 8 },
        { EM_X86_64, R_X86_64_32, ABSOLUTE, 4 },
        { EM_X86_64, R_X86_64_32S, ABSOLUTE, 4 },
        { EM_X86_64, R_X86_64_PC32, RELATIVE_TO_PLACE, 4 },
        { EM_X86_64, R_X86_64_PC64, RELATIVE_TO_PLACE, 8 },
        { EM_X86_64, R_X86_64_DTPOFF32, ADDEND, 4 },
        { EM_X86_64, R_X86_64_DTPOFF64, ADDEND, 8 },
        { EM_AARCH64, R_AARCH64_NONE, DISCARDED, 0 },
        { EM_AARCH64, R_AARCH64_ABS64, ABSOLUTE, 8 },
        { EM_AARCH64, R_AARCH64_ABS32, ABSOLUTE, 4 },
        { EM_AARCH64, R_AARCH64_PREL64, RELATIVE_TO_PLACE, 8 },
        { EM_AARCH64, R_AARCH64_PREL32, RELATIVE_TO_PLACE, 4 },
        { EM_AARCH64, R_AARCH64_TLS_DTPREL, ADDEND, 8 },
        { EM_386, R_386_NONE, DISCARDED, 0 },
        { EM_386, R_386_32, ABSOLUTE, 4 },
        { EM_386, R_386_PC32, RELATIVE_TO_PLACE, 4 },
        { EM_386, R_386_TLS_LDO_32, ADDEND, 4 },
        { EM_ARM, R_ARM_NONE, DISCARDED, 0 },
        { EM_ARM, R_ARM_ABS32, ABSOLUTE, 4 },
        { EM_ARM, R_ARM_REL32, RELATIVE_TO_PLACE, 4 },
        { EM_ARM, R_ARM_TLS_LDO32, ADDEND, 4 },
        { EM_PPC64, R_PPC64_NONE, DISCARDED, 0 },
        { EM_PPC64, R_PPC64_ADDR64, ABSOLUTE, 8 },
        { EM_PPC64, R_PPC64_ADDR32, ABSOLUTE, 4 },
        { EM_PPC64, R_PPC64_REL64, RELATIVE_TO_PLACE, 8 },
        { EM_PPC64, R_PPC64_REL32, RELATIVE_TO_PLACE, 4 },
        { EM_PPC64, R_PPC64_DTPREL64, ADDEND, 8 },
        { EM_PPC64, R_PPC64_TOC, IGNORED, 0 },
        { EM_PPC, R_PPC_NONE, DISCARDED, 0 },
        { EM_PPC, R_PPC_ADDR32, ABSOLUTE, 4 },
        { EM_PPC, R_PPC_REL32, RELATIVE_TO_PLACE, 4 },
        { EM_PPC, R_PPC_DTPREL32, ADDEND, 4 },
        { EM_S390, R_390_NONE, DISCARDED, 0 },
        { EM_S390, R_390_32, ABSOLUTE, 4 },
        { EM_S390, R_390_64, ABSOLUTE, 8 },
        { EM_S390, R_390_PC32, RELATIVE_TO_PLACE, 4 },
        { EM_S390, R_390_PC64, RELATIVE_TO_PLACE, 8 },
        { EM_S390, R_390_TLS_LDO32, ADDEND, 4 },
        { EM_S390, R_390_TLS_LDO64, ADDEND, 8 },
        { EM_MIPS, R_MIPS_NONE, DISCARDED, 0 },
        { EM_MIPS, R_MIPS_32, ABSOLUTE, 4 },
        { EM_MIPS, R_MIPS_64, ABSOLUTE, 8 },
        { EM_MIPS, 248 /* R_MIPS_PC32 */, RELATIVE_TO_PLACE, 4 },
        { EM_MIPS, R_MIPS_TLS_DTPREL32, ADDEND, 4 },
        { EM_MIPS, R_MIPS_TLS_DTPREL64, ADDEND, 8 },
        { EM_SPARCV9, R_SPARC_NONE, DISCARDED, 0 },
        { EM_SPARCV9, R_SPARC_32, ABSOLUTE, 4 },
        { EM_SPARCV9, R_SPARC_UA32, ABSOLUTE, 4 },
        { EM_SPARCV9, R_SPARC_64, ABSOLUTE, 8 },
        { EM_SPARCV9, R_SPARC_UA64, ABSOLUTE, 8 },
        { EM_BPF, 0 /* R_BPF_NONE */, DISCARDED, 0 },
        { EM_BPF, 2 /* R_BPF_64_ABS64 */, ABSOLUTE, 8 },
        { EM_BPF, 3 /* R_BPF_64_ABS32 */, ABSOLUTE, 4 },
        { EM_BPF, 4 /* R_BPF_64_NODYLD32 */, ABSOLUTE, 4 },
        { EM_RISCV, R_RISCV_NONE, DISCARDED, 0 },
        { EM_RISCV, R_RISCV_32, ABSOLUTE, 4 },
        { EM_RISCV, R_RISCV_64, ABSOLUTE, 8 },
        { EM_RISCV, R_RISCV_32_PCREL, RELATIVE_TO_PLACE, 4 },
        { EM_RISCV, R_RISCV_TLS_DTPREL32, ADDEND, 4 },
        { EM_RISCV, R_RISCV_TLS_DTPREL64, ADDEND, 8 },
        { EM_RISCV, R_RISCV_ADD8, ADDED, 1 },
        { EM_RISCV, R_RISCV_ADD16, ADDED, 2 },
        { EM_RISCV, R_RISCV_ADD32, ADDED, 4 },
        { EM_RISCV, R_RISCV_ADD64, ADDED, 8 },
        { EM_RISCV, R_RISCV_SUB6, SUBTRACTED, WIDTH_6_BITS },
        { EM_RISCV, R_RISCV_SUB8, SUBTRACTED, 1 },
        { EM_RISCV, R_RISCV_SUB16, SUBTRACTED, 2 },
        { EM_RISCV, R_RISCV_SUB32, SUBTRACTED, 4 },
        { EM_RISCV, R_RISCV_SUB64, SUBTRACTED, 8 },
        { EM_RISCV, R_RISCV_SET6, ABSOLUTE, WIDTH_6_BITS },
        { EM_RISCV, R_RISCV_SET8, ABSOLUTE, 1 },
        { EM_RISCV, R_RISCV_SET16, ABSOLUTE, 2 },
        { EM_RISCV, R_RISCV_SET32, ABSOLUTE, 4 },
        { EM_RISCV, R_RISCV_RELAX, IGNORED, 0 },
        { EM_RISCV, 60 /* R_RISCV_SET_ULEB128 */, ABSOLUTE, WIDTH_ULEB128 },
        { EM_RISCV, 61 /* R_RISCV_SUB_ULEB128 */, SUBTRACTED, WIDTH_ULEB128 },
        { 164 /* EM_QDSP6 */, 0, DISCARDED, 0 },
        { 164, 6 /* R_HEX_32 */, ABSOLUTE, 4 },
        { 258 /* EM_LOONGARCH */, 0, DISCARDED, 0 },
        { 258, 1 /* R_LARCH_32 */, ABSOLUTE, 4 },
        { 258, 2 /* R_LARCH_64 */, ABSOLUTE, 8 },
        { 258, 8 /* R_LARCH_TLS_DTPREL32 */, ADDEND, 4 },
        { 258, 9 /* R_LARCH_TLS_DTPREL64 */, ADDEND, 8 },
        { 258, 47 /* R_LARCH_ADD8 */, ADDED, 1 },
        { 258, 48 /* R_LARCH_ADD16 */, ADDED, 2 },
        { 258, 50 /* R_LARCH_ADD32 */, ADDED, 4 },
        { 258, 51 /* R_LARCH_ADD64 */, ADDED, 8 },
        { 258, 52 /* R_LARCH_SUB8 */, SUBTRACTED, 1 },
        { 258, 53 /* R_LARCH_SUB16 */, SUBTRACTED, 2 },
        { 258, 55 /* R_LARCH_SUB32 */, SUBTRACTED, 4 },
        { 258, 56 /* R_LARCH_SUB64 */, SUBTRACTED, 8 },
        { 258, 99 /* R_LARCH_32_PCREL */, RELATIVE_TO_PLACE, 4 },
        { 258, 100 /* R_LARCH_RELAX */, IGNORED, 0 },
        { 258, 105 /* R_LARCH_ADD6 */, ADDED, WIDTH_6_BITS },
        { 258, 106 /* R_LARCH_SUB6 */, SUBTRACTED, WIDTH_6_BITS },
        { 258, 107 /* R_LARCH_ADD_ULEB128 */, ADDED, WIDTH_ULEB128 },
        { 258, 108 /* R_LARCH_SUB_ULEB128 */, SUBTRACTED, WIDTH_ULEB128 },
};

static const struct relocation_kind *find_relocation_kind(uint16_t machine, uint32_t type)
{
        for (size_t i = 0; i < sizeof known_relocations / sizeof *known_relocations; i++)
                if (known_relocations[i].machine == machine && known_relocations[i].type == type)
                        return &known_relocations[i];
        return NULL;
}

/* A section to which relocations are applied. */
struct relocated_section {
        const char *name;
        uint64_t start, size; /* in the copy */
        uint64_t bias;        /* of the addresses in it */
        bool has_lists;       /* .debug_ranges, .debug_loc: all ones is a base address there, and zero an end */
};

struct relocation {
        uint64_t at; /* in its section */
        uint64_t symbol;
        uint32_t type;
        uint64_t addend; /* 0 if it is at the place */
};

/* MIPS64 has a symbol and four bytes, the last of them the type; read as one little-endian number the symbol is low. */
static void split_relocation_info(const struct placing *p, uint64_t info, struct relocation *ret)
{
        if (!p->img->is_64) {
                ret->symbol = ELF32_R_SYM(info);
                ret->type = ELF32_R_TYPE(info);
        } else if (p->img->machine == EM_MIPS) {
                ret->symbol = p->img->big_endian ? info >> 32 : (uint32_t)info;
                ret->type = p->img->big_endian ? (uint8_t)info : (uint8_t)(info >> 56);
        } else {
                ret->symbol = info >> 32;
                ret->type = (uint32_t)info;
        }
}

static bool read_relocation(struct reader *r, const struct placing *p, bool has_addend, struct relocation *ret)
{
        uint32_t at, info, addend = 0;
        uint64_t info64;

        *ret = (struct relocation){ 0 };
        if (p->img->is_64) {
                if (!reader_u64(r, &ret->at) || !reader_u64(r, &info64) || (has_addend && !reader_u64(r, &ret->addend)))
                        return false;
        } else {
                if (!reader_u32(r, &at) || !reader_u32(r, &info) || (has_addend && !reader_u32(r, &addend)))
                        return false;
                ret->at = at;
                ret->addend = (uint64_t)(int32_t)addend;
                info64 = info;
        }
        split_relocation_info(p, info64, ret);
        return true;
}

/* Bytes of the ULEB128 at the place; 0 when it does not end in the section. */
static unsigned count_uleb128_bytes(const struct placing *p, const struct relocated_section *to, uint64_t at)
{
        for (unsigned n = 0; n < 10 && at + n < to->size; n++)
                if (!(p->bytes->data[to->start + at + n] & 0x80))
                        return n + 1;
        return 0;
}

static uint64_t read_place(const struct placing *p, const uint8_t *place, unsigned width, unsigned bytes)
{
        uint64_t v = 0;

        if (width == WIDTH_6_BITS)
                return place[0] & 0x3f;
        for (unsigned i = 0; i < bytes; i++) {
                if (width == WIDTH_ULEB128)
                        v |= i < 9 ? (uint64_t)(place[i] & 0x7f) << 7 * i : (uint64_t)(place[i] & 1) << 63;
                else
                        v |= (uint64_t)place[i] << 8 * (p->img->big_endian ? bytes - 1 - i : i);
        }
        return width == 4 ? (uint64_t)(int32_t)v : v;
}

static void write_place(struct placing *p, uint64_t at, unsigned width, unsigned bytes, uint64_t value)
{
        uint8_t *place = p->bytes->data + at;

        if (width == WIDTH_6_BITS)
                place[0] = (uint8_t)((place[0] & 0xc0) | (value & 0x3f));
        else if (width == WIDTH_ULEB128)
                for (unsigned i = 0; i < bytes; i++, value >>= 7)
                        place[i] = (uint8_t)((value & 0x7f) | (i + 1 < bytes ? 0x80 : 0));
        else
                put_copy_number(p, at, value, bytes);
}

static uint64_t get_discarded_address(const struct relocated_section *to)
{
        return to->has_lists ? 1 : UINT64_MAX;
}

/* @param has_addend false: the addend is the value at the place */
static enum status apply_relocation(struct placing *p, const struct relocated_section *to, const struct relocation *r,
                                    bool has_addend, const struct relocation_kind *kind, struct error *err)
{
        unsigned width = kind->formula == DISCARDED ? get_address_bytes(p) : kind->width, bytes = width;
        struct placed_symbol s =
                r->symbol < p->symbol_count ? p->symbols[r->symbol] : (struct placed_symbol){ .value = UINT64_MAX };
        uint64_t symbol = s.value + (s.is_address ? to->bias : 0), value, old, addend;

        if (width == WIDTH_6_BITS)
                bytes = 1;
        else if (width == WIDTH_ULEB128)
                bytes = r->at < to->size ? count_uleb128_bytes(p, to, r->at) : 0;
        if (!bytes || r->at > to->size || bytes > to->size - r->at) {
                if (kind->formula == DISCARDED)
                        return ST_OK;
                return error_set(err, ST_BAD_DATA, "a relocation of %.64s of '%s' is outside its section", to->name,
                                 p->img->name);
        }
        old = read_place(p, p->bytes->data + to->start + r->at, width, bytes);
        addend = has_addend ? r->addend : old;
        if (kind->formula == ADDEND)
                value = addend;
        else if (kind->formula == DISCARDED || s.value == UINT64_MAX)
                value = get_discarded_address(to);
        else if (kind->formula == ADDED)
                value = old + symbol + r->addend;
        else if (kind->formula == SUBTRACTED)
                value = old - symbol - r->addend;
        else
                value = symbol + addend - (kind->formula == RELATIVE_TO_PLACE ? r->at : 0);
        write_place(p, to->start + r->at, width, bytes, value);
        return ST_OK;
}

static enum status relocate_section(struct placing *p, const struct elf_section *relocations,
                                    const struct relocated_section *to, struct error *err)
{
        bool has_addend = relocations->type == SHT_RELA;
        size_t entry = p->img->is_64 ? (has_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel))
                                     : (has_addend ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel));
        const uint8_t *raw;
        struct reader r;
        size_t raw_size;
        enum status st = elf_section_raw(p->img, relocations, &raw, &raw_size, err);

        if (st)
                return st;
        reader_init(&r, raw, raw_size);
        r.big_endian = p->img->big_endian;
        while (!st && reader_left(&r) >= entry) {
                const struct relocation_kind *kind;
                struct relocation one;

                if (!read_relocation(&r, p, has_addend, &one))
                        return reader_error(&r, err, relocations->name);
                kind = find_relocation_kind(p->img->machine, one.type);
                if (!kind)
                        return error_set(err, ST_UNSUPPORTED,
                                         "the DWARF of '%s' is not used: relocation type %" PRIu32
                                         " of machine %u in %.64s is unknown",
                                         p->img->name, one.type, p->img->machine, relocations->name);
                if (kind->formula != IGNORED && (kind->formula != DISCARDED || to->has_lists))
                        st = apply_relocation(p, to, &one, has_addend, kind, err);
        }
        return st;
}

/* The copy is no longer compressed: ".zdebug_info" becomes ".debug_info". */
static void rename_unpacked_section(struct placing *p, const struct elf_section *s)
{
        const struct elf_section *names = elf_image_section_at(p->img, p->img->name_section);
        uint64_t at = (uint64_t)((const uint8_t *)s->name - p->img->data);

        if (!names || !starts_with(s->name, ".zdebug_"))
                return;
        p->bytes->data[at + 1] = '.';
        put_copy_number(p,
                        p->headers_at + s->index * (p->img->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)) +
                                offsetof(Elf64_Shdr, sh_name),
                        at + 1 - names->offset, 4);
}

/* Append the unpacked content to the copy and update the section header. */
static enum status unpack_section(struct placing *p, const struct elf_section *s, struct relocated_section *to,
                                  struct error *err)
{
        _cleanup_elf_section_data_ struct elf_section_data d = { 0 };
        enum status st = elf_section_data(p->img, s, LIMIT_SECTION_UNPACKED_BYTES, &d, err);

        if (st)
                return st;
        to->start = p->bytes->size;
        to->size = d.size;
        buf_append(p->bytes, d.bytes, d.size);
        st = buf_status(p->bytes, err, s->name);
        if (st)
                return st;
        if (!p->img->is_64 && p->bytes->size > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "'%s' is too large for a 32-bit file when unpacked", p->img->name);
        put_section_field(p, s->index, sh_flags, s->flags & ~(uint64_t)SHF_COMPRESSED);
        put_section_field(p, s->index, sh_offset, to->start);
        put_section_field(p, s->index, sh_size, to->size);
        rename_unpacked_section(p, s);
        return ST_OK;
}

static bool is_dwarf_section(const struct elf_section *s)
{
        return starts_with(s->name, ".debug_") || starts_with(s->name, ".zdebug_");
}

static bool has_address_pairs(const char *name)
{
        const char *of = strstr(name, "debug_");

        return of && (strcmp(of, "debug_ranges") == 0 || strcmp(of, "debug_loc") == 0);
}

static enum status relocate_dwarf(struct placing *p, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 1; !st && i < p->img->section_count; i++) {
                const struct elf_section *s = &p->img->sections[i];
                const struct elf_section *target = elf_image_section_at(p->img, s->info);
                struct relocated_section to;

                if ((s->type != SHT_RELA && s->type != SHT_REL) || !target || !elf_section_has_content(target) ||
                    !(is_dwarf_section(target) || strcmp(target->name, ".opd") == 0))
                        continue;
                to = (struct relocated_section){ .name = target->name,
                                                 .start = target->offset,
                                                 .size = target->size,
                                                 .bias = is_dwarf_section(target) ? DWARF_BIAS : 0,
                                                 .has_lists = has_address_pairs(target->name) };
                if (to.bias)
                        p->dwarf_bias = to.bias;
                if (elf_section_is_compressed(target))
                        st = unpack_section(p, target, &to, err);
                if (!st)
                        st = relocate_section(p, s, &to, err);
        }
        return st;
}

/* The symbol table is left. */
static void drop_dwarf(struct placing *p)
{
        size_t size = p->img->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);

        for (size_t i = 1; i < p->img->section_count; i++)
                if (is_dwarf_section(&p->img->sections[i]))
                        put_copy_number(p, p->headers_at + i * size + offsetof(Elf64_Shdr, sh_type), SHT_NOBITS, 4);
}

/* ---- the copy ---- */

static enum status copy_image(struct placing *p, struct error *err)
{
        const struct elf_image *img = p->img;
        size_t expected = img->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
        uint16_t header_size;
        uint32_t headers_at;
        struct reader r;
        bool ok;

        buf_init(p->bytes, LIMIT_OBJECT_BYTES);
        buf_append(p->bytes, img->data, img->size);
        reader_init(&r, img->data, img->size);
        r.big_endian = img->big_endian;
        if (img->is_64) {
                ok = reader_seek(&r, offsetof(Elf64_Ehdr, e_shoff)) && reader_u64(&r, &p->headers_at) &&
                     reader_seek(&r, offsetof(Elf64_Ehdr, e_shentsize)) && reader_u16(&r, &header_size);
        } else {
                ok = reader_seek(&r, offsetof(Elf32_Ehdr, e_shoff)) && reader_u32(&r, &headers_at) &&
                     reader_seek(&r, offsetof(Elf32_Ehdr, e_shentsize)) && reader_u16(&r, &header_size);
                p->headers_at = ok ? headers_at : 0;
        }
        if (!ok)
                return reader_error(&r, err, "the ELF header");
        if (img->section_count && header_size != expected)
                return error_set(err, ST_UNSUPPORTED, "'%s' has section headers of %u bytes; link it first", img->name,
                                 header_size);
        return buf_status(p->bytes, err, img->name);
}

enum status relocatable_assign_addresses(const struct elf_image *img, struct buf *bytes, struct elf_image *ret,
                                         uint64_t *dwarf_bias_ret, struct error *dropped_ret, struct error *err)
{
        struct placing p = { .img = img, .bytes = bytes };
        enum status st = copy_image(&p, err);

        *dropped_ret = (struct error){ 0 };
        if (!st) {
                put_copy_number(&p, offsetof(Elf64_Ehdr, e_type), ET_EXEC, 2);
                st = place_sections(&p, err);
        }
        if (!st)
                st = place_symbols(&p, err);
        if (!st) {
                st = relocate_dwarf(&p, dropped_ret);
                if (st == ST_UNSUPPORTED || st == ST_BAD_DATA || st == ST_TOO_BIG) {
                        drop_dwarf(&p);
                        st = ST_OK;
                } else if (st && err) {
                        *err = *dropped_ret;
                }
        }
        if (!st)
                st = elf_image_from_memory(bytes->data, bytes->size, img->name, ret, err);
        *dwarf_bias_ret = p.dwarf_bias;
        free(p.addresses);
        free(p.symbols);
        return st;
}
