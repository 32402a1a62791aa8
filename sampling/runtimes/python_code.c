/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/python_code.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/cleanup.h"
#include "common/reader.h"
#include "common/text/utf8.h"

/* ---- lines ---- */

/* Codes of an entry's first byte, in bits 3 to 6. */
enum {
        ENTRY_ONE_LINE = 10, /* 10 to 12: the line advances by code - 10 */
        ENTRY_NO_COLUMNS = 13,
        ENTRY_LONG = 14,
        ENTRY_NONE = 15, /* no line; the running line does not change */
};

/* Six bits per byte, lowest first; bit 6: more follow. False at the end of the table. */
static bool read_line_varint(struct reader *r, uint32_t *ret)
{
        uint32_t value = 0;
        uint8_t byte;

        for (unsigned shift = 0; reader_u8(r, &byte); shift += 6) {
                if (shift < 32)
                        value |= (uint32_t)(byte & 63) << shift;
                if (!(byte & 64)) {
                        *ret = value;
                        return true;
                }
        }
        return false;
}

static bool read_line_delta(struct reader *r, uint32_t *line)
{
        uint32_t value;

        if (!read_line_varint(r, &value))
                return false;
        *line += value & 1 ? -(value >> 1) : value >> 1;
        return true;
}

/* Read the rest of an entry, which changes the running line. */
static bool read_line_entry(struct reader *r, unsigned code, uint32_t *line)
{
        uint32_t ignored;

        switch (code) {
        case ENTRY_NONE:
                return true;
        case ENTRY_LONG:
                return read_line_delta(r, line) && read_line_varint(r, &ignored) && read_line_varint(r, &ignored) &&
                       read_line_varint(r, &ignored);
        case ENTRY_NO_COLUMNS:
                return read_line_delta(r, line);
        default:
                if (code < ENTRY_ONE_LINE)
                        return reader_skip(r, 1);
                *line += code - ENTRY_ONE_LINE;
                return reader_skip(r, 2);
        }
}

/* 3.8 and 3.9: pairs of a distance in bytes and one in lines, each from the pair before. */
static uint32_t find_line_in_lnotab(const uint8_t *table, size_t size, uint32_t first_line, uint64_t unit)
{
        uint32_t line = first_line;
        uint64_t at = 0;

        for (size_t i = 0; i + 1 < size; i += 2) {
                at += table[i];
                if (at > 2 * unit)
                        break;
                line += (uint32_t)(int8_t)table[i + 1];
        }
        return line > INT32_MAX ? 0 : line;
}

/* 3.10: pairs of a length in bytes and a distance in lines, or NO_LINE, for this range. */
static uint32_t find_line_in_ranges(const uint8_t *table, size_t size, uint32_t first_line, uint64_t unit)
{
        const int8_t no_line = -128;
        uint32_t line = first_line;
        uint64_t end = 0;

        for (size_t i = 0; i + 1 < size; i += 2) {
                int8_t delta = (int8_t)table[i + 1];

                if (delta != no_line)
                        line += (uint32_t)delta;
                end += table[i];
                if (2 * unit < end)
                        return delta == no_line || line > INT32_MAX ? 0 : line;
        }
        return 0;
}

static uint32_t find_line_in_locations(const uint8_t *table, size_t size, uint32_t first_line, uint64_t unit)
{
        struct reader r;
        uint64_t next = 0;
        uint32_t line = first_line;
        uint8_t head;

        reader_init(&r, table, size);
        while (reader_u8(&r, &head)) {
                unsigned code = head >> 3 & 15;

                if (!read_line_entry(&r, code, &line))
                        return 0;
                next += (head & 7) + 1u;
                if (unit < next)
                        return code == ENTRY_NONE || line > INT32_MAX ? 0 : line;
        }
        return 0;
}

uint32_t python_line_find(enum python_lines format, const uint8_t *table, size_t size, uint32_t first_line,
                          uint64_t unit)
{
        switch (format) {
        case PYTHON_LINES_RANGES:
                return find_line_in_ranges(table, size, first_line, unit);
        case PYTHON_LINES_LNOTAB:
                return find_line_in_lnotab(table, size, first_line, unit);
        case PYTHON_LINES_LOCATIONS:
                break;
        }
        return find_line_in_locations(table, size, first_line, unit);
}

/* ---- code objects ---- */

static uint64_t get_header_word(const uint8_t *header, uint32_t offset)
{
        uint64_t ret;

        memcpy(&ret, header + offset, sizeof ret);
        return ret;
}

static uint32_t get_header_int(const uint8_t *header, uint32_t offset)
{
        uint32_t ret;

        memcpy(&ret, header + offset, sizeof ret);
        return ret;
}

