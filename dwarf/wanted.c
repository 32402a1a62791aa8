/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving out of a unit what says nothing about the wanted addresses: what is
 * inside of what decides at each address alone, so nothing else is needed.
 */
#include "dwarf/reader.h"

void dwarf_reader_want(struct dwarf_reader *r, const uint64_t *addresses, size_t count)
{
        r->wanted = addresses;
        r->wanted_count = count;
}

/* Is one of the addresses in [start, end)? */
static bool is_wanted(const struct dwarf_reader *r, uint64_t start, uint64_t end)
{
        size_t low = 0, high = r->wanted_count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (r->wanted[mid] < start)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < r->wanted_count && r->wanted[low] < end;
}

void dwarf_wanted_keep_rows(const struct dwarf_reader *r, struct dwarf_code *code)
{
        struct dwarf_lines *l = &code->lines;
        size_t kept = 0, next = 0;

        for (size_t i = 0; r->wanted && i < l->row_count; i++) {
                while (next < r->wanted_count && r->wanted[next] < l->rows[i].start)
                        next++;
                if (next < r->wanted_count && r->wanted[next] < l->rows[i].end)
                        l->rows[kept++] = l->rows[i];
        }
        if (r->wanted)
                l->row_count = kept;
}

void dwarf_wanted_keep_intervals(const struct dwarf_reader *r, struct dwarf_code *code)
{
        size_t kept = 0;

        if (!r->wanted)
                return;
        for (size_t i = 0; i < code->interval_count; i++)
                if (is_wanted(r, code->intervals[i].start, code->intervals[i].end))
                        code->intervals[kept++] = code->intervals[i];
        code->interval_count = kept;
}

void dwarf_wanted_mark_names(const struct dwarf_code *code, bool *marks)
{
        for (size_t i = 0; i < code->interval_count; i++) {
                for (uint32_t s = code->intervals[i].scope; s != DWARF_NO_SCOPE; s = code->scopes[s].parent)
                        marks[code->scopes[s].name] = true;
        }
}
