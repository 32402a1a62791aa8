/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/function_boundaries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"
#include "common/text.h"
#include "symbolizer/sources/source_plt.h"
#include "symbolizer/table/gap_fill.h"
#include "unwind-tables/cfi_arch.h"
#include "unwind-tables/cfi_source.h"

#define NAME_START "fn@0x"
#define LABEL_BYTES 256 /* a file name */
#define CALL_BYTES 5    /* opcode and 32-bit displacement */
#define CODE_ALIGNMENT 16
#define PLT_SECTIONS_MAX 8 /* .plt, .plt.got, .plt.sec; others are taken for code */

struct boundary_search {
        const struct boundary_input *in;
        struct cfi_source cfi;
        struct code_region plt[PLT_SECTIONS_MAX]; /* its stubs have names of their own, or none */
        size_t plt_count;
        uint64_t *starts; /* owned; of functions without an FDE */
        size_t start_count, start_capacity;
        struct code_region *functions; /* owned; sorted, disjoint */
        size_t function_count, function_capacity;
};

/* ---- code without FDEs ---- */

static bool has_fde(const struct boundary_search *s, uint64_t address)
{
        size_t i = cfi_source_find_fde(&s->cfi, address);

        return i < s->cfi.fde_count && s->cfi.fdes[i].start <= address;
}

static void find_plt(struct boundary_search *s)
{
        const struct elf_image *img = s->in->img;

        for (size_t i = 1; i < img->section_count && s->plt_count < PLT_SECTIONS_MAX; i++) {
                const struct elf_section *section = &img->sections[i];

                if (is_plt_section(section) && section->size <= UINT64_MAX - section->address)
                        s->plt[s->plt_count++] =
                                (struct code_region){ section->address, section->address + section->size };
        }
}

static bool is_in_plt(const struct boundary_search *s, uint64_t address)
{
        for (size_t i = 0; i < s->plt_count; i++)
                if (address >= s->plt[i].start && address < s->plt[i].end)
                        return true;
        return false;
}

static bool add_start(struct boundary_search *s, uint64_t address)
{
        if (s->start_count == LIMIT_UNWIND_FDES || has_fde(s, address) || is_in_plt(s, address))
                return true;
        if (!array_reserve(&s->starts, &s->start_capacity, s->start_count))
                return false;
        s->starts[s->start_count++] = address;
        return true;
}

/* What looks like a call may be data: a function is aligned, or follows a return, a jump or padding. */
static bool is_plausible_start(const struct elf_image *img, uint64_t address)
{
        const uint8_t *bytes;

        if (address % CODE_ALIGNMENT == 0)
                return true;
        if (!elf_image_bytes_at(img, address - 1, 5, &bytes))
                return false;
        return bytes[0] == 0xc3 || bytes[0] == 0xcc || bytes[0] == 0x90 || load_le32(bytes + 1) == 0xfa1e0ff3;
}

static bool add_call_targets(struct boundary_search *s, const struct code_region *region)
{
        const struct elf_image *img = s->in->img;
        uint64_t size = region->end - region->start;
        const uint8_t *bytes;

        if (!elf_image_bytes_at(img, region->start, size, &bytes))
                return true;
        for (uint64_t at = 0; at + CALL_BYTES <= size; at++) {
                uint64_t target;

                if (bytes[at] != 0xe8)
                        continue;
                target = region->start + at + CALL_BYTES + (uint64_t)(int64_t)(int32_t)load_le32(bytes + at + 1);
                if (code_map_find(s->in->code, target) && !has_fde(s, target) && is_plausible_start(img, target) &&
                    !add_start(s, target))
                        return false;
        }
        return true;
}

static bool add_section_starts(struct boundary_search *s)
{
        const struct elf_image *img = s->in->img;

        for (size_t i = 1; i < img->section_count; i++)
                if (elf_section_is_code(&img->sections[i]) && elf_section_has_content(&img->sections[i]) &&
                    !add_start(s, img->sections[i].address))
                        return false;
        return true;
}

