/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "dwarf/code.h"
#include "dwarf/package.h"
#include "tests/support/dwarf_maker.h"
#include "tests/support/suite.h"

#define CODE 0x401000
#define ID 1 /* given by the maker to units of version 5 */
static const struct dwarf_region regions[] = { { 0x401000, 0x402000 } };

/* ---- indexes ---- */

#define PARTS 5
static const enum dwarf_section_id part_of[PARTS] = { DWARF_INFO, DWARF_ABBREV, DWARF_LINE, DWARF_STR_OFFSETS,
                                                      DWARF_RNGLISTS };
static const uint32_t number_of[PARTS] = { 1, 3, 4, 6, 8 };

struct index_row {
        uint64_t id;
        uint32_t offsets[PARTS], sizes[PARTS];
};

static void append(struct buf *b, bool big_endian, uint64_t v, unsigned bytes)
{
        for (unsigned i = 0; i < bytes; i++)
                buf_append_u8(b, (uint8_t)(v >> 8 * (big_endian ? bytes - 1 - i : i)));
}

static void make_index(struct buf *b, bool big_endian, uint32_t version, const struct index_row *rows, uint32_t count,
                       uint32_t slots)
{
        uint64_t ids[64] = { 0 };
        uint32_t of[64] = { 0 }, columns = version == 5 ? PARTS : PARTS - 1;

        buf_init(b, MiB(1));
        for (uint32_t i = 0; i < count; i++) {
                uint32_t at = (uint32_t)rows[i].id & (slots - 1),
                         step = ((uint32_t)(rows[i].id >> 32) & (slots - 1)) | 1;

                while (of[at])
                        at = (at + step) & (slots - 1);
                ids[at] = rows[i].id;
                of[at] = i + 1;
        }
        append(b, big_endian, version, version == 5 ? 2 : 4);
        append(b, big_endian, 0, version == 5 ? 2 : 0);
        append(b, big_endian, columns, 4);
        append(b, big_endian, count, 4);
        append(b, big_endian, slots, 4);
        for (uint32_t i = 0; i < slots; i++)
                append(b, big_endian, ids[i], 8);
        for (uint32_t i = 0; i < slots; i++)
                append(b, big_endian, of[i], 4);
        for (uint32_t i = 0; i < columns; i++)
                append(b, big_endian, number_of[i], 4);
        for (uint32_t r = 0; r < count; r++)
                for (uint32_t i = 0; i < columns; i++)
                        append(b, big_endian, rows[r].offsets[i], 4);
        for (uint32_t r = 0; r < count; r++)
                for (uint32_t i = 0; i < columns; i++)
                        append(b, big_endian, rows[r].sizes[i], 4);
}

static enum status read_index(const struct buf *b, bool big_endian, struct dwarf_package_index *ret)
{
        return dwarf_package_index_read(
                (struct dwarf_cursor){ .pos = b->data,
                                       .end = b->data + b->size,
                                       .swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) },
                ret);
}

START_TEST(index_finds_the_contributions_of_each_id)
{
        const struct index_row rows[] = { { 0x100000002, { 10, 20 }, { 1, 2 } },
                                          { 0x700000002, { 11, 21 }, { 3, 4 } }, /* the same first slot */
                                          { 0x300000006, { 12, 22, 32, 42, 52 }, { 5, 6, 7, 8, 9 } } };

        for (int variant = 0; variant < 4; variant++) {
                bool big_endian = variant & 1;
                struct dwarf_package_index ix;
                struct buf b;
                uint64_t offset, size;
                uint32_t row;

                make_index(&b, big_endian, variant & 2 ? 5 : 2, rows, 3, 4);
                ck_assert_int_eq(read_index(&b, big_endian, &ix), ST_OK);
                for (uint32_t i = 0; i < 3; i++) {
                        ck_assert_int_eq(dwarf_package_index_find(&ix, rows[i].id, &row), ST_OK);
                        ck_assert_uint_eq(row, i);
                        dwarf_package_index_part(&ix, row, DWARF_ABBREV, &offset, &size);
                        ck_assert_uint_eq(offset, rows[i].offsets[1]);
                        ck_assert_uint_eq(size, rows[i].sizes[1]);
                }
                dwarf_package_index_part(&ix, 2, DWARF_RNGLISTS, &offset, &size);
                ck_assert_uint_eq(offset, variant & 2 ? 52 : 0); /* version 2 does not have them */
                dwarf_package_index_part(&ix, 2, DWARF_STR, &offset, &size);
                ck_assert_uint_eq(size, 0);
                ck_assert_int_eq(dwarf_package_index_find(&ix, 2, &row), ST_NOT_FOUND);
                ck_assert_int_eq(dwarf_package_index_find(&ix, UINT64_MAX, &row), ST_NOT_FOUND);
                buf_deinit(&b);
        }
}
END_TEST

