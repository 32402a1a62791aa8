/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extraction runs unchanged, with an observer that is called twice: snapshot_dwarf() copies the DWARF frames of
 * each address before the other sources are merged in, and write_report() receives the final table and the open files.
 *
 * The final table does not record which source a range came from. It is inferred: explain_sources has one table for
 * each other source, extracted from that source alone, and find_source() compares its chains with the snapshot and the
 * final chain by the rules of symbolizer/table/gap_fill.h. A change of those rules needs a change here.
 *
 * Order: tables by source, comparison of chains, then the parts of an answer (ELF symbol, section and segment, Go
 * function), the answer for one address, the observer, and explain_write(). The DWARF part of an answer is in
 * explain_dwarf.c, the start of a worker in explain_worker.c.
 */
#include "symbolizer/explain/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "symbol-index/demangle.h"
#include "symbol-index/symbol_state.h"
#include "symbolizer/sources/code_symbols.h"
#include "symbolizer/extraction/prelink_bias.h"
#include "symbolizer/explain/explain_internal.h"
#include "symbolizer/sources/go_tables.h"
#include "symbolizer/sources/source_go.h"
#include "symbolizer/sources/function_boundaries.h"
#include "symbolizer/sources/source_plt.h"

/* ---- sources ---- */

/** Best first. DWARF is not in this list: its ranges are the table before the others are merged into it. */
enum explain_source {
        EXPLAIN_GO,
        EXPLAIN_SYMTAB,
        EXPLAIN_MINIDEBUGINFO,
        EXPLAIN_DYNSYM,
        EXPLAIN_PLT,
        EXPLAIN_BOUNDARIES,
        EXPLAIN_SOURCE_COUNT
};

/** One table per source, extracted from that source alone. */
struct explain_sources {
        struct symbol_table tables[EXPLAIN_SOURCE_COUNT];
};

static const char *explain_source_name(enum explain_source s)
{
        static const enum symbol_quality qualities[] = {
                [EXPLAIN_GO] = QUALITY_GO_PCLNTAB,
                [EXPLAIN_SYMTAB] = QUALITY_SYMTAB,
                [EXPLAIN_MINIDEBUGINFO] = QUALITY_MINIDEBUGINFO,
                [EXPLAIN_DYNSYM] = QUALITY_DYNSYM,
                [EXPLAIN_BOUNDARIES] = QUALITY_BOUNDARIES,
        };

        return s == EXPLAIN_PLT ? "plt" : symbol_quality_name(qualities[s]);
}

static uint64_t explain_find_prelink_bias(const struct extract_view *v, const struct elf_image *img)
{
        const struct elf_image *runs = v->executable ? v->executable : v->debuginfo;

        return img == runs ? 0 : find_prelink_bias(runs, img);
}

static enum status add_source_symbols(const struct elf_image *img, uint32_t type, const struct extract_view *v,
                                      struct code_symbols *symbols, struct error *err)
{
        struct symbol_source source = { .img = img, .quality = QUALITY_SYMTAB };
        enum status st;

