/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/symbol_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

void symbol_table_deinit(struct symbol_table *t)
{
        free(t->segments);
        free(t->ranges);
        free(t->chains);
        free(t->frames);
        free(t->functions);
        free(t->strings);
        *t = (struct symbol_table){ 0 };
}

enum status symbol_table_allocate(struct symbol_table *t, struct error *err)
{
        t->segments = calloc(t->segment_count + 1ul, sizeof *t->segments);
        t->ranges = calloc(t->range_count + 1ul, sizeof *t->ranges);
        t->chains = calloc(t->chain_count + 1ul, sizeof *t->chains);
        t->frames = calloc(t->frame_count + 1ul, sizeof *t->frames);
        t->functions = calloc(t->function_count + 1ul, sizeof *t->functions);
        t->strings = malloc(t->string_bytes + 1ul);
        return t->segments && t->ranges && t->chains && t->frames && t->functions && t->strings ? ST_OK : error_no_memory(err);
}

static enum status check_ranges(const struct symbol_table *t, struct error *err)
{
        uint64_t end = 0;

        for (uint32_t i = 0; i < t->range_count; i++) {
                const struct symbol_range *r = &t->ranges[i];

                if (r->start >= r->end || r->start < end)
                        return error_set(err, ST_BAD_DATA, "symbol table range %u is empty or out of order", i);
                if (r->chain >= t->chain_count)
                        return error_set(err, ST_BAD_DATA, "symbol table range %u has no chain %u", i, r->chain);
                end = r->end;
        }
        return ST_OK;
}

static enum status check_frames(const struct symbol_table *t, struct error *err)
{
        for (uint32_t i = 0; i < t->chain_count; i++) {
                const struct symbol_chain *c = &t->chains[i];

                if (c->frame_count == 0 || c->first_frame > t->frame_count ||
                    c->frame_count > t->frame_count - c->first_frame)
                        return error_set(err, ST_BAD_DATA, "symbol table chain %u is outside the frames", i);
        }
        for (uint32_t i = 0; i < t->frame_count; i++) {
                const struct symbol_table_frame *f = &t->frames[i];

                if (f->function != SYMBOL_NO_FUNCTION && f->function >= t->function_count)
                        return error_set(err, ST_BAD_DATA, "symbol table frame %u has no function %u", i, f->function);
                if (f->file >= t->string_bytes)
                        return error_set(err, ST_BAD_DATA, "symbol table frame %u has its file outside the strings", i);
        }
        return ST_OK;
}

const char *symbol_table_partial(const struct symbol_table *t)
{
        return t->partial ? t->strings + t->partial : "";
}

static enum status check_partial(const struct symbol_table *t, struct error *err)
{
        bool is_line = true;
        const char *text;
        size_t n;

        if (t->partial >= t->string_bytes)
                return error_set(err, ST_BAD_DATA, "symbol table says what is missing outside the strings");
        text = symbol_table_partial(t);
        n = strnlen(text, SYMBOL_PARTIAL_BYTES);
        for (size_t i = 0; i < n; i++)
                is_line &= (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
        if (!is_line || n == SYMBOL_PARTIAL_BYTES || !utf8_valid(text, n))
                return error_set(err, ST_BAD_DATA, "symbol table does not say in one line what is missing");
        return ST_OK;
}

enum status symbol_table_check(const struct symbol_table *t, struct error *err)
{
        enum status st;

        /* With a NUL at the end, an offset inside the strings is a string that ends there. */
        if (t->string_bytes == 0 || t->strings[0] != 0 || t->strings[t->string_bytes - 1] != 0)
                return error_set(err, ST_BAD_DATA, "symbol table strings do not begin and end with NUL");
        if (t->quality < QUALITY_NONE || t->quality > QUALITY_DWARF)
                return error_set(err, ST_BAD_DATA, "symbol table has an unknown quality %d", (int)t->quality);
        st = check_partial(t, err);
        if (st)
                return st;
        st = check_ranges(t, err);
        if (st)
                return st;
        st = check_frames(t, err);
        if (st)
                return st;
        for (uint32_t i = 0; i < t->function_count; i++) {
                const struct symbol_function *f = &t->functions[i];

                if (f->linkage_name >= t->string_bytes || f->name >= t->string_bytes)
                        return error_set(err, ST_BAD_DATA, "symbol table function %u has its name outside the strings",
                                         i);
        }
        return ST_OK;
}

const struct symbol_range *symbol_table_find(const struct symbol_table *t, uint64_t address)
{
        uint32_t low = 0, high = t->range_count;

        while (low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (t->ranges[mid].end <= address)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < t->range_count && t->ranges[low].start <= address ? &t->ranges[low] : NULL;
}

enum symbol_state symbol_table_state(const struct symbol_table *t, uint64_t address)
{
        bool has_bytes = false;

        if (symbol_table_find(t, address))
                return SYMBOL_RESOLVED;
        if (!t->range_count)
                return SYMBOL_STRIPPED;
        for (uint32_t i = 0; i < t->segment_count; i++) {
                if (address >= t->segments[i].address && address - t->segments[i].address < t->segments[i].file_size)
                        return SYMBOL_UNCOVERED;
                has_bytes |= t->segments[i].file_size != 0;
        }
        return has_bytes ? SYMBOL_NOT_IN_OBJECT : SYMBOL_OUTSIDE; /* a debug file alone has segments without bytes */
}
