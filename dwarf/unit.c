/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/unit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/limits.h"
#include "dwarf/array.h"

/* What follows the length. The cursor ends with the unit. */
static void read_header(struct dwarf_cursor *c, struct dwarf_unit *u)
{
        struct dwarf_format *f = &u->format;

        if (f->version >= 5) {
                u->type = dwarf_u8(c);
                f->address_size = dwarf_u8(c);
                u->abbrev_offset = dwarf_uint(c, f->offset_size);
                if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
                        dwarf_u64(c); /* the number that ties it to its other half */
                if (u->type == DW_UT_type || u->type == DW_UT_split_type) {
                        u->signature = dwarf_u64(c);
                        dwarf_uint(c, f->offset_size);
                }
        } else {
                u->abbrev_offset = dwarf_uint(c, f->offset_size);
                f->address_size = dwarf_u8(c);
        }
        if (f->address_size != 2 && f->address_size != 4 && f->address_size != 8)
                dwarf_fail(c);
}

/* @return false at a broken header. */
static bool read_unit(struct dwarf_cursor *c, const uint8_t *section, struct dwarf_unit *u)
{
        struct dwarf_cursor inner = *c;
        uint64_t length;
        uint16_t version;

        u->offset = (uint64_t)(c->pos - section);
        length = dwarf_initial_length(c, &u->format.offset_size);
        inner.pos = c->pos;
        dwarf_skip(c, length);
        if (c->failed)
                return false;
        inner.end = c->pos;
        u->end = (uint64_t)(c->pos - section);
        version = dwarf_u16(&inner);
        u->format.version = version < 6 ? (uint8_t)version : 0;
        if (u->format.version < 2 || u->format.version > 5)
                return !inner.failed; /* the caller leaves it out */
        read_header(&inner, u);
        u->first_die = (uint64_t)(inner.pos - section);
        return !inner.failed;
}

enum status dwarf_units_read(const struct dwarf_sections *s, struct dwarf_units *ret, struct error *err)
{
        struct dwarf_cursor c = dwarf_section_at(s, DWARF_INFO, 0);
        const uint8_t *section = c.pos;

        while (dwarf_left(&c)) {
                struct dwarf_unit u = { 0 };
                uint64_t offset = (uint64_t)(c.pos - section);

                if (!read_unit(&c, section, &u))
                        return error_at(err, ST_BAD_DATA, offset,
                                        "the unit at 0x%" PRIx64 " of .debug_info is cut off or malformed", offset);
                if (u.format.version < 2 || u.format.version > 5)
                        continue;
                if (ret->count >= LIMIT_DWARF_UNITS)
                        return error_set(err, ST_TOO_BIG, ".debug_info has more than %d units", LIMIT_DWARF_UNITS);
                if (!dwarf_array_reserve(&ret->items, &ret->capacity, ret->count, sizeof u))
                        return error_no_memory(err);
                ret->items[ret->count++] = u;
        }
        return ST_OK;
}

void dwarf_units_deinit(struct dwarf_units *u)
{
        free(u->items);
        *u = (struct dwarf_units){ 0 };
}

const struct dwarf_unit *dwarf_units_find(const struct dwarf_units *u, uint64_t offset)
{
        size_t low = 0, high = u->count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (u->items[mid].end <= offset)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < u->count && u->items[low].first_die <= offset ? &u->items[low] : NULL;
}
