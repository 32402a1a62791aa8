/* SPDX-License-Identifier: Apache-2.0 */
#include "disassembler/code_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/search.h"
#include "unwind-tables/cfi_source.h"

#define WINDOW_BYTES 512 /* disassembled from an address that no function covers */

struct wanted_address {
        uint64_t address;
        size_t rank;         /* index in the caller's list */
        uint64_t start, end; /* of the function that contains it; end 0: unknown */
        const char *symbol;
};

static int compare_wanted_addresses(const void *x, const void *y)
{
        const struct wanted_address *a = x, *b = y;

        return a->address < b->address ? -1 : a->address > b->address;
}

static int compare_wanted_ranks(const void *x, const void *y)
{
        const struct wanted_address *a = x, *b = y;

        return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The first address that is not below `from`. */
static size_t find_wanted_address(const struct wanted_address *w, size_t count, uint64_t from)
{
        size_t at = find_lower_bound(i, 0, count, w[i].address < from);

        return at;
}

/* ---- symbols ---- */

/* The shortest symbol that covers an address wins; of aliases, the first in the table. */
static void apply_symbol(struct wanted_address *w, size_t count, const struct elf_symbol *s)
{
        uint64_t end;

        if (!s->size || __builtin_add_overflow(s->value, s->size, &end))
                return;
        for (size_t i = find_wanted_address(w, count, s->value); i < count && w[i].address < end; i++) {
                if (w[i].end && w[i].end - w[i].start <= s->size)
                        continue;
                w[i].start = s->value;
                w[i].end = end;
                w[i].symbol = s->name;
        }
}

/* A damaged table is ignored. */
static void apply_symbol_table(const struct elf_image *img, uint32_t type, struct wanted_address *w, size_t count)
{
        const struct elf_section *table = elf_image_section_of_type(img, type);
        struct elf_symbol_cursor c;
        struct elf_symbol s;

        if (!table || !elf_section_has_content(table) || elf_symbols_begin(img, table, &c, NULL))
                return;
        while (elf_symbols_next(&c, &s))
                if (elf_symbol_is_function(&s))
                        apply_symbol(w, count, &s);
}

/* ---- call frame information ---- */

static void apply_cfi(const struct elf_image *img, struct wanted_address *w, size_t count)
{
        _cleanup_cfi_source_ struct cfi_source cfi = { 0 };
        bool complete = true;

        for (size_t i = 0; i < count; i++)
                complete = complete && w[i].end;
        if (complete || cfi_source_open(img, &cfi, NULL))
                return;
        for (size_t i = 0; i < count; i++) {
                size_t k = w[i].end ? cfi.fde_count : cfi_source_find_fde(&cfi, w[i].address);

                if (k == cfi.fde_count || cfi.fdes[k].start > w[i].address)
                        continue;
                w[i].start = cfi.fdes[k].start;
                w[i].end = cfi.fdes[k].end;
        }
}

/* ---- segments ---- */

static const struct elf_segment *find_executable_segment(const struct elf_image *img, uint64_t address)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];

                if (s->type == PT_LOAD && s->flags & PF_X && address >= s->address &&
                    address - s->address < s->file_size)
                        return s;
        }
        return NULL;
}

/* Clip the function to the segment of its address; false when the address is not in the file's code. */
static bool clip_to_code(const struct elf_image *img, struct wanted_address *w)
{
        const struct elf_segment *s = find_executable_segment(img, w->address);

        if (!s)
                return false;
        if (!w->end) {
                w->start = img->machine == EM_AARCH64 ? w->address & ~UINT64_C(3) : w->address;
                w->end = w->start + WINDOW_BYTES;
        }
        if (w->start < s->address)
                w->start = s->address;
        if (w->end - s->address > s->file_size)
                w->end = s->address + s->file_size;
        return w->start < w->end;
}

static bool is_range_known(const struct code_range *ranges, uint32_t count, uint64_t address)
{
        for (uint32_t i = 0; i < count; i++)
                if (address >= ranges[i].start && address < ranges[i].end)
                        return true;
        return false;
}

enum status code_ranges_find(const struct elf_image *code, const struct elf_image *symbols_of,
                             const uint64_t *addresses, size_t count, struct code_range **ranges_ret,
                             uint32_t *count_ret, struct error *err)
{
        _cleanup_free_ struct wanted_address *w = calloc(count + 1, sizeof *w);
        struct code_range *ranges = calloc(LIMIT_DISASSEMBLY_RANGES, sizeof *ranges);
        uint32_t n = 0;

        if (!w || !ranges) {
                free(ranges);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < count; i++)
                w[i] = (struct wanted_address){ .address = addresses[i], .rank = i, .symbol = "" };
        qsort(w, count, sizeof *w, compare_wanted_addresses);
        apply_symbol_table(code, SHT_SYMTAB, w, count);
        if (symbols_of)
                apply_symbol_table(symbols_of, SHT_SYMTAB, w, count);
        apply_symbol_table(code, SHT_DYNSYM, w, count);
        apply_cfi(code, w, count);
        qsort(w, count, sizeof *w, compare_wanted_ranks);
        for (size_t i = 0; i < count && n < LIMIT_DISASSEMBLY_RANGES; i++) {
                if (is_range_known(ranges, n, w[i].address) || !clip_to_code(code, &w[i]))
                        continue;
                ranges[n++] = (struct code_range){ .start = w[i].start, .end = w[i].end, .symbol = w[i].symbol };
        }
        *ranges_ret = ranges;
        *count_ret = n;
        return ST_OK;
}
