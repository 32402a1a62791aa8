/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/source_plt.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "common/limits.h"
#include "common/reader.h"
#include "symbolizer/table/gap_fill.h"
#include "symbolizer/sources/dynamic_relocations.h"

#define STUB_BYTES 16 /* the usual size of one */
#define STUB_BYTES_MAX 32

struct plt {
        const struct elf_section *section;
        const uint8_t *bytes;
        size_t size;
};

struct plt_source {
        const struct elf_image *img;
        struct symbol_table_builder *b;
        struct dynamic_relocations relocations;
        struct source_ranges ranges;
};

static bool add_stub(struct plt_source *s, uint64_t start, uint64_t end, const struct dynamic_relocation *r)
{
        char name[LIMIT_NAME_BYTES];
        struct symbol_table_frame frame = { 0 };
        size_t n = elf_symbol_name_size(r->symbol);

        if (r->kind == DYNAMIC_IRELATIVE)
                snprintf(name, sizeof name, "*ABS*+0x%" PRIx64 "@plt", (uint64_t)r->addend);
        else if (n == 0 || n > sizeof name - sizeof "@plt")
                return true;
        else
                snprintf(name, sizeof name, "%.*s@plt", (int)n, r->symbol);
        frame.function = symbol_table_builder_add_function(s->b, name, "");
        return source_ranges_add(&s->ranges, start, end, symbol_table_builder_add_chain(s->b, &frame, 1));
}

/* ---- x86-64 ---- */

/* The GOT slot of the first "jmp *slot(%rip)" among the bytes of a stub. */
static bool find_x86_slot(const uint8_t *stub, size_t size, uint64_t address, uint64_t *ret)
{
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

static int compare_plt_sections(const void *a, const void *b)
{
        const struct plt *x = a, *y = b;

        return x->section->address < y->section->address ? -1 : x->section->address > y->section->address;
}

static size_t find_plt_sections(const struct elf_image *img, struct plt *ret, size_t max)
{
        static const char *const names[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
        size_t count = 0;

        for (size_t i = 0; i < sizeof names / sizeof *names && count < max; i++) {
                struct plt p = { .section = elf_image_section(img, names[i]) };

                if (p.section && elf_section_has_content(p.section) && (p.section->flags & SHF_EXECINSTR) &&
                    elf_section_raw(img, p.section, &p.bytes, &p.size, NULL) == ST_OK &&
                    p.section->address <= UINT64_MAX - p.size)
                        ret[count++] = p;
        }
        if (count)
                qsort(ret, count, sizeof *ret, compare_plt_sections);
        return count;
}

enum status fill_from_plt(const struct elf_image *img, struct symbol_table_builder *b, bool *used_ret,
                          struct error *err)
{
        struct plt_source s = { .img = img, .b = b };
        struct plt sections[4];
        size_t count = find_plt_sections(img, sections, 4);
        bool is_x86 = img->machine == EM_X86_64, ok = true;
        enum status st;

        *used_ret = false;
        if (count == 0 || !(is_x86 || img->machine == EM_AARCH64) || img->big_endian)
                return ST_OK;
        st = dynamic_relocations_read(img, &s.relocations, err);
        if (st)
                return st;
        for (size_t i = 0; ok && s.relocations.count && i < count; i++)
                ok = is_x86 ? add_x86_stubs(&s, &sections[i]) : add_arm_stubs(&s, &sections[i]);
        *used_ret = ok && fill_table_gaps(b, &s.ranges);
        source_ranges_deinit(&s.ranges);
        dynamic_relocations_deinit(&s.relocations);
        return ok ? ST_OK : error_no_memory(err);
}
