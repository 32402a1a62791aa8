/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbols/embedded_texts.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "symbolizer/extraction/extract_source.h"
#include "symbolizer/workers/extract_worker.h"

static void clear_embedded_text(struct embedded_text *e)
{
        free(e->path);
        e->path = NULL;
        buf_deinit(&e->report);
}

void embedded_texts_deinit(struct embedded_texts *t)
{
        for (size_t i = 0; i < EMBEDDED_TEXTS_KEPT; i++)
                if (t->items[i].path)
                        clear_embedded_text(&t->items[i]);
}

static enum status read_embedded_text(struct embedded_text *e, struct extract_inputs *in, uint64_t address,
                                      const char *path, struct error *err)
{
        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };
        enum status st;

        e->path = strdup(path);
        if (!e->path)
                return error_no_memory(err);
        e->address = address;
        buf_init(&e->report, LIMIT_SOURCE_FILE_BYTES + 2);
        in->filter = &filter;
        st = source_extract_confined(in, path, &e->report, err);
        in->filter = NULL;
        e->is_unreadable = st;
        if (!st && !buf_cstr(&e->report)) {
                clear_embedded_text(e);
                return error_no_memory(err);
        }
        return st;
}

static bool is_text_for(const struct embedded_text *e, uint64_t address, const char *path)
{
        return e->path && strcmp(e->path, path) == 0 &&
               (e->is_unreadable || e->address == address || !extract_source_read(&e->report).is_of_unit);
}

enum status embedded_texts_find(struct embedded_texts *t, struct extract_inputs *in, uint64_t address, const char *path,
                                struct answer_text *ret, struct error *err)
{
        struct embedded_text *e = NULL;
        struct source_report report;

        if (t->has_none)
                return ST_NOT_FOUND;
        for (size_t i = 0; i < EMBEDDED_TEXTS_KEPT && !e; i++)
                if (is_text_for(&t->items[i], address, path))
                        e = &t->items[i];
        if (!e) {
                enum status st;

                e = &t->items[t->next];
                if (e->path)
                        clear_embedded_text(e);
                t->next = (t->next + 1) % EMBEDDED_TEXTS_KEPT;
                st = read_embedded_text(e, in, address, path, err);
                if (st)
                        return st;
        }
        if (e->is_unreadable)
                return ST_NOT_FOUND;
        report = extract_source_read(&e->report);
        t->has_none = !report.has_any;
        if (!report.text)
                return ST_NOT_FOUND;
        *ret = (struct answer_text){ .data = report.text, .size = report.size_bytes };
        return ST_OK;
}