bool python_code_read_key(const struct process_memory *m, const struct python_objects *o, uint64_t addr,
                          struct python_code_key *ret)
{
        uint8_t header[PYTHON_HEADER_MAX + 8];

        if (o->code_bytes > PYTHON_HEADER_MAX || o->code_file + 8u > o->code_bytes ||
            o->code_qualified_name + 8u > o->code_bytes || o->code_lines + 8u > o->code_bytes ||
            o->code_first_line + 4u > o->code_bytes || o->code_first_traceable + 4u > o->code_bytes ||
            o->object_type + 8u > o->code_bytes || !m->read(m->ctx, addr, header, o->code_bytes) ||
            get_header_word(header, o->object_type) != o->code_type)
                return false;
        *ret = (struct python_code_key){ .file = get_header_word(header, o->code_file),
                                         .name = get_header_word(header, o->code_qualified_name),
                                         .lines = get_header_word(header, o->code_lines),
                                         .first_line = get_header_int(header, o->code_first_line),
                                         .first_traceable = get_header_int(header, o->code_first_traceable) };
        return true;
}

/* State bits of a string, shifted so that the kind comes first. */
#define TEXT_KIND(state) ((state)&7) /* bytes per character: 1, 2 or 4 */
#define TEXT_IS_COMPACT (1u << 3)
#define TEXT_IS_ASCII (1u << 4)

/* Read a str object. Owned; NULL: it is none, or there is no memory. Longer texts are cut at max characters. */
static char *read_python_text(const struct process_memory *m, const struct python_objects *o, uint64_t addr, size_t max)
{
        uint8_t header[64] = { 0 };
        _cleanup_free_ uint8_t *raw = NULL;
        _cleanup_buf_ struct buf text;
        uint64_t length;
        uint32_t state;
        size_t n, width;

        buf_init(&text, 4 * max + 1);
        if (o->text_ascii > sizeof header || o->text_length + 8u > o->text_ascii ||
            o->text_state + 4u > o->text_ascii || !m->read(m->ctx, addr, header, o->text_ascii) ||
            o->object_type + 8u > o->text_ascii || get_header_word(header, o->object_type) != o->text_type)
                return NULL;
        length = get_header_word(header, o->text_length);
        state = get_header_int(header, o->text_state) >> (o->text_state_shift & 31);
        width = TEXT_KIND(state);
        if (!(state & TEXT_IS_COMPACT) || (width != 1 && width != 2 && width != 4))
                return NULL;
        n = length < max ? (size_t)length : max;
        raw = malloc(n * width + 1);
        if (!raw || !m->read(m->ctx, addr + (state & TEXT_IS_ASCII ? o->text_ascii : o->text_compact), raw, n * width))
                return NULL;
        for (size_t i = 0; i < n; i++) {
                uint32_t c = 0;

                memcpy(&c, raw + i * width, width); /* little-endian */
                utf8_append_code_point(&text, c && c < 0x110000 && (c < 0xd800 || c >= 0xe000) ? c : 0xfffd);
        }
        return buf_cstr(&text) ? strdup(buf_cstr(&text)) : NULL;
}

/* A table beyond the limit is read as an empty one, which has no lines. */
static uint8_t *read_line_table(const struct process_memory *m, const struct python_objects *o, uint64_t addr,
                                uint32_t *size_ret)
{
        uint64_t size;
        uint8_t *ret;

        if (!m->read(m->ctx, addr + o->bytes_size, &size, sizeof size))
                return NULL;
        if (size > LIMIT_PYTHON_LINE_TABLE)
                size = 0;
        ret = malloc(size + 1);
        if (ret && !m->read(m->ctx, addr + o->bytes_data, ret, size)) {
                free(ret);
                return NULL;
        }
        *size_ret = (uint32_t)size;
        return ret;
}

void python_code_deinit(struct python_code *c)
{
        free(c->name);
        free(c->file);
        free(c->lines);
        *c = (struct python_code){ 0 };
}

enum status python_code_read(const struct process_memory *m, const struct python_objects *o, uint64_t addr,
                             struct python_code *ret, bool *is_code_ret)
{
        struct python_code c = { .code_bytes = o->code_bytes };

        *is_code_ret = python_code_read_key(m, o, addr, &c.key);
        if (!*is_code_ret)
                return ST_BAD_DATA;
        c.name = read_python_text(m, o, c.key.name, LIMIT_PYTHON_NAME);
        c.file = read_python_text(m, o, c.key.file, LIMIT_PATH_BYTES);
        c.lines = read_line_table(m, o, c.key.lines, &c.line_bytes);
        if (!c.name || !c.file || !c.lines) {
                python_code_deinit(&c);
                return ST_BAD_DATA;
        }
        *ret = c;
        return ST_OK;
}
