/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers from an ELF file: the symbol table that a confined worker makes of
 * it, searched in memory. Readable names are made once per function.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/symbolize.h"
#include "common/limits.h"
#include "symbolizer/demangle.h"
#include "symbolizer/extract_find.h"
#include "symbolizer/extract_worker.h"

struct file_source {
        struct symbol_table table;
        char **names; /* by function; NULL not yet made, or the same as in the table */
        struct buf scratch;
        struct answer_frame frames[LIMIT_INLINE_DEPTH + 1];
};

static void file_source_close(void *context)
{
        struct file_source *s = context;

        for (uint32_t i = 0; s->names && i < s->table.function_count; i++)
                free(s->names[i]);
        free(s->names);
        buf_deinit(&s->scratch);
        symbol_table_deinit(&s->table);
        free(s);
}

static const char *readable(struct file_source *s, uint32_t function, const char *linkage_name)
{
        const char *name;

        if (s->names[function])
                return s->names[function];
        name = symbol_demangle(linkage_name, &s->scratch);
        if (name == linkage_name)
                return linkage_name;
        s->names[function] = strdup(name);
        return s->names[function] ? s->names[function] : linkage_name;
}

static void fill_frame(struct file_source *s, const struct symbol_table_frame *f, struct answer_frame *ret)
{
        const struct symbol_table *t = &s->table;

        ret->file = t->strings + f->file;
        ret->line = f->line;
        ret->function = ret->linkage_name = "";
        if (f->function == SYMBOL_NO_FUNCTION)
                return;
        ret->linkage_name = t->strings + t->functions[f->function].linkage_name;
        ret->function = ret->linkage_name[0] ? readable(s, f->function, ret->linkage_name) :
                                               t->strings + t->functions[f->function].name;
}

static enum status file_source_ask(void *context, const uint64_t *addresses, size_t count,
                                   void (*give)(void *printer, const struct answer *), void *printer,
                                   struct error *err)
{
        struct file_source *s = context;

        (void)err;
        for (size_t i = 0; i < count; i++) {
                const struct symbol_range *range = symbol_table_find(&s->table, addresses[i]);
                struct answer a = { .address = addresses[i], .frames = s->frames };
                enum symbol_state state = range ? SYMBOL_RESOLVED : symbol_table_state(&s->table, addresses[i]);

                a.state = symbol_state_name(state);
                if (range) {
                        const struct symbol_chain *chain = &s->table.chains[range->chain];

                        a.frame_count = chain->frame_count;
                        if (a.frame_count > sizeof s->frames / sizeof *s->frames)
                                a.frame_count = sizeof s->frames / sizeof *s->frames;
                        for (size_t n = 0; n < a.frame_count; n++) {
                                fill_frame(s, &s->table.frames[chain->first_frame + n], &s->frames[n]);
                                s->frames[n].inlined = n + 1 < chain->frame_count;
                        }
                }
                give(printer, &a);
        }
        return ST_OK;
}

enum status answer_source_file(const char *path, const char *debug_directory, struct answer_source *ret,
                               struct error *err)
{
        struct extract_inputs in;
        struct file_source *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        buf_init(&s->scratch, LIMIT_DEMANGLED_BYTES + 1);
        st = extract_inputs_find(path, debug_directory, &in, err);
        if (!st) {
                st = symbol_table_extract_confined(&in, NULL, &s->table, err);
                extract_inputs_close(&in);
        }
        if (!st) {
                s->names = calloc(s->table.function_count + 1ul, sizeof *s->names);
                if (!s->names)
                        st = error_no_memory(err);
        }
        if (st) {
                file_source_close(s);
                return st;
        }
        *ret = (struct answer_source){ .context = s, .ask = file_source_ask, .close = file_source_close,
                                       .quality = symbol_quality_name(s->table.quality) };
        if (s->table.partial)
                ret->partial = symbol_table_partial(&s->table);
        if (s->table.build_id.size)
                build_id_hex(&s->table.build_id, ret->build_id);
        return ST_OK;
}
