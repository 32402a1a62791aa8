/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/unit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "common/search.h"

/* The header after the unit length. The cursor ends with the unit. */
static void read_unit_header(struct dwarf_cursor *c, bool holds_types, struct dwarf_unit *u)
{
        struct dwarf_format *f = &u->format;

        if (f->version >= 5) {
                u->type = dwarf_u8(c);
                f->address_size = dwarf_u8(c);
                u->abbrev_offset = dwarf_uint(c, f->offset_size);
                if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
                        u->signature = dwarf_u64(c);
        } else {
                u->abbrev_offset = dwarf_uint(c, f->offset_size);
                f->address_size = dwarf_u8(c);
                u->type = holds_types ? DW_UT_type : DW_UT_none;
        }
        if (u->type == DW_UT_type || u->type == DW_UT_split_type) {
                u->signature = dwarf_u64(c);
                u->type_offset = u->offset + dwarf_uint(c, f->offset_size);
        }
        if (f->address_size != 2 && f->address_size != 4 && f->address_size != 8)
                dwarf_fail(c);
}

enum found { UNIT_READ, UNIT_PADDING, UNIT_BROKEN, UNIT_UNKNOWN, UNIT_CUT_OFF };

/* After any result but UNIT_CUT_OFF the cursor is at the next unit. */
static enum found read_next_unit(struct dwarf_cursor *c, const uint8_t *section, bool holds_types, struct dwarf_unit *u)
{
        struct dwarf_cursor inner = *c;
        uint64_t length;
        uint16_t version;

        u->offset = (uint64_t)(c->pos - section);
        length = dwarf_initial_length(c, &u->format.offset_size);
        inner.pos = c->pos;
        dwarf_skip(c, length);
        if (c->failed)
                return UNIT_CUT_OFF;
        if (length == 0)
                return UNIT_PADDING;
        inner.end = c->pos;
        u->end = (uint64_t)(c->pos - section);
        version = dwarf_u16(&inner);
        if (inner.failed)
                return UNIT_BROKEN;
        if (version < 2 || version > 5)
                return UNIT_UNKNOWN;
        u->format.version = (uint8_t)version;
        read_unit_header(&inner, holds_types, u);
        u->first_die = (uint64_t)(inner.pos - section);
        return inner.failed ? UNIT_BROKEN : UNIT_READ;
}

static void record_left_out_unit(struct dwarf_units *units, enum found why, uint64_t offset)
{
        if (units->left_out++)
                return;
        if (why == UNIT_UNKNOWN)
                (void)error_at(&units->damage, ST_UNSUPPORTED, offset,
                               "the unit at 0x%" PRIx64 " of .debug_info is of an unknown version", offset);
        else
                (void)error_at(&units->damage, ST_BAD_DATA, offset,
                               "the unit at 0x%" PRIx64 " of .debug_info is cut off or malformed", offset);
}

enum status dwarf_units_read(const struct dwarf_sections *s, struct dwarf_units *ret, struct error *err)
{
        struct dwarf_cursor c = dwarf_section_at(s, DWARF_INFO, 0);
        const uint8_t *section = c.pos;
        enum found found = UNIT_READ;

        while (found != UNIT_CUT_OFF && dwarf_left(&c)) {
                struct dwarf_unit u = { 0 };

                found = read_next_unit(&c, section, s->holds_types, &u);
                if (found == UNIT_PADDING)
                        continue;
                if (found != UNIT_READ) {
                        record_left_out_unit(ret, found, u.offset);
                        continue;
                }
                if (ret->count >= LIMIT_DWARF_UNITS) {
                        ret->left_out++;
                        if (!ret->damage.code)
                                (void)error_set(&ret->damage, ST_TOO_BIG, ".debug_info has more than %d units",
                                                LIMIT_DWARF_UNITS);
                        break;
                }
                if (!array_reserve(&ret->items, &ret->capacity, ret->count))
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
        size_t at = find_lower_bound(i, 0, u->count, u->items[i].end <= offset);

        return at < u->count && u->items[at].first_die <= offset ? &u->items[at] : NULL;
}