        if (!img)
                return ST_OK;
        source.running = v->executable ? v->executable : v->debuginfo;
        source.prelink_bias = explain_find_prelink_bias(v, img);
        st = code_symbols_add(symbols, &source, type, v->code, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status fill_source_symbols(const struct extract_view *v, enum explain_source source,
                                       struct symbol_table_builder *b, struct error *err)
{
        uint32_t type = source == EXPLAIN_DYNSYM ? SHT_DYNSYM : SHT_SYMTAB;
        struct code_symbols symbols = { 0 };
        enum status st = ST_OK;

        if (source == EXPLAIN_MINIDEBUGINFO)
                st = add_source_symbols(v->mini, type, v, &symbols, err);
        else
                st = add_source_symbols(v->debuginfo, type, v, &symbols, err);
        if (!st && source != EXPLAIN_MINIDEBUGINFO)
                st = add_source_symbols(v->executable, type, v, &symbols, err);
        if (!st)
                code_symbols_fill(&symbols, b);
        code_symbols_deinit(&symbols);
        return st;
}

static enum status fill_source_boundaries(const struct extract_view *v, struct symbol_table_builder *b,
                                          struct error *err)
{
        const struct boundary_input in = { .img = v->executable ? v->executable : v->debuginfo,
                                           .file_name = v->file_name,
                                           .code = v->code };
        bool used;

        return v->has_boundaries ? fill_from_function_boundaries(&in, b, &used, err) : ST_OK;
}

static enum status fill_source(const struct extract_view *v, enum explain_source source, struct symbol_table_builder *b,
                               struct error *err)
{
        const struct elf_image *images[] = { v->executable, v->debuginfo };
        struct go_summary go = { 0 };
        enum status st = ST_OK;

        if (source == EXPLAIN_BOUNDARIES)
                return fill_source_boundaries(v, b, err);
        if (source != EXPLAIN_GO && source != EXPLAIN_PLT)
                return fill_source_symbols(v, source, b, err);
        for (size_t i = 0; !st && i < 2 && !go.used; i++) {
                if (!images[i])
                        continue;
                st = source == EXPLAIN_GO ? fill_from_go_table(images[i], v->code, b, &go, err)
                                          : fill_from_plt(images[i], images[1 - i], b, &go.used, err);
        }
        return st;
}

static void explain_sources_deinit(struct explain_sources *s)
{
        for (size_t i = 0; i < EXPLAIN_SOURCE_COUNT; i++)
                symbol_table_deinit(&s->tables[i]);
}

static enum status explain_sources_make(const struct extract_view *v, struct explain_sources *ret, struct error *err)
{
        struct explain_sources s = { 0 };
        enum status st = ST_OK;

        for (enum explain_source i = 0; !st && i < EXPLAIN_SOURCE_COUNT; i++) {
                struct symbol_table_builder b;

                symbol_table_builder_init(&b);
                st = fill_source(v, i, &b, err);
                if (st != ST_NO_MEMORY && !b.failed) /* unreadable parts are left out, as in the extraction */
                        st = symbol_table_builder_finish(&b, &s.tables[i], err);
                symbol_table_builder_deinit(&b);
        }
        if (st) {
                explain_sources_deinit(&s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

/* ---- chains ---- */

static struct explain_chain explain_chain_find(const struct symbol_table *t, uint64_t address)
{
        const struct symbol_range *r = symbol_table_find(t, address);
        const struct symbol_chain *c = r ? &t->chains[r->chain] : NULL;

        if (!r)
                return (struct explain_chain){ .table = t };
        return (struct explain_chain){ t, t->frames + c->first_frame, c->frame_count, r->start, r->end };
}

const char *explain_function_name(const struct symbol_table *t, const struct symbol_table_frame *f)
{
        const struct symbol_function *function;

        if (f->function == SYMBOL_NO_FUNCTION)
                return "";
        function = &t->functions[f->function];
        return t->strings[function->linkage_name] ? t->strings + function->linkage_name : t->strings + function->name;
}

static const char *get_outermost_name(const struct explain_chain *c)
{
        return c->count ? explain_function_name(c->table, &c->frames[c->count - 1]) : "";
}

static bool explain_is_same_function(const struct explain_chain *a, const struct explain_chain *b)
{
        return *get_outermost_name(a) && strcmp(get_outermost_name(a), get_outermost_name(b)) == 0;
}

static bool explain_chain_equal(const struct explain_chain *a, const struct explain_chain *b)
{
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++) {
                const struct symbol_table_frame *x = &a->frames[i], *y = &b->frames[i];

                if (x->line != y->line || strcmp(a->table->strings + x->file, b->table->strings + y->file) != 0 ||
                    strcmp(explain_function_name(a->table, x), explain_function_name(b->table, y)) != 0)
                        return false;
        }
        return true;
}

/* ---- symbols ---- */

void explain_put_hex(struct json_out *j, const char *key, uint64_t v)
{
        char text[24];

        snprintf(text, sizeof text, "0x%" PRIx64, v);
        json_out_str(j, key, text);
}

/* The ELF part of a report: the symbol, its section and its segment. */

#define ALIASES_MAX 8

struct found_symbol {
        const struct elf_image *img;
        uint32_t table;   /* SHT_SYMTAB or SHT_DYNSYM */
        const char *file; /* role of img */
        struct elf_symbol symbol;
};

static const char *get_enum_name(uint64_t number, const char *const *names, size_t count)
{
        return number < count && names[number] ? names[number] : NULL;
}

static void put_enum(struct json_out *j, const char *key, uint64_t number, const char *const *names, size_t count)
{
        const char *name = get_enum_name(number, names, count);

        if (name)
                json_out_str(j, key, name);
        else
                explain_put_hex(j, key, number);
}

/* "pthread_create@@GLIBC_2.34" is pthread_create. */
static bool symbol_has_name(const struct elf_symbol *s, const char *name)
{
        size_t n = elf_symbol_name_size(s->name);

        return strcmp(s->name, name) == 0 || (n && strncmp(s->name, name, n) == 0 && name[n] == 0);
}

static uint64_t get_symbol_address(const struct elf_image *img, const struct elf_symbol *s)
{
        return img->machine == EM_ARM ? s->value & ~UINT64_C(1) : s->value;
}

/* The symbol of that name with the greatest address at or below the given one. */
static void search_symbol_table(const struct extract_view *v, const struct elf_image *img, const char *file,
                                uint32_t type, const char *name, uint64_t address, struct found_symbol *ret)
{
        struct elf_symbol_cursor c;
        struct elf_symbol s;

        if (!img || elf_symbols_begin_type(img, type, &c, NULL))
                return;
        address -= explain_find_prelink_bias(v, img);
        while (elf_symbols_next(&c, &s)) {
                if (s.section == SHN_UNDEF || get_symbol_address(img, &s) > address || !symbol_has_name(&s, name))
                        continue;
                if (!ret->img || get_symbol_address(img, &s) > get_symbol_address(ret->img, &ret->symbol))
                        *ret = (struct found_symbol){ img, type, file, s };
        }
}

static void put_aliases(struct json_out *j, const struct found_symbol *f)
{
        struct elf_symbol_cursor c;
        struct elf_symbol s;
        size_t count = 0;

        json_out_array(j, "aliases");
        if (elf_symbols_begin_type(f->img, f->table, &c, NULL) == ST_OK)
                while (count < ALIASES_MAX && elf_symbols_next(&c, &s)) {
                        if (s.section == SHN_UNDEF || s.value != f->symbol.value || !s.name[0] ||
                            s.type == STT_SECTION || s.type == STT_FILE || strcmp(s.name, f->symbol.name) == 0)
                                continue;
                        json_out_str(j, NULL, s.name);
                        count++;
                }
        json_out_array_end(j);
}

static void explain_put_symbol(struct json_out *j, const struct extract_view *v, enum explain_source source,
                               const char *name, uint64_t address)
{
        static const char *const types[] = { [STT_NOTYPE] = "notype",
                                             [STT_OBJECT] = "object",
                                             [STT_FUNC] = "func",
                                             [STT_SECTION] = "section",
                                             [STT_GNU_IFUNC] = "gnu_ifunc" };
        static const char *const bindings[] = {
                [STB_LOCAL] = "local", [STB_GLOBAL] = "global", [STB_WEAK] = "weak", [STB_GNU_UNIQUE] = "gnu_unique"
        };
        uint32_t type = source == EXPLAIN_DYNSYM ? SHT_DYNSYM : SHT_SYMTAB;
        struct found_symbol f = { 0 };
        const struct elf_section *section, *table;

        if (source == EXPLAIN_MINIDEBUGINFO)
                search_symbol_table(v, v->mini, "minidebuginfo", type, name, address, &f);
        else
                search_symbol_table(v, v->debuginfo, "debuginfo", type, name, address, &f);
        if (!f.img && source != EXPLAIN_MINIDEBUGINFO)
                search_symbol_table(v, v->executable, "executable", type, name, address, &f);
        if (!f.img)
                return;
        section = elf_image_section_at(f.img, f.symbol.section);
        table = elf_image_section_of_type(f.img, f.table);
        json_out_object(j, "symbol");
        json_out_str(j, "name", f.symbol.name);
        explain_put_hex(j, "value", f.symbol.value);
        json_out_uint(j, "size", f.symbol.size);
        put_enum(j, "type", f.symbol.type, types, sizeof types / sizeof *types);
        put_enum(j, "binding", f.symbol.binding, bindings, sizeof bindings / sizeof *bindings);
        json_out_str(j, "section", section ? section->name : "");
        json_out_str(j, "table", table ? table->name : "PT_DYNAMIC");
        json_out_str(j, "file", f.file);
        put_aliases(j, &f);
        json_out_object_end(j);
}

/* ---- section and segment of the address ---- */

static const struct elf_section *find_address_section(const struct elf_image *img, uint64_t address)
{
        for (size_t i = 0; img && i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if ((s->flags & SHF_ALLOC) && !(s->flags & SHF_TLS) && s->address <= address &&
                    address - s->address < s->size)
                        return s;
        }
        return NULL;
}

static const struct elf_segment *find_address_segment(const struct elf_image *img, uint64_t address)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];

                if (s->type == PT_LOAD && s->address <= address && address - s->address < s->memory_size)
                        return s;
        }
        return NULL;
}

static void explain_put_place(struct json_out *j, const struct extract_view *v, uint64_t address)
{
        const struct elf_image *img = v->executable ? v->executable : v->debuginfo;
        const struct elf_section *section = find_address_section(img, address);
        const struct elf_segment *segment = find_address_segment(img, address);

        json_out_object(j, "place");
        json_out_bool(j, "is_code", code_map_find(v->code, address) != NULL);
        if (section) {
                json_out_str(j, "section", section->name);
                json_out_bool(j, "section_is_code", section->flags & SHF_EXECINSTR);
        }
        if (segment) {
                explain_put_hex(j, "segment", segment->address);
                json_out_uint(j, "segment_bytes", segment->memory_size);
                json_out_bool(j, "segment_is_code", segment->flags & PF_X);
        }
        json_out_object_end(j);
}

/* ---- Go ---- */

static bool put_go_function(struct json_out *j, const struct elf_image *img, uint64_t address)
{
        static const char *const layouts[] = {
                [GO_1_2] = "1.2", [GO_1_16] = "1.16", [GO_1_18] = "1.18", [GO_1_20] = "1.20"
        };
        struct go_tables tables;
        bool found = false;

        if (!img || go_tables_find(img, &tables, NULL))
                return false;
        for (uint64_t i = 0; !found && i < tables.pclntab.function_count; i++) {
                struct go_function f;

                found = go_pclntab_get_function(&tables.pclntab, i, &f) && f.entry <= address && address < f.end;
                if (!found)
                        continue;
                json_out_object(j, "go");
                explain_put_hex(j, "table", tables.pclntab.address);
                json_out_str(j, "layout", layouts[tables.pclntab.layout]);
                json_out_uint(j, "function_number", i);
                json_out_str(j, "name", f.name);
                explain_put_hex(j, "entry", f.entry);
                explain_put_hex(j, "end", f.end);
                json_out_bool(j, "has_inline_tree", tables.pclntab.inlining && f.tree);
                json_out_object_end(j);
        }
        go_tables_deinit(&tables);
        return found;
}

static void explain_put_go(struct json_out *j, const struct extract_view *v, uint64_t address)
{
        if (!put_go_function(j, v->executable, address))
                put_go_function(j, v->debuginfo, address);
}

/* ---- the report ---- */

/* The DWARF frames of one address; their numbers stay valid in the table, which is built by the same builder. */
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
        struct buf scratch; /* of demangling */
};

