/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extraction/extract_variables.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "dwarf/stack_variables.h"
#include "symbolizer/extraction/extract_observer.h"

struct variables_report {
        uint64_t address;
        struct buf *to;
};

static void append_report_text(struct buf *to, const char *text)
{
        buf_append(to, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void append_report_number(struct buf *to, bool is_known, uint64_t number)
{
        if (is_known)
                buf_printf(to, "%" PRIu64, number);
        buf_append_u8(to, 0);
}

static void append_variable(void *context, const struct dwarf_variable *v)
{
        struct buf *to = context;

        append_report_text(to, v->function);
        append_report_text(to, v->name);
        append_report_text(to, v->path);
        append_report_number(to, true, v->line);
        if (v->has_frame_offset)
                buf_printf(to, "%" PRId64, v->frame_offset);
        buf_append_u8(to, 0);
        append_report_number(to, v->has_size, v->size);
        append_report_number(to, v->has_tag_offset, v->tag_offset);
}

/* The code is that of the executable, with the addresses of the file with the DWARF. */
static enum status find_variables_in_view(void *context, const struct extract_view *v, const struct symbol_table *t,
                                          struct error *err)
{
        const struct variables_report *report = context;
        _cleanup_free_ struct dwarf_region *regions = calloc(v->code->count + 1, sizeof *regions);
        struct dwarf_object object;
        struct dwarf_reader *reader;
        enum status st;

        (void)t;
        if (!regions)
                return error_no_memory(err);
        for (size_t i = 0; i < v->code->count; i++)
                regions[i] = (struct dwarf_region){ v->code->regions[i].start - v->dwarf_bias,
                                                    v->code->regions[i].end - v->dwarf_bias };
        st = v->best ? dwarf_object_open(v->best, v->altlink, &object, err) : ST_NOT_FOUND;
        if (st)
                return st == ST_NO_MEMORY ? st : ST_OK;
        st = dwarf_reader_create(&object, (struct dwarf_regions){ regions, v->code->count }, &reader, err);
        if (!st) {
                st = dwarf_stack_variables_find(reader, v->best, report->address - v->dwarf_bias, append_variable,
                                                report->to, err);
                dwarf_reader_destroy(reader);
        }
        dwarf_object_close(&object);
        return st;
}

enum status extract_variables(const struct extract_inputs *in, struct buf *to, struct error *err)
{
        struct variables_report report = { .address = in->filter->addresses[0], .to = to };
        const struct extract_observer observer = { .context = &report, .done = find_variables_in_view };
        struct symbol_table table = { 0 };
        enum status st;

        assert(in->filter->count);
        st = symbol_table_extract_observed(in, &observer, &table, err);
        if (!st)
                symbol_table_deinit(&table);
        return st ? st : buf_status(to, err, "the variables");
}

bool extract_variables_next(const struct buf *report, size_t *at_io, const char *ret[VARIABLE_FIELDS])
{
        const char *at = (const char *)report->data + *at_io, *end = (const char *)report->data + report->size;

        for (int i = 0; i < VARIABLE_FIELDS; i++) {
                const char *nul = at == end ? NULL : memchr(at, 0, (size_t)(end - at));

                if (!nul)
                        return false;
                ret[i] = at;
                at = nul + 1;
        }
        *at_io = (size_t)(at - (const char *)report->data);
        return true;
}