static int compare_boundary_starts(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static bool find_other_starts(struct boundary_search *s)
{
        bool ok = add_section_starts(s);

        for (size_t i = 0; ok && s->in->img->machine == EM_X86_64 && i < s->in->code->count; i++)
                ok = add_call_targets(s, &s->in->code->regions[i]);
        if (ok && s->start_count)
                qsort(s->starts, s->start_count, sizeof *s->starts, compare_boundary_starts);
        return ok;
}

/* ---- functions ---- */

static bool add_function(struct boundary_search *s, uint64_t start, uint64_t end)
{
        if (s->in->filter && !address_filter_overlaps(s->in->filter, start, end))
                return true;
        if (!array_reserve(&s->functions, &s->function_capacity, s->function_count))
                return false;
        s->functions[s->function_count++] = (struct code_region){ start, end };
        return true;
}

/* The end of its code, or the next function. @param i  the last one of equal starts */
static uint64_t find_end_without_fde(const struct boundary_search *s, size_t i)
{
        const struct code_region *region = code_map_find(s->in->code, s->starts[i]);
        size_t fde = cfi_source_find_fde(&s->cfi, s->starts[i]);
        uint64_t end = region ? region->end : s->starts[i];

        if (i + 1 < s->start_count && s->starts[i + 1] < end)
                end = s->starts[i + 1];
        if (fde < s->cfi.fde_count && s->cfi.fdes[fde].start < end)
                end = s->cfi.fdes[fde].start;
        return end;
}

/* Both in order of their starts. */
static bool merge_functions(struct boundary_search *s)
{
        size_t fde = 0, other = 0;
        bool ok = true;

        while (ok && (fde < s->cfi.fde_count || other < s->start_count)) {
                if (other == s->start_count || (fde < s->cfi.fde_count && s->cfi.fdes[fde].start < s->starts[other])) {
                        const struct cfi_fde *f = &s->cfi.fdes[fde++];

                        if (code_map_find(s->in->code, f->start) && !is_in_plt(s, f->start))
                                ok = add_function(s, f->start, f->end);
                        continue;
                }
                if (other + 1 == s->start_count || s->starts[other + 1] != s->starts[other])
                        ok = add_function(s, s->starts[other], find_end_without_fde(s, other));
                other++;
        }
        return ok;
}

/* ---- names ---- */

static void make_label(const struct boundary_input *in, char ret[static LABEL_BYTES])
{
        char hex[BUILD_ID_HEX_MAX];
        const char *name = in->file_name;

        if (!name)
                name = elf_image_soname(in->img);
        if (!name && in->img->build_id.size) {
                build_id_hex(&in->img->build_id, hex);
                hex[8] = 0;
                name = hex;
        }
        snprintf(ret, LABEL_BYTES, "%s", name ? name : "?");
}

/*
 * The C library's trampoline has no symbol in .dynsym. Its FDE begins a byte early, since unwinders look up the byte
 * before a return address.
 */
static bool is_signal_trampoline(const struct elf_image *img, const struct code_region *f)
{
        const struct cfi_arch *arch = cfi_arch_find(img->machine);
        const uint8_t *bytes;

        for (uint64_t at = f->start; arch && at <= f->start + 1; at++)
                if (elf_image_bytes_at(img, at, arch->sigreturn_size, &bytes) &&
                    memcmp(bytes, arch->sigreturn, arch->sigreturn_size) == 0)
                        return true;
        return false;
}

static enum status name_functions(const struct boundary_search *s, struct symbol_table_builder *b, bool *used_ret,
                                  struct error *err)
{
        struct source_ranges ranges = { 0 };
        char label[LABEL_BYTES], name[LABEL_BYTES + 32];
        size_t at = 0;
        bool ok = true;

        make_label(s->in, label);
        symbol_table_builder_settle(b);
        for (size_t i = 0; ok && i < s->function_count; i++) {
                const struct code_region *f = &s->functions[i];
                struct symbol_table_frame frame = { 0 };

                while (at < b->range_count && b->ranges[at].end <= f->start)
                        at++;
                if (at < b->range_count && b->ranges[at].start <= f->start &&
                    !symbol_table_builder_is_nameless(b, b->ranges[at].chain))
                        continue;
                if (is_signal_trampoline(s->in->img, f))
                        snprintf(name, sizeof name, "__restore_rt");
                else
                        snprintf(name, sizeof name, NAME_START "%" PRIx64 " [%s]", f->start, label);
                frame.function = symbol_table_builder_add_function(b, "", name);
                ok = source_ranges_add(&ranges, f->start, f->end, symbol_table_builder_add_chain(b, &frame, 1));
        }
        if (ok)
                *used_ret = fill_table_gaps(b, &ranges);
        source_ranges_deinit(&ranges);
        return ok ? ST_OK : error_no_memory(err);
}

enum status fill_from_function_boundaries(const struct boundary_input *in, struct symbol_table_builder *b,
                                          bool *used_ret, struct error *err)
{
        struct boundary_search s = { .in = in };
        enum status st = cfi_source_open(in->img, &s.cfi, err);

        if (st && st != ST_NO_MEMORY)
                return ST_OK;
        find_plt(&s);
        if (!st)
                st = find_other_starts(&s) && merge_functions(&s) ? name_functions(&s, b, used_ret, err)
                                                                  : error_no_memory(err);
        free(s.starts);
        free(s.functions);
        cfi_source_deinit(&s.cfi);
        return st;
}

bool is_boundary_name(const char *function)
{
        return starts_with(function, NAME_START);
}
