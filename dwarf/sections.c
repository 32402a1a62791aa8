/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/sections.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/limits.h"

/* Without the leading dot, or ".z" for the old style of compressed sections. */
static const char *const names[DWARF_SECTION_COUNT] = {
        [DWARF_INFO] = "debug_info",         [DWARF_ABBREV] = "debug_abbrev",
        [DWARF_LINE] = "debug_line",         [DWARF_LINE_STR] = "debug_line_str",
        [DWARF_STR] = "debug_str",           [DWARF_STR_OFFSETS] = "debug_str_offsets",
        [DWARF_ADDR] = "debug_addr",         [DWARF_RANGES] = "debug_ranges",
        [DWARF_RNGLISTS] = "debug_rnglists", [DWARF_TYPES] = "debug_types",
        [DWARF_ARANGES] = "debug_aranges",
};

static const struct elf_section *find_debug_section(const struct elf_image *img, const char *name, const char *suffix)
{
        char full[32];
        const struct elf_section *s;

        snprintf(full, sizeof full, ".%s%s", name, suffix);
        s = elf_image_section(img, full);
        if (s)
                return s;
        snprintf(full, sizeof full, ".z%s%s", name, suffix);
        return elf_image_section(img, full);
}

/*
 * Concatenate all sections with the name of s: GCC writes each type unit of a .dwo file to a separate section, and no
 * linker merges them.
 */
static enum status join_sections(const struct elf_image *img, const struct elf_section *s, size_t room,
                                 struct elf_section_data *ret, struct error *err)
{
        _cleanup_buf_ struct buf all = { 0 };

        buf_init(&all, room);
        for (size_t i = s->index; i < img->section_count; i++) {
                _cleanup_elf_section_data_ struct elf_section_data d = { 0 };
                enum status st;

                if (strcmp(img->sections[i].name, s->name) != 0 || !elf_section_has_content(&img->sections[i]))
                        continue;
                st = elf_section_data(img, &img->sections[i], room, &d, err);
                if (st)
                        return st;
                buf_append(&all, d.bytes, d.size);
        }
        if (all.failed)
                return error_set(err, all.failed, "the sections '%s' of '%s' are too big together", s->name, img->name);
        *ret = (struct elf_section_data){ .bytes = all.data, .size = all.size, .owned = all.data };
        all = (struct buf){ 0 };
        return ST_OK;
}

static enum status load_section_content(const struct elf_image *img, const struct elf_section *s,
                                        enum dwarf_flavour flavour, size_t room, struct elf_section_data *ret,
                                        struct error *err)
{
        for (size_t i = s->index + 1; flavour == DWARF_SPLIT && i < img->section_count; i++)
                if (!strcmp(img->sections[i].name, s->name))
                        return join_sections(img, s, room, ret, err);
        return elf_section_data(img, s, room, ret, err);
}

/* Every string that starts before the last NUL is terminated. Finding that NUL once saves a search per string. */
static size_t find_strings_end(const struct elf_section_data *d)
{
        const uint8_t *nul = d->size ? memrchr(d->bytes, 0, d->size) : NULL;

        return nul ? (size_t)(nul - d->bytes) + 1 : 0;
}

void dwarf_sections_init(struct dwarf_sections *s, bool big_endian)
{
        *s = (struct dwarf_sections){ .swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) };
        for (int i = 0; i < DWARF_SECTION_COUNT; i++)
                s->data[i].bytes = (const uint8_t *)"";
}

void dwarf_sections_set(struct dwarf_sections *s, enum dwarf_section_id id, const struct elf_section_data *d)
{
        assert(id < DWARF_SECTION_COUNT && (d->bytes || !d->size));
        if (d->size)
                s->data[id] = *d;
        if (id == DWARF_STR || id == DWARF_LINE_STR)
                s->string_end[id] = find_strings_end(d);
}

enum status dwarf_sections_load(const struct elf_image *img, enum dwarf_flavour flavour, struct dwarf_sections *ret,
                                struct error *err)
{
        size_t room = LIMIT_SECTION_UNPACKED_BYTES; /* of all together */
        struct dwarf_sections s;

        dwarf_sections_init(&s, img->big_endian);
        for (int i = 0; i < DWARF_SECTION_COUNT; i++) {
                const struct elf_section *section =
                        find_debug_section(img, names[i], flavour == DWARF_SPLIT ? ".dwo" : "");
                struct elf_section_data d;
                struct error broken;
                enum status st;

                if (!section || !elf_section_has_content(section))
                        continue;
                st = load_section_content(img, section, flavour, room, &d, &broken);
                if (st == ST_NO_MEMORY) {
                        dwarf_sections_free(&s);
                        return error_no_memory(err);
                }
                if (st) {
                        if (!s.damage.code && i != DWARF_ARANGES)
                                s.damage = broken;
                        continue;
                }
                room -= d.owned ? d.size : 0;
                dwarf_sections_set(&s, (enum dwarf_section_id)i, &d);
        }
        *ret = s;
        return ST_OK;
}

void dwarf_sections_free(struct dwarf_sections *s)
{
        for (int i = 0; i < DWARF_SECTION_COUNT; i++)
                elf_section_data_free(&s->data[i]);
        *s = (struct dwarf_sections){ 0 };
}

void dwarf_sections_of_types(const struct dwarf_sections *s, struct dwarf_sections *ret)
{
        *ret = *s;
        for (int i = 0; i < DWARF_SECTION_COUNT; i++)
                ret->data[i].owned = NULL;
        ret->data[DWARF_INFO] = ret->data[DWARF_TYPES];
        ret->data[DWARF_TYPES] = (struct elf_section_data){ .bytes = (const uint8_t *)"" };
        ret->holds_types = true;
}

struct dwarf_cursor dwarf_section_at(const struct dwarf_sections *s, enum dwarf_section_id id, uint64_t offset)
{
        const struct elf_section_data *d = &s->data[id];
        struct dwarf_cursor c = { .pos = d->bytes, .end = d->bytes + d->size, .swap = s->swap };

        assert(id < DWARF_SECTION_COUNT);
        dwarf_skip(&c, offset);
        return c;
}
