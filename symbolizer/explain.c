/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "symbolizer/demangle.h"
#include "symbolizer/explain_internal.h"
#include "symbolizer/symbol_reason.h"

/* What DWARF alone says of one address; its numbers stay good in the table, which is made by the same builder. */
struct snapshot {
        struct symbol_table_frame frames[LIMIT_INLINE_DEPTH + 1];
        size_t count;
        uint64_t start, end;
};

struct explaining {
        const uint64_t *addresses;
        size_t count;
        struct snapshot *dwarf; /* owned; by address */
        struct json_out *j;
        struct buf scratch;     /* of demangling */
};

/* ---- pieces ---- */

void explain_put_hex(struct json_out *j, const char *key, uint64_t v)
{
        char text[24];

        snprintf(text, sizeof text, "0x%" PRIx64, v);
        json_out_str(j, key, text);
}

static void put_frames(struct json_out *j, const char *key, const struct explain_chain *c, struct buf *scratch)
{
        const struct symbol_table *t = c->table;

        json_out_array(j, key);
        for (size_t i = 0; i < c->count; i++) {
                const struct symbol_table_frame *f = &c->frames[i];
                const char *name = explain_function(t, f);
                bool has_linkage_name = f->function != SYMBOL_NO_FUNCTION &&
                                        t->strings[t->functions[f->function].linkage_name];

                json_out_object(j, NULL);
                json_out_str(j, "function", has_linkage_name ? symbol_demangle(name, scratch) : name);
                json_out_str(j, "linkage_name", has_linkage_name ? name : "");
                json_out_str(j, "file", t->strings + f->file);
                json_out_uint(j, "line", f->line);
                json_out_bool(j, "inlined", i + 1 < c->count);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_build_id(struct json_out *j, const char *key, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];

        json_out_str(j, key, id->size ? build_id_hex(id, hex) : "");
}

static void put_image(struct json_out *j, const char *role, const struct elf_image *img)
{
        if (!img)
                return;
        json_out_object(j, NULL);
        json_out_str(j, "role", role);
        put_build_id(j, "build_id", &img->build_id);
        json_out_str(j, "quality", symbol_quality_name(elf_image_quality(img)));
        json_out_uint(j, "bytes", img->size);
        json_out_object_end(j);
}

/* ---- one address ---- */

struct answer {
        struct explain_chain final, dwarf, sources[EXPLAIN_SOURCE_COUNT];
        const char *source, *name_source; /* name_source: of the function, where another source gave it */
        enum explain_source by;           /* of source or name_source; EXPLAIN_SOURCE_COUNT for DWARF alone */
};

/* The source whose function the answer has; of several the best. */
static enum explain_source source_of_function(const struct answer *a, enum explain_source from)
{
        for (enum explain_source i = from; i < EXPLAIN_SOURCE_COUNT; i++)
                if (explain_same_function(&a->sources[i], &a->final))
                        return i;
        for (enum explain_source i = from; i < EXPLAIN_SOURCE_COUNT; i++)
                if (a->sources[i].count)
                        return i;
        return EXPLAIN_SOURCE_COUNT;
}

/* As the sources join (symbolizer/source_fill.h): a line without a function is replaced by Go's, or named by symbols. */
static void find_source(struct answer *a)
{
        bool lines_only = a->dwarf.count && a->dwarf.frames[a->dwarf.count - 1].function == SYMBOL_NO_FUNCTION;

        a->by = EXPLAIN_SOURCE_COUNT;
        if (!a->final.count)
                return;
        if (a->dwarf.count && !lines_only) {
                a->source = symbol_quality_name(QUALITY_DWARF);
                return;
        }
        if (!lines_only || (a->sources[EXPLAIN_GO].count && explain_chain_equal(&a->sources[EXPLAIN_GO], &a->final))) {
                a->by = a->sources[EXPLAIN_GO].count ? EXPLAIN_GO : source_of_function(a, EXPLAIN_SYMTAB);
                a->source = a->by == EXPLAIN_SOURCE_COUNT ? "" : explain_source_name(a->by);
                return;
        }
        a->source = symbol_quality_name(QUALITY_LINES);
        if (explain_function(a->final.table, &a->final.frames[a->final.count - 1])[0]) {
                a->by = source_of_function(a, EXPLAIN_SYMTAB);
                a->name_source = a->by == EXPLAIN_SOURCE_COUNT ? NULL : explain_source_name(a->by);
        }
}

static struct answer answer_of(const struct explaining *e, size_t i, const struct symbol_table *t,
                               const struct explain_sources *sources)
{
        const struct snapshot *s = &e->dwarf[i];
        struct answer a = { .final = explain_chain_find(t, e->addresses[i]),
                            .dwarf = { t, s->frames, s->count, s->start, s->end } };

        for (size_t k = 0; k < EXPLAIN_SOURCE_COUNT; k++)
                a.sources[k] = explain_chain_find(&sources->tables[k], e->addresses[i]);
        find_source(&a);
        return a;
}

/* What each source says that covers the address, best first. */
static void put_sources(struct explaining *e, const struct answer *a)
{
        json_out_array(e->j, "sources");
        if (a->dwarf.count) {
                bool named = a->dwarf.frames[a->dwarf.count - 1].function != SYMBOL_NO_FUNCTION;

                json_out_object(e->j, NULL);
                json_out_str(e->j, "source", symbol_quality_name(named ? QUALITY_DWARF : QUALITY_LINES));
                put_frames(e->j, "frames", &a->dwarf, &e->scratch);
                json_out_object_end(e->j);
        }
        for (enum explain_source i = 0; i < EXPLAIN_SOURCE_COUNT; i++) {
                if (!a->sources[i].count)
                        continue;
                json_out_object(e->j, NULL);
                json_out_str(e->j, "source", explain_source_name(i));
                put_frames(e->j, "frames", &a->sources[i], &e->scratch);
                json_out_object_end(e->j);
        }
        json_out_array_end(e->j);
}

static enum status put_address(struct explaining *e, size_t i, const struct extract_view *v, const struct symbol_table *t,
                               const struct explain_sources *sources, struct explain_dwarf *dwarf, struct error *err)
{
        uint64_t address = e->addresses[i];
        struct answer a = answer_of(e, i, t, sources);
        enum symbol_state state = symbol_table_state(t, address);
        enum status st = ST_OK;

        json_out_object(e->j, NULL);
        explain_put_hex(e->j, "address", address);
        json_out_str(e->j, "state", symbol_state_name(state));
        if (state != SYMBOL_RESOLVED) {
                json_out_str(e->j, "meaning", symbol_state_meaning(state));
                json_out_str(e->j, "next_step", symbol_state_next_step(state));
        }
        if (a.source)
                json_out_str(e->j, "source", a.source);
        if (a.name_source)
                json_out_str(e->j, "name_source", a.name_source);
        put_frames(e->j, "frames", &a.final, &e->scratch);
        if (a.final.count) {
                json_out_object(e->j, "range");
                explain_put_hex(e->j, "start", a.final.start);
                explain_put_hex(e->j, "end", a.final.end);
                json_out_object_end(e->j);
        }
        put_sources(e, &a);
        explain_put_place(e->j, v, address);
        if (a.dwarf.count)
                st = explain_dwarf_put(dwarf, e->j, i, &a.dwarf, err);
        if (a.by == EXPLAIN_GO)
                explain_put_go(e->j, v, address);
        else if (a.by < EXPLAIN_PLT)
                explain_put_symbol(e->j, v, a.by, explain_function(a.final.table, &a.final.frames[a.final.count - 1]),
                                   address);
        json_out_object_end(e->j);
        return st;
}

/* ---- the observer ---- */

static enum status take_dwarf(void *context, const struct symbol_table_builder *b, struct error *err)
{
        struct explaining *e = context;
        const struct symbol_table view = { .ranges = b->ranges, .range_count = (uint32_t)b->range_count,
                                           .chains = b->chains, .frames = b->frames };

        (void)err;
        for (size_t i = 0; i < e->count && !b->failed; i++) {
                struct explain_chain c = explain_chain_find(&view, e->addresses[i]);
                struct snapshot *s = &e->dwarf[i];

                s->count = c.count <= LIMIT_INLINE_DEPTH + 1 ? c.count : LIMIT_INLINE_DEPTH + 1;
                if (s->count)
                        memcpy(s->frames, c.frames, s->count * sizeof *s->frames);
                s->start = c.start;
                s->end = c.end;
        }
        return ST_OK;
}

static enum status write_report(void *context, const struct extract_view *v, const struct symbol_table *t,
                                struct error *err)
{
        struct explaining *e = context;
        struct explain_sources sources = { 0 };
        struct explain_dwarf *dwarf = NULL;
        enum status st = explain_sources_make(v, &sources, err);

        if (!st)
                st = explain_dwarf_open(v, e->addresses, e->count, &dwarf, err);
        json_out_object(e->j, NULL);
        put_build_id(e->j, "build_id", &t->build_id);
        json_out_str(e->j, "quality", symbol_quality_name(t->quality));
        if (*symbol_table_partial(t))
                json_out_str(e->j, "partial", symbol_table_partial(t));
        json_out_array(e->j, "files");
        put_image(e->j, "debuginfo", v->debuginfo);
        put_image(e->j, "executable", v->executable);
        put_image(e->j, "dwz", v->altlink);
        put_image(e->j, "minidebuginfo", v->mini);
        json_out_array_end(e->j);
        json_out_array(e->j, "results");
        for (size_t i = 0; !st && i < e->count; i++)
                st = put_address(e, i, v, t, &sources, dwarf, err);
        json_out_array_end(e->j);
        json_out_object_end(e->j);
        explain_dwarf_close(dwarf);
        explain_sources_deinit(&sources);
        return st;
}

enum status explain_write(const struct extract_inputs *in, const uint64_t *addresses, size_t count, struct buf *to,
                          struct error *err)
{
        struct json_out j;
        struct explaining e = { .addresses = addresses, .count = count, .j = &j };
        const struct extract_observer observer = { &e, take_dwarf, write_report };
        struct symbol_table t;
        enum status st;

        if (count > EXPLAIN_ADDRESSES_MAX)
                return error_set(err, ST_USAGE, "more than %d addresses; ask several times", EXPLAIN_ADDRESSES_MAX);
        e.dwarf = calloc(count + 1, sizeof *e.dwarf);
        if (!e.dwarf)
                return error_no_memory(err);
        json_out_init(&j, to);
        buf_init(&e.scratch, LIMIT_DEMANGLED_BYTES + 1);
        st = symbol_table_extract_watched(in, &observer, &t, err);
        if (!st)
                symbol_table_deinit(&t);
        buf_deinit(&e.scratch);
        free(e.dwarf);
        return st ? st : buf_status(to, err, "the report");
}