START_TEST(inconsistent_index_is_refused)
{
        const struct index_row row = { ID, { 0 }, { 0 } };
        /* Offset, value, and expected result. */
        static const struct {
                size_t at;
                uint32_t value;
                enum status want;
        } lies[] = {
                { 0, 3, ST_UNSUPPORTED },
                { 0, 0, ST_UNSUPPORTED },
                { 4, 0, ST_BAD_DATA },
                { 4, 65, ST_TOO_BIG },
                { 4, 6, ST_BAD_DATA },
                { 8, 3, ST_BAD_DATA },
                { 8, UINT32_MAX, ST_TOO_BIG },
                { 12, 3, ST_BAD_DATA },
                { 12, 0, ST_BAD_DATA },
                { 12, 1 << 24, ST_BAD_DATA },
                { 12, UINT32_MAX, ST_TOO_BIG },
                { 16 + 24, 3, ST_BAD_DATA }, /* two columns of abbreviations, and no units */
        };

        for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
                struct dwarf_package_index ix;
                struct buf b;

                make_index(&b, false, 2, &row, 1, 2);
                ck_assert_int_eq(read_index(&b, false, &ix), ST_OK);
                memcpy(b.data + lies[i].at, &(uint32_t){ htole32(lies[i].value) }, 4);
                ck_assert_msg(read_index(&b, false, &ix) == lies[i].want, "lie %zu", i);
                buf_deinit(&b);
        }
}
END_TEST

START_TEST(truncated_index_is_refused)
{
        const struct index_row row = { ID, { 0 }, { 0 } };
        struct dwarf_package_index ix;
        uint32_t found;
        struct buf b;

        make_index(&b, false, 5, &row, 1, 2);
        while (--b.size)
                ck_assert_int_lt(read_index(&b, false, &ix), ST_OK);
        ck_assert_int_eq(read_index(&b, false, &ix), ST_OK); /* an empty section is an empty index */
        ck_assert_int_eq(dwarf_package_index_find(&ix, ID, &found), ST_NOT_FOUND);
        buf_deinit(&b);
}
END_TEST

START_TEST(lookup_in_full_table_terminates)
{
        struct index_row rows[4] = {
                { 0x100000000, { 0 }, { 0 } }, { 1, { 0 }, { 0 } }, { 2, { 0 }, { 0 } }, { 3, { 0 }, { 0 } }
        };
        struct dwarf_package_index ix;
        uint32_t row;
        struct buf b;

        make_index(&b, false, 2, rows, 4, 4);
        ck_assert_int_eq(read_index(&b, false, &ix), ST_OK);
        ck_assert_int_eq(dwarf_package_index_find(&ix, 8, &row), ST_NOT_FOUND);
        memset(b.data + 16 + 4 * 8, 0xff, 4); /* the row of slot 0 */
        ck_assert_int_eq(dwarf_package_index_find(&ix, 0x100000000, &row), ST_BAD_DATA);
        buf_deinit(&b);
}
END_TEST

/* ---- a skeleton unit and its split unit, in a package after other units ---- */

struct split {
        struct dwarf_maker linked, dwo;
        uint8_t string_offset_size; /* 0: that of the unit */
        struct index_row row;
        struct buf index_bytes;
        struct dwarf_package package;
        struct dwarf_object object;
        struct dwarf_reader *reader;
        struct dwarf_code code;
};

