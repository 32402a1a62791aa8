/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extraction/extract_source.h"

#include <string.h>

#include "dwarf/source_names.h"
#include "symbolizer/extraction/extract_observer.h"

#define SOURCE_REPORT_NONE 'n'
#define SOURCE_REPORT_OTHER 'o'
#define SOURCE_REPORT_TEXT 't'

struct source_search {
        const char *path;
        bool is_relative; /* as the paths of the inputs */
        uint8_t found;    /* the first byte of the report */
        struct buf *to;
};

static bool match_source(void *context, const struct dwarf_source *source)
{
        struct source_search *s = context;

        if (!source->text || s->found == SOURCE_REPORT_TEXT)
                return true;
        s->found = SOURCE_REPORT_OTHER;
        if (strcmp(source->path, s->path) != 0)
                return true;
        s->found = SOURCE_REPORT_TEXT;
        buf_append_u8(s->to, s->found);
        buf_append_str(s->to, source->text);
        return true;
}

static enum status search_view_sources(void *context, const struct extract_view *v, const struct symbol_table *t,
                                       struct error *err)
{
        struct source_search *s = context;
        enum status st = v->best ? dwarf_source_names(v->best, s->is_relative, match_source, s, err) : ST_NOT_FOUND;

        (void)t;
        if (s->found != SOURCE_REPORT_TEXT)
                buf_append_u8(s->to, s->found);
        return st == ST_NO_MEMORY ? st : ST_OK;
}

enum status extract_source_text(const struct extract_inputs *in, const char *path, struct buf *to, struct error *err)
{
        struct source_search search = {
                .path = path, .is_relative = in->has_relative_paths, .found = SOURCE_REPORT_NONE, .to = to
        };
        const struct extract_observer observer = { .context = &search, .done = search_view_sources };
        struct symbol_table table = { 0 };
        enum status st = symbol_table_extract_observed(in, &observer, &table, err);

        if (!st)
                symbol_table_deinit(&table);
        return st ? st : buf_status(to, err, "the source file");
}

const char *extract_source_read(const struct buf *report, size_t *size_ret, bool *any_ret)
{
        const uint8_t first = report->size ? report->data[0] : SOURCE_REPORT_NONE;

        *any_ret = first != SOURCE_REPORT_NONE;
        if (first != SOURCE_REPORT_TEXT)
                return NULL;
        *size_ret = report->size - 1;
        return (const char *)report->data + 1;
}
