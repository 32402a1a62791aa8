/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/source_plt.h"

#include <inttypes.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "symbolizer/source_fill.h"
#include "symbolizer/source_relative.h"

#define STUB_BYTES 16        /* the usual size of one */
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
        size_t n = strcspn(r->symbol, "@");

        if (r->kind == DYNAMIC_IRELATIVE)
                snprintf(name, sizeof name, "*ABS*+0x%" PRIx64 "@plt", (uint64_t)r->addend);
        else if (n == 0 || n > sizeof name - sizeof "@plt")
                return true;
        else
                snprintf(name, sizeof name, "%.*s@plt", (int)n, r->symbol);
        frame.function = symbol_table_builder_function(s->b, name, "");
        return source_ranges_add(&s->ranges, start, end, symbol_table_builder_chain(s->b, &frame, 1));
}

/* ---- x86-64 ---- */

static uint32_t little_endian(const uint8_t *p)
{
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The GOT slot of the first "jmp *slot(%rip)" among the bytes of a stub. */
static bool x86_slot(const uint8_t *stub, size_t size, uint64_t address, uint64_t *ret)
{
        for (size_t i = 0; i + 6 <= size; i++) {
                if (stub[i] == 0xff && stub[i + 1] == 0x25) {
                        *ret = address + i + 6 + (uint64_t)(int32_t)little_endian(stub + i + 2);
                        return true;
                }
        }
        return false;
}

/* "push $number" and a jump, of a lazy stub whose jump through the GOT is in .plt.sec. */
static bool x86_number(const uint8_t *stub, size_t size, uint32_t *ret)
{
        size_t at = size >= 4 && little_endian(stub) == 0xfa1e0ff3 ? 4 : 0; /* endbr64 */

        if (at + 6 > size || stub[at] != 0x68 || (stub[at + 5] != 0xe9 && stub[at + 5] != 0xf2))
                return false;
        *ret = little_endian(stub + at + 1);
        return true;
}

/* The relocation of that number in .rela.plt. */
static const struct dynamic_relocation *numbered(const struct plt_source *s, uint32_t number)
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

static bool x86_section(struct plt_source *s, const struct plt *p)
{
        size_t step = p->section->entry_size == 8 || strcmp(p->section->name, ".plt.got") == 0 ? 8 : STUB_BYTES;

        /* With IBT the stubs of .plt.got are long too, and ld does not say so everywhere. */
        if (p->section->entry_size == STUB_BYTES || (p->size >= 4 && little_endian(p->bytes) == 0xfa1e0ff3))
                step = STUB_BYTES;
        for (size_t at = 0; at < p->size; at += step) {
                size_t size = p->size - at < step ? p->size - at : step;
                uint64_t address = p->section->address + at, slot;
                const struct dynamic_relocation *r = NULL;
                uint32_t number;

                if (x86_slot(p->bytes + at, size, address, &slot))
                        r = dynamic_relocations_find(&s->relocations, slot);
                else if (x86_number(p->bytes + at, size, &number))
                        r = numbered(s, number);
                if (r && !add_stub(s, address, address + size, r))
                        return false;
        }
        return true;
}

/* ---- AArch64 ---- */

enum { BTI_C = 0xd503245f, NOP = 0xd503201f, BR_X17 = 0xd61f0220 };

/* "adrp x16, page; ldr x17, [x16, #offset]" */
static bool arm_slot(uint32_t adrp, uint32_t ldr, uint64_t address, uint64_t *ret)
{
        uint64_t page = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);

        if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
                return false;
        if (page & 1 << 20)
                page |= ~(uint64_t)0 << 21;
        *ret = (address & ~(uint64_t)0xfff) + (page << 12) + (ldr >> 10 & 0xfff) * 8;
        return true;
}

static uint32_t instruction(const struct plt *p, size_t at)
{
        return at + 4 <= p->size ? little_endian(p->bytes + at) : 0;
}

/* Behind the branch and the padding of the stub at. */
static size_t arm_end(const struct plt *p, size_t at)
{
        size_t end = at;

        while (end < p->size && end - at < STUB_BYTES_MAX && instruction(p, end) != BR_X17)
                end += 4;
        end += 4;
        while (end < p->size && end - at < STUB_BYTES_MAX && instruction(p, end) == NOP)
                end += 4;
        return end < p->size ? end : p->size;
}

static bool arm_section(struct plt_source *s, const struct plt *p)
{
        for (size_t at = 0; at + 8 <= p->size; at += 4) {
                uint64_t address = p->section->address + at, slot;
                const struct dynamic_relocation *r;

                if (!arm_slot(instruction(p, at), instruction(p, at + 4), address, &slot))
                        continue;
                r = dynamic_relocations_find(&s->relocations, slot);
                if (r && !add_stub(s, at >= 4 && instruction(p, at - 4) == BTI_C ? address - 4 : address,
                                   p->section->address + arm_end(p, at), r))
                        return false;
        }
        return true;
}

/* ---- all of them ---- */

static int by_address(const void *a, const void *b)
{
        const struct plt *x = a, *y = b;

        return x->section->address < y->section->address ? -1 : x->section->address > y->section->address;
}

static size_t find_sections(const struct elf_image *img, struct plt *ret, size_t max)
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
                qsort(ret, count, sizeof *ret, by_address);
        return count;
}

enum status source_plt_fill(const struct elf_image *img, struct symbol_table_builder *b, bool *used_ret,
                            struct error *err)
{
        struct plt_source s = { .img = img, .b = b };
        struct plt sections[4];
        size_t count = find_sections(img, sections, 4);
        bool is_x86 = img->machine == EM_X86_64, ok = true;
        enum status st;

        *used_ret = false;
        if (count == 0 || !(is_x86 || img->machine == EM_AARCH64) || img->big_endian)
                return ST_OK;
        st = dynamic_relocations_read(img, &s.relocations, err);
        if (st)
                return st;
        for (size_t i = 0; ok && s.relocations.count && i < count; i++)
                ok = is_x86 ? x86_section(&s, &sections[i]) : arm_section(&s, &sections[i]);
        *used_ret = ok && source_fill(b, &s.ranges);
        source_ranges_deinit(&s.ranges);
        dynamic_relocations_deinit(&s.relocations);
        return ok ? ST_OK : error_no_memory(err);
}