static void put_skeleton(struct dwarf_maker *m, uint64_t id)
{
        bool is_new = m->version >= 5;
        size_t junk = is_new ? 2u * m->offset_size : 3;

        for (size_t i = 0; i < junk; i++)
                put_uint(m, DWARF_ADDR, 0xee, 1);
        put_address(m, DWARF_ADDR, 0xdead);
        put_address(m, DWARF_ADDR, CODE);
        put_address(m, DWARF_RANGES, 0xbad);
        put_address(m, DWARF_RANGES, 0xbad); /* the base skips one of these, the value skips the other */
        put_address(m, DWARF_RANGES, 0x10);
        put_address(m, DWARF_RANGES, 0x20);
        put_address(m, DWARF_RANGES, 0);
        put_address(m, DWARF_RANGES, 0);
        if (is_new)
                put_abbrev(m, 1, DW_TAG_skeleton_unit, false, DW_AT_dwo_name, DW_FORM_string, DW_AT_addr_base,
                           DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addr, 0, 0);
        else
                put_abbrev(m, 1, DW_TAG_compile_unit, false, DW_AT_GNU_dwo_name, DW_FORM_string, DW_AT_GNU_addr_base,
                           DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addr, DW_AT_GNU_dwo_id, DW_FORM_data8,
                           DW_AT_GNU_ranges_base, DW_FORM_sec_offset, 0, 0);
        put_unit(m, DW_UT_skeleton, 0);
        put_uleb(m, DWARF_INFO, 1);
        put_text(m, DWARF_INFO, "a.dwo");
        put_offset(m, DWARF_INFO, junk);
        put_address(m, DWARF_INFO, CODE);
        if (!is_new) {
                put_uint(m, DWARF_INFO, id, 8);
                put_offset(m, DWARF_INFO, m->address_size);
        }
        end_unit(m);
}

static void put_lists(struct dwarf_maker *m)
{
        size_t at = put_length(m, DWARF_RNGLISTS);

        put_uint(m, DWARF_RNGLISTS, 5, 2);
        put_uint(m, DWARF_RNGLISTS, m->address_size, 1);
        put_uint(m, DWARF_RNGLISTS, 0, 1);
        put_uint(m, DWARF_RNGLISTS, 1, 4);
        put_offset(m, DWARF_RNGLISTS, m->offset_size);
        put_uint(m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1); /* relative to the skeleton's low_pc */
        put_uleb(m, DWARF_RNGLISTS, 0x10);
        put_uleb(m, DWARF_RNGLISTS, 0x20);
        put_uint(m, DWARF_RNGLISTS, DW_RLE_end_of_list, 1);
        end_length(m, DWARF_RNGLISTS, at);
}

