/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extraction/extract_source.h"

#include <string.h>

#include "dwarf/source_names.h"
#include "symbolizer/extraction/extract_observer.h"

#define SOURCE_REPORT_NONE 'n'
#define SOURCE_REPORT_OTHER 'o'
#define SOURCE_REPORT_TEXT 't'
#define SOURCE_REPORT_UNIT_TEXT 'u'

struct source_search {
        const char *path;
        uint64_t address;
        bool is_relative; /* as the paths of the inputs */
        bool has_unit_text, has_several;
        uint8_t found;     /* the first byte of the report */
        const char *first; /* text, borrowed from the sections: never read, only compared by its place */
        struct buf *to;
};

/* The unit that covers the address has precedence: relative paths of several directories are the same. Linkers merge
 * equal texts, and to compare others would take too long. */
static bool match_source(void *context, const struct dwarf_source *source)
{
        struct source_search *s = context;

        if (!source->text)
                return true;
        if (s->found == SOURCE_REPORT_NONE)
                s->found = SOURCE_REPORT_OTHER;
        if (strcmp(source->path, s->path) != 0)
                return true;
        s->has_several |= s->first && s->first != source->text;
        if (s->first && (s->has_unit_text || !source->is_of_address))
                return true;
        s->has_unit_text = source->is_of_address;
        s->found = SOURCE_REPORT_TEXT;
        if (s->first == source->text)
                return true;
        s->first = source->text;
        buf_clear(s->to);
        buf_append_u8(s->to, s->found);
        buf_append_str(s->to, source->text);
        return true;
}

static enum status search_view_sources(void *context, const struct extract_view *v, const struct symbol_table *t,
                                       struct error *err)
{
        struct source_search *s = context;
        enum status st =
                v->best ? dwarf_source_names(v->best, s->is_relative, s->address - v->dwarf_bias, match_source, s, err)
                        : ST_NOT_FOUND;

        (void)t;
        if (s->found != SOURCE_REPORT_TEXT)
                buf_append_u8(s->to, s->found);
        else if (s->has_several && s->to->size)
                s->to->data[0] = SOURCE_REPORT_UNIT_TEXT;
        return st == ST_NO_MEMORY ? st : ST_OK;
}

enum status extract_source_text(const struct extract_inputs *in, const char *path, struct buf *to, struct error *err)
{
        struct source_search search = { .path = path,
                                        .address = in->filter->addresses[0],
                                        .is_relative = in->has_relative_paths,
                                        .found = SOURCE_REPORT_NONE,
                                        .to = to };
        const struct extract_observer observer = { .context = &search, .done = search_view_sources };
        struct symbol_table table = { 0 };
        enum status st = symbol_table_extract_observed(in, &observer, &table, err);

        if (!st)
                symbol_table_deinit(&table);
        return st ? st : buf_status(to, err, "the source file");
}

struct source_report extract_source_read(const struct buf *report)
{
        const uint8_t first = report->size ? report->data[0] : SOURCE_REPORT_NONE;
        struct source_report ret = { .has_any = first != SOURCE_REPORT_NONE,
                                     .is_of_unit = first == SOURCE_REPORT_UNIT_TEXT };

        if (first == SOURCE_REPORT_TEXT || ret.is_of_unit) {
                ret.text = (const char *)report->data + 1;
                ret.size_bytes = report->size - 1;
        }
        return ret;
}
