/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/source_plt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/limits.h"
#include "common/reader.h"
#include "common/search.h"
#include "common/text.h"
#include "symbolizer/table/gap_fill.h"
#include "symbolizer/table/huge_array.h"
#include "symbolizer/sources/code_symbols.h"
#include "symbolizer/sources/dynamic_relocations.h"

#define STUB_BYTES 16 /* the usual size of one */
#define STUB_BYTES_MAX 32
#define PLT_SECTIONS_MAX 8

bool is_plt_section(const struct elf_section *section)
{
        return starts_with(section->name, ".plt") || strcmp(section->name, ".iplt") == 0;
}

struct plt {
        const struct elf_section *section;
        const uint8_t *bytes;
        size_t size;
};

struct plt_source {
        const struct elf_image *img;
        struct symbol_table_builder *b;
        struct dynamic_relocations relocations;
        struct code_symbols resolvers; /* the best symbol of each indirect function */
        struct source_ranges ranges;
};

/* ---- indirect functions ---- */

static bool has_indirect_stubs(const struct dynamic_relocations *r)
{
        for (size_t i = 0; i < r->count; i++)
                if (r->items[i].kind == DYNAMIC_IRELATIVE)
                        return true;
        return false;
}

static bool add_resolvers_of_table(struct code_symbols *s, const struct elf_image *img, uint32_t type)
{
        struct elf_symbol_cursor cursor;
        struct elf_symbol sym;

        if (elf_symbols_begin_type(img, type, &cursor, NULL))
                return true; /* an unreadable table names none */
        while (elf_symbols_next(&cursor, &sym)) {
                if (sym.type != STT_GNU_IFUNC || !sym.name[0] || sym.section == SHN_UNDEF)
                        continue;
                if (!huge_array_reserve(&s->items, &s->capacity, s->count))
                        return false;
                s->items[s->count++] =
                        (struct code_symbol){ .name = sym.name, .start = sym.value, .binding = sym.binding };
        }
        return true;
}

/* The linkers keep the address of the resolver only; a symbol table tells which function it resolves. */
static bool find_resolvers(struct plt_source *s, const struct elf_image *other)
{
        const struct elf_image *images[] = { s->img, other };
        bool ok = true;

        if (!has_indirect_stubs(&s->relocations))
                return true;
        for (size_t i = 0; ok && i < 2; i++)
                ok = !images[i] || (add_resolvers_of_table(&s->resolvers, images[i], SHT_SYMTAB) &&
                                    add_resolvers_of_table(&s->resolvers, images[i], SHT_DYNSYM));
        if (ok && s->resolvers.count)
                qsort(s->resolvers.items, s->resolvers.count, sizeof *s->resolvers.items, compare_code_symbols);
        return ok;
}

/* NULL: it is unknown. */
static const char *find_indirect_function(const struct plt_source *s, uint64_t resolver)
{
        const struct code_symbols *r = &s->resolvers;
        size_t i = find_lower_bound(n, 0, r->count, r->items[n].start < resolver);

        return i < r->count && r->items[i].start == resolver ? r->items[i].name : NULL;
}

/* ---- stubs ---- */

static bool add_stub(struct plt_source *s, uint64_t start, uint64_t end, const struct dynamic_relocation *r)
{
        char name[LIMIT_NAME_BYTES];
        struct symbol_table_frame frame = { 0 };
        const char *symbol = r->kind == DYNAMIC_IRELATIVE ? find_indirect_function(s, (uint64_t)r->addend) : r->symbol;
        size_t n = symbol ? elf_symbol_name_size(symbol) : 0;

        if (!symbol)
                snprintf(name, sizeof name, "*ABS*+0x%" PRIx64 "@plt", (uint64_t)r->addend);
        else if (n == 0 || n > sizeof name - sizeof "@plt")
                return true;
        else
                snprintf(name, sizeof name, "%.*s@plt", (int)n, symbol);
        frame.function = symbol_table_builder_add_function(s->b, name, "");
        return source_ranges_add(&s->ranges, start, end, symbol_table_builder_add_chain(s->b, &frame, 1));
}

/* ---- x86-64 ---- */

/* "mov slot(%rip), %r11", with which a stub begins that does not jump indirectly (lld's -z retpolineplt). */
static bool is_retpoline_stub(const uint8_t *stub, size_t size)
{
        return size >= 7 && stub[0] == 0x4c && stub[1] == 0x8b && stub[2] == 0x1d;
}

