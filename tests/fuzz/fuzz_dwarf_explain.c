/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as debug sections (dwarf_input.h). A few addresses of every unit are explained, and the
 * variables there listed, and the members of structures searched. */
#include <assert.h>

#include "dwarf/dwarf_explain.h"
#include "dwarf/dwarf_reader_internal.h"
#include "dwarf/stack_variables.h"
#include "dwarf/struct_members.h"
#include "tests/fuzz/dwarf_input.h"

#define ADDRESSES_MAX 16 /* per unit */
#define UNITS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void touch_text(const char *text)
{
        sink += text ? strlen(text) : 0;
}

static void find_members(struct dwarf_reader *r, const char *unit)
{
        struct dwarf_member members[] = { { .structure = "s", .name = "m" }, { .structure = "", .name = "" } };

        sink += dwarf_struct_members_find(r->object, unit, members, 2) == ST_OK;
        sink += members[0].offset + members[1].offset;
}

static void explain_unit(struct dwarf_reader *r)
{
        struct dwarf_unit_found u;

        dwarf_unit_explain(r, &u);
        assert(u.unit);
        touch_text(u.name);
        touch_text(u.directory);
        touch_text(u.producer);
        touch_text(u.dwo_name);
        if (u.name)
                find_members(r, u.name);
}

static void explain_row(struct dwarf_reader *r, const struct dwarf_code *code, uint64_t address)
{
        struct dwarf_lines files = { 0 };
        struct dwarf_row_found row;

        if (dwarf_row_explain(r, code, address, &files, &row) == ST_OK) {
                _cleanup_buf_ struct buf path = { 0 };

                assert(row.address <= address && address < row.end);
                buf_init(&path, LIMIT_NAME_BYTES);
                dwarf_lines_path(&files, row.file, &path);
        }
        dwarf_lines_deinit(&files);
}

static void explain_scopes(struct dwarf_reader *r, const struct dwarf_code *code, uint64_t address)
{
        for (uint32_t i = dwarf_scope_at(code, address); i != DWARF_NO_SCOPE; i = code->scopes[i].parent) {
                struct dwarf_scope_found s;

                dwarf_scope_explain(r, code, i, address, &s);
                assert(s.hop_count <= DWARF_HOPS_MAX && s.name_hop <= s.hop_count);
                assert(!s.has_interval || (s.start <= address && address < s.end));
                touch_text(s.name.linkage);
                touch_text(s.name.plain);
        }
}

static void touch_variable(void *context, const struct dwarf_variable *v)
{
        (void)context;
        touch_text(v->function);
        touch_text(v->name);
        touch_text(v->path);
        sink += v->line + v->size + v->tag_offset + (uint64_t)v->frame_offset;
}

/* Without lists of locations, which are in a section that the input does not have. */
static void list_variables(struct dwarf_reader *r, const struct dwarf_code *code)
{
        const struct elf_image none = { 0 };

        for (size_t i = 0; i < code->interval_count && i < ADDRESSES_MAX; i++)
                sink += dwarf_stack_variables_find(r, &none, code->intervals[i].start, touch_variable, NULL, NULL) ==
                        ST_OK;
}

static void explain_address(struct dwarf_reader *r, size_t unit, const struct dwarf_code *code, uint64_t address)
{
        assert(dwarf_code_covers(code, address));
        if (dwarf_explain_enter(r, unit, code, false))
                return;
        explain_unit(r);
        explain_row(r, code, address);
        if (code->companion && dwarf_explain_enter(r, unit, code, true) == ST_OK)
                explain_unit(r);
        explain_scopes(r, code, address);
        dwarf_explain_leave(r);
}

static void explain_addresses(struct dwarf_reader *r, size_t unit, const struct dwarf_code *code)
{
        for (size_t i = 0; i < code->interval_count && i < ADDRESSES_MAX; i++)
                explain_address(r, unit, code, i % 2 ? code->intervals[i].end - 1 : code->intervals[i].start);
        for (size_t i = 0; i < code->lines.row_count && i < ADDRESSES_MAX; i++)
                explain_address(r, unit, code, i % 2 ? code->lines.rows[i].end - 1 : code->lines.rows[i].start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct dwarf_region code[] = { { 0x1000, 0x2000 }, { 0x401000, 0x402000 } };
        const struct dwarf_regions regions = { code, 2 };
        struct dwarf_input in;
        struct dwarf_reader *reader;
        struct dwarf_code result;

        if (!dwarf_input_open(data, size, &in))
                return 0;
        if (dwarf_reader_create(&in.object, regions, &reader, NULL))
                abort();
        dwarf_code_init(&result);
        for (size_t i = 0; i < in.object.main.units.count && i < UNITS_MAX; i++)
                sink += dwarf_unit_claims(reader, i, 0x401010);
        for (size_t i = 0; i < in.object.main.units.count && i < UNITS_MAX; i++)
                if (dwarf_reader_unit(reader, i, &result) == ST_OK) {
                        explain_addresses(reader, i, &result);
                        list_variables(reader, &result);
                }
        dwarf_code_deinit(&result);
        dwarf_reader_destroy(reader);
        dwarf_input_close(&in);
        return 0;
}
