/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags in the first byte describe the rest: bit 0 aarch64, bit 1 .debug_frame instead of .eh_frame, bit 2 a whole ELF
 * file. Each row of the table is looked up and stepped, with the input as stack memory.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind-tables/unwind_table.h"
#include "unwind-tables/unwind_step.h"

#define CODE_BYTES 0x2000000
#define FRAMES_ADDRESS 0x1000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
        const uint8_t *data;
        size_t size;
};

static int read_input(void *ctx, __u64 addr, __u64 *ret)
{
        const struct memory *m = ctx;

        if (m->size < 8)
                return -1;
        memcpy(ret, m->data + addr % (m->size - 7), 8);
        return *ret == 0;
}

static void step_through(const struct unwind_table *t, const struct unwind_rules *rules, struct memory *memory,
                         uint64_t pc)
{
        struct unwind_regs regs = {
                .pc = pc, .sp = 0x1000, .fp = 0x1100, .lr = pc, .code_mask = 0xffffff, .scratch_known = 1
        };

        for (int i = 0; i < 32; i++) {
                const struct unwind_row *row;
                uint64_t sp = regs.sp;
                uint8_t was_return = regs.pc_is_return;

                if (unwind_table_find(t, unwind_lookup_pc(&regs), &row))
                        return;
                if (row->rule == UNWIND_RULE_GAP || row->rule >= rules->count)
                        __builtin_trap();
                if (unwind_step(&regs, &rules->items[row->rule], read_input, memory) != UNWIND_STEPPED)
                        return;
                if (regs.pc_is_return && (regs.sp < sp || (regs.sp == sp && was_return)))
                        __builtin_trap();
        }
}

static void examine_table(const struct elf_image *img, struct memory *memory)
{
        _cleanup_unwind_rules_ struct unwind_rules rules = { 0 };
        _cleanup_unwind_table_ struct unwind_table t = { 0 };

        if (unwind_rules_init(&rules, NULL) || unwind_table_build(img, &rules, &t, NULL))
                return;
        for (size_t i = 0; i < t.page_count; i++) {
                const struct unwind_row *rows = &t.rows[t.pages[i].first_row];

                if (i && t.pages[i].number <= t.pages[i - 1].number)
                        __builtin_trap();
                for (uint32_t k = 0; k < t.pages[i].row_count; k++) {
                        uint64_t pc = (t.pages[i].number << UNWIND_PAGE_BITS) + rows[k].offset;
                        const struct unwind_row *row = NULL;

                        if (k && rows[k].offset <= rows[k - 1].offset)
                                __builtin_trap();
                        if ((unwind_table_find(&t, pc, &row) == ST_OK) != (rows[k].rule != UNWIND_RULE_GAP) ||
                            (row && row != &rows[k]))
                                __builtin_trap();
                        if (k < 256)
                                step_through(&t, &rules, memory, pc);
                }
        }
}

static const char NAMES[] = "\0.eh_frame\0.debug_frame";

struct wrapping {
        Elf64_Ehdr header;
        Elf64_Phdr code;
        Elf64_Shdr sections[3];
        char names[sizeof NAMES];
};

/* Wraps a section in an ELF file. */
static uint8_t *wrap_in_elf(const uint8_t *data, size_t size, uint8_t kind, size_t *size_ret)
{
        struct wrapping w = {
                .header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                            .e_type = ET_DYN,
                            .e_machine = kind & 1 ? EM_AARCH64 : EM_X86_64,
                            .e_version = EV_CURRENT,
                            .e_ehsize = sizeof(Elf64_Ehdr),
                            .e_phoff = offsetof(struct wrapping, code),
                            .e_phentsize = sizeof(Elf64_Phdr),
                            .e_phnum = 1,
                            .e_shoff = offsetof(struct wrapping, sections),
                            .e_shentsize = sizeof(Elf64_Shdr),
                            .e_shnum = 3,
                            .e_shstrndx = 2 },
                .code = { .p_type = PT_LOAD, .p_flags = PF_X, .p_memsz = CODE_BYTES },
                .sections = { { 0 },
                              { .sh_name = kind & 2 ? 11 : 1,
                                .sh_type = SHT_PROGBITS,
                                .sh_addr = FRAMES_ADDRESS,
                                .sh_offset = sizeof w,
                                .sh_size = size },
                              { .sh_type = SHT_STRTAB,
                                .sh_offset = offsetof(struct wrapping, names),
                                .sh_size = sizeof NAMES } },
        };
        uint8_t *file = malloc(sizeof w + size);

        if (!file)
                return NULL;
        memcpy(w.names, NAMES, sizeof NAMES);
        memcpy(file, &w, sizeof w);
        memcpy(file + sizeof w, data, size);
        *size_ret = sizeof w + size;
        return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_free_ uint8_t *file = NULL;
        struct memory memory = { data, size };
        size_t file_size;

        if (size < 2)
                return 0;
        if (data[0] & 4) {
                if (elf_image_from_memory(data + 1, size - 1, "input", &img, NULL) == ST_OK)
                        examine_table(&img, &memory);
                return 0;
        }
        file = wrap_in_elf(data + 1, size - 1, data[0], &file_size);
        if (!file)
                return 0;
        if (elf_image_from_memory(file, file_size, "input", &img, NULL))
                __builtin_trap();
        examine_table(&img, &memory);
        return 0;
}