/* ---- pieces ---- */

static void put_chain_frames(struct json_out *j, const char *key, const struct explain_chain *c, struct buf *scratch)
{
        const struct symbol_table *t = c->table;

        json_out_array(j, key);
        for (size_t i = 0; i < c->count; i++) {
                const struct symbol_table_frame *f = &c->frames[i];
                const char *name = explain_function_name(t, f);
                bool has_linkage_name =
                        f->function != SYMBOL_NO_FUNCTION && t->strings[t->functions[f->function].linkage_name];

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
        const char *source, *name_source; /* name_source: source of the function if it differs */
        enum explain_source by;           /* of source or name_source; EXPLAIN_SOURCE_COUNT for DWARF alone */
};

/* The best source that gives the function of the answer. */
static enum explain_source find_function_source(const struct answer *a, enum explain_source from)
{
        for (enum explain_source i = from; i < EXPLAIN_SOURCE_COUNT; i++)
                if (explain_is_same_function(&a->sources[i], &a->final))
                        return i;
        for (enum explain_source i = from; i < EXPLAIN_SOURCE_COUNT; i++)
                if (a->sources[i].count)
                        return i;
        return EXPLAIN_SOURCE_COUNT;
}

/* Follows the rules of symbolizer/table/gap_fill.h: Go replaces a line without a function, symbols add a name to it. */
static void find_source(struct answer *a, bool named_by_symbol)
{
        bool lines_only = a->dwarf.count && a->dwarf.frames[a->dwarf.count - 1].function == SYMBOL_NO_FUNCTION;

        a->by = EXPLAIN_SOURCE_COUNT;
        if (!a->final.count)
                return;
        if (a->dwarf.count && !lines_only) {
                a->source = symbol_quality_name(QUALITY_DWARF);
                if (named_by_symbol) {
                        a->by = find_function_source(a, EXPLAIN_SYMTAB);
                        a->name_source = a->by == EXPLAIN_SOURCE_COUNT ? NULL : explain_source_name(a->by);
                }
                return;
        }
        if (!lines_only || (a->sources[EXPLAIN_GO].count && explain_chain_equal(&a->sources[EXPLAIN_GO], &a->final))) {
                a->by = a->sources[EXPLAIN_GO].count ? EXPLAIN_GO : find_function_source(a, EXPLAIN_SYMTAB);
                a->source = a->by == EXPLAIN_SOURCE_COUNT ? "" : explain_source_name(a->by);
                return;
        }
        a->source = symbol_quality_name(QUALITY_LINES);
        if (explain_function_name(a->final.table, &a->final.frames[a->final.count - 1])[0]) {
                a->by = find_function_source(a, EXPLAIN_SYMTAB);
                a->name_source = a->by == EXPLAIN_SOURCE_COUNT ? NULL : explain_source_name(a->by);
        }
}

static enum status make_answer(const struct explaining *e, size_t i, const struct symbol_table *t,
                               const struct explain_sources *sources, struct explain_dwarf *dwarf, struct answer *ret,
                               struct error *err)
{
        const struct snapshot *s = &e->dwarf[i];
        struct answer a = { .final = explain_chain_find(t, e->addresses[i]),
                            .dwarf = { t, s->frames, s->count, s->start, s->end } };
        bool named_by_symbol;
        enum status st = explain_dwarf_choose(dwarf, i, &a.dwarf, &named_by_symbol, err);

        for (size_t k = 0; k < EXPLAIN_SOURCE_COUNT; k++)
                a.sources[k] = explain_chain_find(&sources->tables[k], e->addresses[i]);
        find_source(&a, named_by_symbol);
        *ret = a;
        return st;
}

/* The frames of each source that covers the address, best first. */
static void put_answer_sources(struct explaining *e, const struct answer *a)
{
        json_out_array(e->j, "sources");
        if (a->dwarf.count) {
                bool named = a->dwarf.frames[a->dwarf.count - 1].function != SYMBOL_NO_FUNCTION;

                json_out_object(e->j, NULL);
                json_out_str(e->j, "source", symbol_quality_name(named ? QUALITY_DWARF : QUALITY_LINES));
                put_chain_frames(e->j, "frames", &a->dwarf, &e->scratch);
                json_out_object_end(e->j);
        }
        for (enum explain_source i = 0; i < EXPLAIN_SOURCE_COUNT; i++) {
                if (!a->sources[i].count)
                        continue;
                json_out_object(e->j, NULL);
                json_out_str(e->j, "source", explain_source_name(i));
                put_chain_frames(e->j, "frames", &a->sources[i], &e->scratch);
                json_out_object_end(e->j);
        }
        json_out_array_end(e->j);
}

static const char *get_stub_meaning(const struct explain_chain *c)
{
        const char *name = c->count ? explain_function_name(c->table, &c->frames[c->count - 1]) : "";

        return strcmp(name, PLT_REST_NAME) == 0
                       ? "code of the procedure linkage table without a function of its own: the entry that calls the "
                         "dynamic linker, or a stub of unknown form"
                       : "a stub that jumps to this function through the GOT; calls into other files lead here";
}

static enum status put_explained_address(struct explaining *e, size_t i, const struct extract_view *v,
                                         const struct symbol_table *t, const struct explain_sources *sources,
                                         struct explain_dwarf *dwarf, struct error *err)
{
        uint64_t address = e->addresses[i];
        enum symbol_state state = symbol_table_gap_state(t, address);
        struct answer a;
        enum status st = make_answer(e, i, t, sources, dwarf, &a, err);

        if (st)
                return st;
        json_out_object(e->j, NULL);
        explain_put_hex(e->j, "address", address);
        json_out_str(e->j, "state", symbol_state_name(state));
        if (state != SYMBOL_RESOLVED) {
                json_out_str(e->j, "meaning", symbol_state_meaning(state));
                json_out_str(e->j, "next_step", symbol_state_next_step(state));
        }
        if (a.by == EXPLAIN_BOUNDARIES) {
                json_out_str(e->j, "meaning", "the file has no symbol here; the function is known by its start only");
                json_out_str(e->j, "next_step", "upload the debuginfo, or name a server that has it");
        }
        if (a.by == EXPLAIN_PLT)
                json_out_str(e->j, "meaning", get_stub_meaning(&a.final));
        if (a.source)
                json_out_str(e->j, "source", a.source);
        if (a.name_source)
                json_out_str(e->j, "name_source", a.name_source);
        put_chain_frames(e->j, "frames", &a.final, &e->scratch);
        if (a.final.count) {
                json_out_object(e->j, "range");
                explain_put_hex(e->j, "start", a.final.start);
                explain_put_hex(e->j, "end", a.final.end);
                json_out_object_end(e->j);
        }
        put_answer_sources(e, &a);
        explain_put_place(e->j, v, address);
        st = explain_dwarf_put(dwarf, e->j, i, err);
        if (a.by == EXPLAIN_GO)
                explain_put_go(e->j, v, address);
        else if (a.by < EXPLAIN_PLT)
                explain_put_symbol(e->j, v, a.by,
                                   explain_function_name(a.final.table, &a.final.frames[a.final.count - 1]), address);
        json_out_object_end(e->j);
        return st;
}

/* ---- the observer ---- */

static enum status snapshot_dwarf(void *context, const struct symbol_table_builder *b, struct error *err)
{
        struct explaining *e = context;
        const struct symbol_table view = {
                .ranges = b->ranges, .range_count = (uint32_t)b->range_count, .chains = b->chains, .frames = b->frames
        };

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
        if (*symbol_table_partial_text(t))
                json_out_str(e->j, "partial", symbol_table_partial_text(t));
        json_out_array(e->j, "files");
        put_image(e->j, "debuginfo", v->debuginfo);
        put_image(e->j, "executable", v->executable);
        put_image(e->j, "dwz", v->altlink);
        put_image(e->j, "minidebuginfo", v->mini);
        json_out_array_end(e->j);
        json_out_array(e->j, "results");
        for (size_t i = 0; !st && i < e->count; i++)
                st = put_explained_address(e, i, v, t, &sources, dwarf, err);
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
        const struct extract_observer observer = { &e, snapshot_dwarf, write_report };
        struct symbol_table t;
        enum status st;

        if (count > EXPLAIN_ADDRESSES_MAX)
                return error_set(err, ST_USAGE, "more than %d addresses; split them into several requests",
                                 EXPLAIN_ADDRESSES_MAX);
        e.dwarf = calloc(count + 1, sizeof *e.dwarf);
        if (!e.dwarf)
                return error_no_memory(err);
        json_out_init(&j, to);
        buf_init(&e.scratch, LIMIT_DEMANGLED_BYTES + 1);
        st = symbol_table_extract_observed(in, &observer, &t, err);
        if (!st)
                symbol_table_deinit(&t);
        buf_deinit(&e.scratch);
        free(e.dwarf);
        return st ? st : buf_status(to, err, "the report");
}