/* A lazy one pushes its number, too, so that it needs two entries. */
static size_t get_retpoline_size(const uint8_t *stub, size_t left)
{
        return left >= 2 * STUB_BYTES && !is_retpoline_stub(stub + STUB_BYTES, STUB_BYTES) ? 2 * STUB_BYTES
                                                                                           : STUB_BYTES;
}

/* The GOT slot of the first "jmp *slot(%rip)" among the bytes of a stub. */
static bool find_x86_slot(const uint8_t *stub, size_t size, uint64_t address, uint64_t *ret)
{
        if (is_retpoline_stub(stub, size)) {
                *ret = address + 7 + (uint64_t)(int32_t)load_le32(stub + 3);
                return true;
        }
        for (size_t i = 0; i + 6 <= size; i++) {
                if (stub[i] == 0xff && stub[i + 1] == 0x25) {
                        *ret = address + i + 6 + (uint64_t)(int32_t)load_le32(stub + i + 2);
                        return true;
                }
        }
        return false;
}

/* "push $number" and a jump, of a lazy stub whose jump through the GOT is in .plt.sec. */
static bool find_x86_number(const uint8_t *stub, size_t size, uint32_t *ret)
{
        size_t at = size >= 4 && load_le32(stub) == 0xfa1e0ff3 ? 4 : 0; /* endbr64 */

        if (at + 6 > size || stub[at] != 0x68 || (stub[at + 5] != 0xe9 && stub[at + 5] != 0xf2))
                return false;
        *ret = load_le32(stub + at + 1);
        return true;
}

/* The relocation of that number in .rela.plt. */
static const struct dynamic_relocation *find_numbered_relocation(const struct plt_source *s, uint32_t number)
{
        const struct elf_section *section = elf_image_section(s->img, ".rela.plt");
        const uint8_t *bytes;
        struct reader r;
        uint64_t slot;
        size_t size;

        if (!section || elf_section_raw(s->img, section, &bytes, &size, NULL))
                return NULL;
        reader_init(&r, bytes, size);
        r.big_endian = s->img->big_endian;
        if (!reader_seek(&r, number * (uint64_t)sizeof(Elf64_Rela)) || !reader_u64(&r, &slot))
                return NULL;
        return dynamic_relocations_find(&s->relocations, slot);
}

static bool add_x86_stubs(struct plt_source *s, const struct plt *p)
{
        size_t step = p->section->entry_size == 8 || strcmp(p->section->name, ".plt.got") == 0 ? 8 : STUB_BYTES;

        /* With IBT the stubs of .plt.got are long too; ld does not always set the entry size. */
        if (p->section->entry_size == STUB_BYTES || (p->size >= 4 && load_le32(p->bytes) == 0xfa1e0ff3))
                step = STUB_BYTES;
        for (size_t at = 0; at < p->size; at += step) {
                size_t size = p->size - at < step ? p->size - at : step;
                uint64_t address = p->section->address + at, slot;
                const struct dynamic_relocation *r = NULL;
                uint32_t number;

                if (find_x86_slot(p->bytes + at, size, address, &slot))
                        r = dynamic_relocations_find(&s->relocations, slot);
                else if (find_x86_number(p->bytes + at, size, &number))
                        r = find_numbered_relocation(s, number);
                if (is_retpoline_stub(p->bytes + at, size) && p->size - at >= STUB_BYTES)
                        size = get_retpoline_size(p->bytes + at, p->size - at);
                if (r && !add_stub(s, address, address + size, r))
                        return false;
        }
        return true;
}

/* ---- AArch64 ---- */

enum { BTI_C = 0xd503245f, NOP = 0xd503201f, BR_X17 = 0xd61f0220 };

/* "adrp x16, page; ldr x17, [x16, #offset]" */
static bool find_arm_slot(uint32_t adrp, uint32_t ldr, uint64_t address, uint64_t *ret)
{
        uint64_t page = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);

        if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
                return false;
        if (page & 1 << 20)
                page |= ~(uint64_t)0 << 21;
        *ret = (address & ~(uint64_t)0xfff) + (page << 12) + (ldr >> 10 & 0xfff) * 8;
        return true;
}

static uint32_t get_instruction(const struct plt *p, size_t at)
{
        return at + 4 <= p->size ? load_le32(p->bytes + at) : 0;
}

