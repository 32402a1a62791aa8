/* SPDX-License-Identifier: Apache-2.0 */
#include "disassembler/disassembly.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"

void disassembly_deinit(struct disassembly *d)
{
        free(d->ranges);
        free(d->instructions);
        free(d->bytes);
        *d = (struct disassembly){ 0 };
}

/* ---- reading ---- */

static bool read_flag(struct reader *r, bool *ret)
{
        uint8_t v;

        if (!reader_u8(r, &v) || v > 1)
                return false;
        *ret = v;
        return true;
}

static bool read_ascii(struct reader *r, const char **ret)
{
        if (!reader_cstr(r, ret))
                return false;
        for (const char *p = *ret; *p; p++)
                if (*p < ' ' || *p > '~')
                        return false;
        return true;
}

static bool read_range(struct reader *r, struct code_range *ret)
{
        return reader_u64(r, &ret->start) && reader_u64(r, &ret->end) && reader_u32(r, &ret->count) &&
               read_flag(r, &ret->is_cut) && reader_cstr(r, &ret->symbol) && ret->start < ret->end;
}

static bool read_instruction(struct reader *r, struct code_instruction *ret)
{
        return reader_u64(r, &ret->address) && reader_u64(r, &ret->target) && reader_u8(r, &ret->size) &&
               reader_u8(r, &ret->flow) && read_flag(r, &ret->has_target) && ret->size > 0 &&
               ret->size <= INSTRUCTION_BYTES_MAX && ret->flow < FLOW_COUNT &&
               reader_bytes(r, ret->size, &ret->bytes) && read_ascii(r, &ret->mnemonic) &&
               read_ascii(r, &ret->operands);
}

static bool read_ranges(struct reader *r, struct disassembly *d)
{
        uint32_t first = 0;

        for (uint32_t i = 0; i < d->range_count; i++) {
                struct code_range *range = &d->ranges[i];

                if (!read_range(r, range) || range->count > d->instruction_count - first)
                        return false;
                range->first = first;
                first += range->count;
        }
        return first == d->instruction_count;
}

static bool read_instructions(struct reader *r, struct disassembly *d)
{
        for (uint32_t i = 0; i < d->range_count; i++) {
                const struct code_range *range = &d->ranges[i];
                uint64_t at = range->start;

                for (uint32_t k = range->first; k < range->first + range->count; k++) {
                        struct code_instruction *in = &d->instructions[k];

                        if (!read_instruction(r, in) || in->address < at || in->address >= range->end ||
                            in->size > range->end - in->address)
                                return false;
                        at = in->address + in->size;
                }
        }
        return reader_left(r) == 0;
}

enum status disassembly_read(const void *bytes, size_t size, struct disassembly *ret, struct error *err)
{
        _cleanup_disassembly_ struct disassembly d = { 0 };
        struct reader r;

        reader_init(&r, bytes, size);
        if (!reader_u32(&r, &d.range_count) || !reader_u32(&r, &d.instruction_count))
                return error_set(err, ST_BAD_DATA, "the worker's answer is cut off");
        if (d.range_count > LIMIT_DISASSEMBLY_RANGES || d.instruction_count > LIMIT_DISASSEMBLY_INSTRUCTIONS)
                return error_set(err, ST_TOO_BIG, "the worker's answer has too many instructions");
        d.bytes = malloc(size);
        d.ranges = calloc(d.range_count + (size_t)1, sizeof *d.ranges);
        d.instructions = calloc(d.instruction_count + (size_t)1, sizeof *d.instructions);
        if (!d.bytes || !d.ranges || !d.instructions)
                return error_no_memory(err);
        memcpy(d.bytes, bytes, size);
        r.data = d.bytes;
        if (!read_ranges(&r, &d) || !read_instructions(&r, &d))
                return error_set(err, ST_BAD_DATA, "the worker's answer is damaged at byte %zu", r.pos);
        *ret = d;
        d = (struct disassembly){ 0 };
        return ST_OK;
}

/* ---- writing ---- */

static void write_text(struct buf *to, const char *text)
{
        buf_append(to, text, strlen(text) + 1);
}

void disassembly_write(const struct disassembly *d, struct buf *ret)
{
        buf_append_u32(ret, d->range_count);
        buf_append_u32(ret, d->instruction_count);
        for (uint32_t i = 0; i < d->range_count; i++) {
                const struct code_range *r = &d->ranges[i];

                buf_append_u64(ret, r->start);
                buf_append_u64(ret, r->end);
                buf_append_u32(ret, r->count);
                buf_append_u8(ret, r->is_cut);
                write_text(ret, r->symbol);
        }
        for (uint32_t i = 0; i < d->instruction_count; i++) {
                const struct code_instruction *in = &d->instructions[i];

                buf_append_u64(ret, in->address);
                buf_append_u64(ret, in->target);
                buf_append_u8(ret, in->size);
                buf_append_u8(ret, in->flow);
                buf_append_u8(ret, in->has_target);
                buf_append(ret, in->bytes, in->size);
                write_text(ret, in->mnemonic);
                write_text(ret, in->operands);
        }
}