/* Functions "one" by index at CODE and "two" by a list at CODE + 0x10. */
static void put_split_unit(struct dwarf_maker *m, uint64_t id, uint8_t string_offset_size)
{
        bool is_new = m->version >= 5;
        uint8_t offset_size = m->offset_size;

        put_text(m, DWARF_STR, "other unit's");
        if (is_new) {
                size_t at;

                m->offset_size = string_offset_size ? string_offset_size : offset_size;
                at = put_length(m, DWARF_STR_OFFSETS);
                put_uint(m, DWARF_STR_OFFSETS, 5, 2);
                put_uint(m, DWARF_STR_OFFSETS, 0, 2);
                put_offset(m, DWARF_STR_OFFSETS, put_at(m, DWARF_STR));
                end_length(m, DWARF_STR_OFFSETS, at);
                m->offset_size = offset_size;
                put_lists(m);
        } else {
                put_offset(m, DWARF_STR_OFFSETS, put_at(m, DWARF_STR));
        }
        put_text(m, DWARF_STR, "one");
        put_abbrev(m, 1, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1, DW_AT_GNU_dwo_id, DW_FORM_data8, 0,
                   0);
        put_abbrev(m, 2, DW_TAG_subprogram, false, DW_AT_name, is_new ? DW_FORM_strx1 : DW_FORM_GNU_str_index,
                   DW_AT_low_pc, is_new ? DW_FORM_addrx : DW_FORM_GNU_addr_index, DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, 3, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_ranges,
                   is_new ? DW_FORM_rnglistx : DW_FORM_sec_offset, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
        put_unit(m, DW_UT_split_compile, 0);
        put_uleb(m, DWARF_INFO, 1);
        put_uint(m, DWARF_INFO, DW_LANG_C_plus_plus, 1);
        put_uint(m, DWARF_INFO, id, 8);
        put_uleb(m, DWARF_INFO, 2);
        put_uleb(m, DWARF_INFO, 0);
        put_uleb(m, DWARF_INFO, 1);
        put_uint(m, DWARF_INFO, 8, 4);
        put_uleb(m, DWARF_INFO, 3);
        put_text(m, DWARF_INFO, "two");
        if (is_new)
                put_uleb(m, DWARF_INFO, 0);
        else
                put_offset(m, DWARF_INFO, m->address_size);
        put_uint(m, DWARF_INFO, 0, 1);
        end_unit(m);
}

static void make_split(struct split *s, uint8_t version, bool big_endian, uint8_t offset_size, uint8_t address_size)
{
        dwarf_maker_init(&s->linked, version);
        dwarf_maker_init(&s->dwo, version);
        s->linked.big_endian = s->dwo.big_endian = big_endian;
        s->linked.offset_size = s->dwo.offset_size = offset_size;
        s->linked.address_size = s->dwo.address_size = address_size;
        put_skeleton(&s->linked, ID);
        for (int i = 0; i < PARTS; i++)
                put_uint(&s->dwo, part_of[i], 0x0101010101010101, 1 + (unsigned)i % 2);
        for (int i = 0; i < PARTS; i++)
                s->row.offsets[i] = (uint32_t)put_at(&s->dwo, part_of[i]);
        put_split_unit(&s->dwo, ID, s->string_offset_size);
        s->row.id = ID;
        for (int i = 0; i < PARTS; i++)
                s->row.sizes[i] = (uint32_t)put_at(&s->dwo, part_of[i]) - s->row.offsets[i];
}

static const struct dwarf_code *read_split(struct split *s)
{
        struct error err;

        ck_assert_msg(open_made(&s->linked, NULL, &s->object, &err) == ST_OK, "%s", err.text);
        made_sections(&s->dwo, &s->package.sections);
        make_index(&s->index_bytes, s->dwo.big_endian, s->dwo.version == 5 ? 5 : 2, &s->row, 1, 2);
        ck_assert_int_eq(read_index(&s->index_bytes, s->dwo.big_endian, &s->package.index), ST_OK);
        s->object.companions.package = &s->package;
        ck_assert_int_eq(dwarf_reader_create(&s->object, (struct dwarf_regions){ regions, 1 }, &s->reader, &err),
                         ST_OK);
        dwarf_code_init(&s->code);
        ck_assert_int_eq(dwarf_reader_unit(s->reader, 0, &s->code), ST_OK);
        return &s->code;
}

static void close_split(struct split *s)
{
        dwarf_code_deinit(&s->code);
        dwarf_reader_destroy(s->reader);
        dwarf_object_close(&s->object);
        buf_deinit(&s->index_bytes);
        dwarf_maker_deinit(&s->linked);
        dwarf_maker_deinit(&s->dwo);
}

START_TEST(skeleton_unit_gets_functions_of_split_unit_in_each_format)
{
        for (int variant = 0; variant < 16; variant++) {
                struct split s = { .reader = NULL };
                const struct dwarf_code *c;

                make_split(&s, variant & 1 ? 5 : 4, variant & 2, variant & 4 ? 8 : 4, variant & 8 ? 4 : 8);
                c = read_split(&s);
                ck_assert_int_eq(c->damage, ST_OK);
                ck_assert_msg(!c->misses_companion, "variant %d", variant);
                ck_assert_uint_eq(c->scope_count, 2);
                ck_assert_str_eq(c->names[c->scopes[0].name].plain, "one");
                ck_assert_str_eq(c->names[c->scopes[1].name].plain, "two");
                ck_assert_uint_eq(c->intervals[0].start, CODE);
                ck_assert_uint_eq(c->intervals[0].end, CODE + 8);
                ck_assert_uint_eq(c->intervals[1].start, CODE + 0x10);
                ck_assert_uint_eq(c->intervals[1].end, CODE + 0x20);
                close_split(&s);
        }
}
END_TEST

START_TEST(strings_of_split_unit_can_have_offsets_of_another_size)
{
        for (int is_wide = 0; is_wide < 2; is_wide++) {
                struct split s = { .string_offset_size = is_wide ? 4 : 8 };
                const struct dwarf_code *c;

                make_split(&s, 5, false, is_wide ? 8 : 4, 8);
                c = read_split(&s);
                ck_assert_int_eq(c->damage, ST_OK);
                ck_assert_str_eq(c->names[c->scopes[0].name].plain, "one");
                close_split(&s);
        }
}
END_TEST

START_TEST(skeleton_unit_without_split_unit_is_counted)
{
        for (uint8_t version = 4; version <= 5; version++) {
                struct split s = { .reader = NULL };
                const struct dwarf_code *c;

                make_split(&s, version, false, 4, 8);
                s.row.id = 77;
                c = read_split(&s);
                ck_assert(c->misses_companion);
                ck_assert_int_eq(c->damage, ST_OK);
                ck_assert_uint_eq(c->scope_count, 0);
                close_split(&s);
        }
}
END_TEST

START_TEST(split_unit_with_wrong_id_is_not_used)
{
        for (uint8_t version = 4; version <= 5; version++) {
                struct split s = { .reader = NULL };

                make_split(&s, version, false, 4, 8);
                s.dwo.sections[DWARF_INFO]
                        .data[s.dwo.unit + (version == 5 ? 12 : 13)]++; /* of the header, or of its DIE */
                ck_assert(read_split(&s)->misses_companion);
                ck_assert_uint_eq(s.code.scope_count, 0);
                close_split(&s);
        }
}
END_TEST

START_TEST(contributions_past_section_end_are_damage)
{
        for (int part = 0; part < PARTS; part++) {
                for (int lie = 0; lie < 3; lie++) {
                        struct split s = { .reader = NULL };
                        const struct dwarf_code *c;

                        make_split(&s, 5, false, 4, 8);
                        if (lie == 0)
                                s.row.sizes[part]++;
                        else if (lie == 1)
                                s.row.offsets[part] = UINT32_MAX;
                        else
                                s.row.sizes[part] = UINT32_MAX;
                        c = read_split(&s);
                        ck_assert(c->misses_companion);
                        ck_assert_int_eq(c->damage, ST_BAD_DATA);
                        close_split(&s);
                }
        }
}
END_TEST

START_TEST(truncated_split_unit_is_damage)
{
        struct split s = { .reader = NULL };
        const struct dwarf_code *c;

        make_split(&s, 5, false, 4, 8);
        s.row.sizes[0] -= 3;
        c = read_split(&s);
        ck_assert(c->misses_companion);
        ck_assert_int_eq(c->damage, ST_BAD_DATA);
        ck_assert_uint_eq(c->scope_count, 0);
        close_split(&s);
}
END_TEST

START_TEST(one_reader_reads_many_split_units)
{
        struct split s = { .reader = NULL };

        make_split(&s, 5, false, 4, 8);
        read_split(&s);
        for (int i = 0; i < 100; i++) {
                ck_assert_int_eq(dwarf_reader_unit(s.reader, 0, &s.code), ST_OK);
                ck_assert_uint_eq(s.code.scope_count, 2);
        }
        close_split(&s);
}
END_TEST

static enum status open_text(void *context, uint64_t id, const char *directory, const char *name, unsigned attempt,
                             int *fd_ret)
{
        unsigned *count = context;

        (void)id;
        (void)directory;
        ck_assert_str_eq(name, "a.dwo");
        ck_assert_uint_eq(attempt, (*count)++);
        *fd_ret = dup(0);
        return ST_OK;
}

START_TEST(attempts_with_wrong_files_are_limited)
{
        struct split s = { .reader = NULL };
        unsigned count = 0;

        make_split(&s, 5, false, 4, 8);
        s.row.id = 77;
        read_split(&s);
        s.object.companions.dwo = (struct dwarf_dwo_source){ open_text, &count };
        ck_assert_int_eq(dwarf_reader_unit(s.reader, 0, &s.code), ST_OK);
        ck_assert(s.code.misses_companion);
        ck_assert_uint_gt(count, 1);
        ck_assert_uint_lt(count, 100);
        close_split(&s);
}
END_TEST

TEST_SUITE("dwarf_split", index_finds_the_contributions_of_each_id, inconsistent_index_is_refused,
           truncated_index_is_refused, lookup_in_full_table_terminates,
           skeleton_unit_gets_functions_of_split_unit_in_each_format,
           strings_of_split_unit_can_have_offsets_of_another_size, skeleton_unit_without_split_unit_is_counted,
           split_unit_with_wrong_id_is_not_used, contributions_past_section_end_are_damage,
           truncated_split_unit_is_damage, one_reader_reads_many_split_units, attempts_with_wrong_files_are_limited)
