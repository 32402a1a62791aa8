/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/dwarf_maker.h"

#include <string.h>

#include "common/limits.h"

void dwarf_maker_init(struct dwarf_maker *m, uint8_t version)
{
        *m = (struct dwarf_maker){ .version = version, .address_size = 8, .offset_size = 4 };
        for (int i = 0; i < DWARF_SECTION_COUNT; i++)
                buf_init(&m->sections[i], MiB(64));
}

void dwarf_maker_deinit(struct dwarf_maker *m)
{
        for (int i = 0; i < DWARF_SECTION_COUNT; i++)
                buf_deinit(&m->sections[i]);
}

static void write_uint(const struct dwarf_maker *m, uint8_t *at, uint64_t v, unsigned bytes)
{
        for (unsigned i = 0; i < bytes; i++)
                at[i] = (uint8_t)(v >> 8 * (m->big_endian ? bytes - 1 - i : i));
}

void put_uint(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v, unsigned bytes)
{
        uint8_t b[8];

        write_uint(m, b, v, bytes);
        buf_append(&m->sections[to], b, bytes);
}

void put_uleb(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v)
{
        buf_append_uleb128(&m->sections[to], v);
}

void put_text(struct dwarf_maker *m, enum dwarf_section_id to, const char *text)
{
        buf_append(&m->sections[to], text, strlen(text) + 1);
}

void put_offset(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v)
{
        put_uint(m, to, v, m->offset_size);
}

void put_address(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v)
{
        put_uint(m, to, v, m->address_size);
}

uint64_t put_at(const struct dwarf_maker *m, enum dwarf_section_id to)
{
        return m->sections[to].size;
}

void put_abbrev(struct dwarf_maker *m, uint64_t code, uint64_t tag, int children, ...)
{
        va_list ap;
        unsigned attribute, form;

        put_uleb(m, DWARF_ABBREV, code);
        put_uleb(m, DWARF_ABBREV, tag);
        put_uint(m, DWARF_ABBREV, children, 1);
        va_start(ap, children);
        do {
                attribute = va_arg(ap, unsigned);
                form = va_arg(ap, unsigned);
                put_uleb(m, DWARF_ABBREV, attribute);
                put_uleb(m, DWARF_ABBREV, form);
                if (form == DW_FORM_implicit_const)
                        buf_append_sleb128(&m->sections[DWARF_ABBREV], va_arg(ap, int));
        } while (attribute || form);
        va_end(ap);
}

size_t put_length(struct dwarf_maker *m, enum dwarf_section_id to)
{
        size_t at = m->sections[to].size;

        if (m->offset_size == 8)
                put_uint(m, to, 0xffffffff, 4);
        put_offset(m, to, 0);
        return at;
}

void end_length(struct dwarf_maker *m, enum dwarf_section_id to, size_t at)
{
        size_t start = at + (m->offset_size == 8 ? 12 : 4);

        write_uint(m, m->sections[to].data + start - m->offset_size, m->sections[to].size - start, m->offset_size);
}

void put_unit(struct dwarf_maker *m, enum dwarf_unit_type type, uint64_t abbrev_offset)
{
        m->unit = put_length(m, DWARF_INFO);
        put_uint(m, DWARF_INFO, m->version, 2);
        if (m->version >= 5) {
                put_uint(m, DWARF_INFO, type, 1);
                put_uint(m, DWARF_INFO, m->address_size, 1);
        }
        put_offset(m, DWARF_INFO, abbrev_offset);
        if (m->version < 5)
                put_uint(m, DWARF_INFO, m->address_size, 1);
        if (type == DW_UT_type || type == DW_UT_split_type) {
                put_uint(m, DWARF_INFO, 1, 8);
                put_offset(m, DWARF_INFO, 0);
        }
        if (m->version >= 5 && (type == DW_UT_skeleton || type == DW_UT_split_compile))
                put_uint(m, DWARF_INFO, 1, 8);
}

void end_unit(struct dwarf_maker *m)
{
        end_length(m, DWARF_INFO, m->unit);
}

void made_sections(const struct dwarf_maker *m, struct dwarf_sections *s)
{
        dwarf_sections_init(s, m && m->big_endian);
        for (int i = 0; m && i < DWARF_SECTION_COUNT; i++)
                dwarf_sections_set(
                        s, (enum dwarf_section_id)i,
                        &(struct elf_section_data){ .bytes = m->sections[i].data, .size = m->sections[i].size });
}

enum status open_made(const struct dwarf_maker *m, const struct dwarf_maker *alt, struct dwarf_object *ret,
                      struct error *err)
{
        struct dwarf_sections main_sections, alt_sections;

        made_sections(m, &main_sections);
        made_sections(alt, &alt_sections);
        return dwarf_object_from_sections(&main_sections, &alt_sections, ret, err);
}
