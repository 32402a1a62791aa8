/* SPDX-License-Identifier: Apache-2.0 */
/* The path that builds an unwind table. */
#include <dwarf.h>
#include <elf.h>
#include <string.h>

#include "common/limits.h"
#include "tests/ratchet/ratchet.h"
#include "tests/support/elf_maker.h"
#include "unwind-tables/unwind_table.h"

#define CODE UINT64_C(0x100000)
#define FRAMES UINT64_C(0x10000000) /* address of .eh_frame */
#define UNWOUND 6000
#define UNWOUND_BYTES 256

static struct elf_image unwound;

/* Begin a CIE or FDE; its length is set at its end. */
static size_t begin_entry(struct buf *frames, uint32_t id)
{
        size_t begin = frames->size;

        buf_append_u32(frames, 0);
        buf_append_u32(frames, id);
        return begin;
}

static void end_entry(struct buf *frames, size_t begin)
{
        uint32_t length;

        while (frames->size % 8)
                buf_append_u8(frames, DW_CFA_nop);
        require_true(!frames->failed, "out of memory");
        length = (uint32_t)(frames->size - begin - 4);
        memcpy(frames->data + begin, &length, sizeof length);
}

static void add_cie(struct buf *frames)
{
        static const uint8_t rest[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16,
                                        1 };
        size_t begin = begin_entry(frames, 0);

        buf_append(frames, rest, sizeof rest);
        end_entry(frames, begin);
}

/* A function that saves one to six registers, and restores them before the last of its returns. */
static void add_fde(struct buf *frames, uint32_t number)
{
        static const uint8_t saved[] = { 6, 15, 14, 13, 12, 3 };
        size_t begin = begin_entry(frames, (uint32_t)frames->size + 4);
        uint64_t start = CODE + (uint64_t)number * UNWOUND_BYTES;
        uint32_t count = 1 + draw_below(6);

        buf_append_u32(frames, (uint32_t)(start - (FRAMES + begin + 8)));
        buf_append_u32(frames, UNWOUND_BYTES - draw_below(100));
        buf_append_u8(frames, 0);
        for (uint32_t i = 0; i < count; i++) {
                buf_append_u8(frames, (uint8_t)(DW_CFA_advance_loc | (1 + draw_below(3))));
                buf_append_u8(frames, DW_CFA_def_cfa_offset);
                buf_append_u8(frames, (uint8_t)(16 + 8 * i));
                buf_append_u8(frames, DW_CFA_offset | saved[i]);
                buf_append_u8(frames, (uint8_t)(2 + i));
        }
        buf_append_u8(frames, (uint8_t)(DW_CFA_advance_loc | (20 + draw_below(40))));
        buf_append_u8(frames, DW_CFA_remember_state);
        for (uint32_t i = count; i > 0; i--) {
                buf_append_u8(frames, DW_CFA_advance_loc | 2);
                buf_append_u8(frames, DW_CFA_def_cfa_offset);
                buf_append_u8(frames, (uint8_t)(8 * i));
        }
        buf_append_u8(frames, DW_CFA_advance_loc | 1);
        buf_append_u8(frames, DW_CFA_restore_state);
        end_entry(frames, begin);
}

static void prepare_unwind_table(void)
{
        static struct buf frames, file; /* kept: the image borrows them */
        struct elf_maker_section sections[] = {
                { 0 },
                { .name = ".eh_frame", .type = SHT_PROGBITS, .flags = SHF_ALLOC, .address = FRAMES },
        };
        const struct elf_maker_segment segments[] = { { .type = PT_LOAD,
                                                        .flags = PF_R | PF_X,
                                                        .address = CODE,
                                                        .memory_size = (uint64_t)UNWOUND * UNWOUND_BYTES } };
        const struct elf_maker maker = { .is_64 = true,
                                         .type = ET_DYN,
                                         .machine = EM_X86_64,
                                         .sections = sections,
                                         .section_count = 2,
                                         .segments = segments,
                                         .segment_count = 1 };
        struct error err;

        buf_init(&frames, MiB(8));
        buf_init(&file, MiB(8));
        add_cie(&frames);
        for (uint32_t i = 0; i < UNWOUND; i++)
                add_fde(&frames, i);
        sections[1].content = frames.data;
        sections[1].size = frames.size;
        elf_make(&maker, &file);
        require_ok(elf_image_from_memory(file.data, file.size, "made", &unwound, &err), &err);
}

static void run_unwind_table(void)
{
        struct unwind_table t = { 0 };
        struct unwind_rules rules;
        struct error err;

        require_ok(unwind_rules_init(&rules, &err), &err);
        require_ok(unwind_table_build(&unwound, &rules, &t, &err), &err);
        require_true(t.stats.functions == UNWOUND, "the unwind table lacks functions");
        unwind_table_deinit(&t);
        unwind_rules_deinit(&rules);
}

const struct ratchet_path unwind_paths[] = { { "unwind-table", prepare_unwind_table, run_unwind_table }, { NULL } };