/* End of a stub: after its branch and padding. */
static size_t find_arm_stub_end(const struct plt *p, size_t at)
{
        size_t end = at;

        while (end < p->size && end - at < STUB_BYTES_MAX && get_instruction(p, end) != BR_X17)
                end += 4;
        end += 4;
        while (end < p->size && end - at < STUB_BYTES_MAX && get_instruction(p, end) == NOP)
                end += 4;
        return end < p->size ? end : p->size;
}

static bool add_arm_stubs(struct plt_source *s, const struct plt *p)
{
        for (size_t at = 0; at + 8 <= p->size; at += 4) {
                uint64_t address = p->section->address + at, slot;
                const struct dynamic_relocation *r;

                if (!find_arm_slot(get_instruction(p, at), get_instruction(p, at + 4), address, &slot))
                        continue;
                r = dynamic_relocations_find(&s->relocations, slot);
                if (r && !add_stub(s, at >= 4 && get_instruction(p, at - 4) == BTI_C ? address - 4 : address,
                                   p->section->address + find_arm_stub_end(p, at), r))
                        return false;
        }
        return true;
}

/* ---- all of them ---- */

/* Of any machine. */
static enum status add_rest(struct plt_source *s, const struct plt *sections, size_t count, struct error *err)
{
        struct symbol_table_frame frame = { .function = symbol_table_builder_add_function(s->b, PLT_REST_NAME, "") };
        uint32_t chain = symbol_table_builder_add_chain(s->b, &frame, 1);
        struct source_ranges ranges = { 0 };
        bool ok = true;

        for (size_t i = 0; ok && i < count; i++)
                ok = source_ranges_add(&ranges, sections[i].section->address,
                                       sections[i].section->address + sections[i].size, chain);
        if (ok)
                fill_table_gaps(s->b, &ranges);
        source_ranges_deinit(&ranges);
        return ok ? ST_OK : error_no_memory(err);
}

static int compare_plt_sections(const void *a, const void *b)
{
        const struct plt *x = a, *y = b;

        return x->section->address < y->section->address ? -1 : x->section->address > y->section->address;
}

static size_t find_plt_sections(const struct elf_image *img, struct plt *ret, size_t max)
{
        size_t count = 0;

        for (size_t i = 1; i < img->section_count && count < max; i++) {
                struct plt p = { .section = &img->sections[i] };

                if (is_plt_section(p.section) && elf_section_has_content(p.section) &&
                    (p.section->flags & SHF_EXECINSTR) &&
                    elf_section_raw(img, p.section, &p.bytes, &p.size, NULL) == ST_OK &&
                    p.section->address <= UINT64_MAX - p.size)
                        ret[count++] = p;
        }
        if (count)
                qsort(ret, count, sizeof *ret, compare_plt_sections);
        return count;
}

static enum status add_named_stubs(struct plt_source *s, const struct elf_image *other, const struct plt *sections,
                                   size_t count, bool *used_ret, struct error *err)
{
        bool is_x86 = s->img->machine == EM_X86_64, ok = true;
        enum status st;

        if (!(is_x86 || s->img->machine == EM_AARCH64) || s->img->big_endian)
                return ST_OK;
        st = dynamic_relocations_read(s->img, &s->relocations, err);
        if (st)
                return st;
        ok = find_resolvers(s, other);
        for (size_t i = 0; ok && s->relocations.count && i < count; i++)
                ok = is_x86 ? add_x86_stubs(s, &sections[i]) : add_arm_stubs(s, &sections[i]);
        *used_ret = ok && fill_table_gaps(s->b, &s->ranges);
        source_ranges_deinit(&s->ranges);
        code_symbols_deinit(&s->resolvers);
        dynamic_relocations_deinit(&s->relocations);
        return ok ? ST_OK : error_no_memory(err);
}

enum status fill_from_plt(const struct elf_image *img, const struct elf_image *other, struct symbol_table_builder *b,
                          bool *used_ret, struct error *err)
{
        struct plt_source s = { .img = img, .b = b };
        struct plt sections[PLT_SECTIONS_MAX];
        size_t count = find_plt_sections(img, sections, PLT_SECTIONS_MAX);
        enum status st;

        *used_ret = false;
        if (count == 0)
                return ST_OK;
        st = add_named_stubs(&s, other, sections, count, used_ret, err);
        return st ? st : add_rest(&s, sections, count, err);
}
