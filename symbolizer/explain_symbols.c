/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF side of a report: which symbol it was, and where the address lies. */
#include <string.h>

#include "symbolizer/explain_internal.h"
#include "symbolizer/source_go_find.h"

#define ALIASES_MAX 8

struct found_symbol {
        const struct elf_image *img;
        const struct elf_section *table;
        const char *file; /* role of img */
        struct elf_symbol symbol;
};

static const char *name_of(uint64_t number, const char *const *names, size_t count)
{
        return number < count && names[number] ? names[number] : NULL;
}

static void put_number(struct json_out *j, const char *key, uint64_t number, const char *const *names, size_t count)
{
        const char *name = name_of(number, names, count);

        if (name)
                json_out_str(j, key, name);
        else
                explain_put_hex(j, key, number);
}

/* "pthread_create@@GLIBC_2.34" is pthread_create. */
static bool is_named(const struct elf_symbol *s, const char *name)
{
        size_t n = strcspn(s->name, "@");

        return strcmp(s->name, name) == 0 || (n && strncmp(s->name, name, n) == 0 && name[n] == 0);
}

static uint64_t value_of(const struct elf_image *img, const struct elf_symbol *s)
{
        return img->machine == EM_ARM ? s->value & ~UINT64_C(1) : s->value;
}

/* The nearest symbol of that name that does not begin behind the address. */
static void search(const struct extract_view *v, const struct elf_image *img, const char *file, uint32_t type,
                   const char *name, uint64_t address, struct found_symbol *ret)
{
        const struct elf_section *table = img ? elf_image_section_of_type(img, type) : NULL;
        struct elf_symbol_cursor c;
        struct elf_symbol s;

        if (!table || !elf_section_has_content(table) || elf_symbols_begin(img, table, &c, NULL))
                return;
        address -= explain_displacement(v, img);
        while (elf_symbols_next(&c, &s)) {
                if (s.section == SHN_UNDEF || value_of(img, &s) > address || !is_named(&s, name))
                        continue;
                if (!ret->img || value_of(img, &s) > value_of(ret->img, &ret->symbol))
                        *ret = (struct found_symbol){ img, table, file, s };
        }
}

static void put_aliases(struct json_out *j, const struct found_symbol *f)
{
        struct elf_symbol_cursor c;
        struct elf_symbol s;
        size_t count = 0;

        json_out_array(j, "aliases");
        if (elf_symbols_begin(f->img, f->table, &c, NULL) == ST_OK)
                while (count < ALIASES_MAX && elf_symbols_next(&c, &s)) {
                        if (s.section == SHN_UNDEF || s.value != f->symbol.value || !s.name[0] ||
                            s.type == STT_SECTION || s.type == STT_FILE || strcmp(s.name, f->symbol.name) == 0)
                                continue;
                        json_out_str(j, NULL, s.name);
                        count++;
                }
        json_out_array_end(j);
}

void explain_put_symbol(struct json_out *j, const struct extract_view *v, enum explain_source source, const char *name,
                        uint64_t address)
{
        static const char *const types[] = { [STT_NOTYPE] = "notype", [STT_OBJECT] = "object", [STT_FUNC] = "func",
                                             [STT_SECTION] = "section", [STT_GNU_IFUNC] = "gnu_ifunc" };
        static const char *const bindings[] = { [STB_LOCAL] = "local", [STB_GLOBAL] = "global", [STB_WEAK] = "weak",
                                                [STB_GNU_UNIQUE] = "gnu_unique" };
        uint32_t type = source == EXPLAIN_DYNSYM ? SHT_DYNSYM : SHT_SYMTAB;
        struct found_symbol f = { 0 };
        const struct elf_section *section;

        if (source == EXPLAIN_MINIDEBUGINFO)
                search(v, v->mini, "minidebuginfo", type, name, address, &f);
        else
                search(v, v->debuginfo, "debuginfo", type, name, address, &f);
        if (!f.img && source != EXPLAIN_MINIDEBUGINFO)
                search(v, v->executable, "executable", type, name, address, &f);
        if (!f.img)
                return;
        section = elf_image_section_at(f.img, f.symbol.section);
        json_out_object(j, "symbol");
        json_out_str(j, "name", f.symbol.name);
        explain_put_hex(j, "value", f.symbol.value);
        json_out_uint(j, "size", f.symbol.size);
        put_number(j, "type", f.symbol.type, types, sizeof types / sizeof *types);
        put_number(j, "binding", f.symbol.binding, bindings, sizeof bindings / sizeof *bindings);
        json_out_str(j, "section", section ? section->name : "");
        json_out_str(j, "table", f.table->name);
        json_out_str(j, "file", f.file);
        put_aliases(j, &f);
        json_out_object_end(j);
}

/* ---- where the address lies ---- */

static const struct elf_section *section_of(const struct elf_image *img, uint64_t address)
{
        for (size_t i = 0; img && i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if ((s->flags & SHF_ALLOC) && !(s->flags & SHF_TLS) && s->address <= address &&
                    address - s->address < s->size)
                        return s;
        }
        return NULL;
}

static const struct elf_segment *segment_of(const struct elf_image *img, uint64_t address)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *s = &img->segments[i];

                if (s->type == PT_LOAD && s->address <= address && address - s->address < s->memory_size)
                        return s;
        }
        return NULL;
}

void explain_put_place(struct json_out *j, const struct extract_view *v, uint64_t address)
{
        const struct elf_image *img = v->executable ? v->executable : v->debuginfo;
        const struct elf_section *section = section_of(img, address);
        const struct elf_segment *segment = segment_of(img, address);

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

static bool put_function(struct json_out *j, const struct elf_image *img, uint64_t address)
{
        static const char *const layouts[] = { [GO_1_2] = "1.2", [GO_1_16] = "1.16", [GO_1_18] = "1.18",
                                               [GO_1_20] = "1.20" };
        struct go_tables tables;
        bool found = false;

        if (!img || go_tables_find(img, &tables, NULL))
                return false;
        for (uint64_t i = 0; !found && i < tables.pclntab.function_count; i++) {
                struct go_function f;

                found = go_pclntab_function(&tables.pclntab, i, &f) && f.entry <= address && address < f.end;
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

void explain_put_go(struct json_out *j, const struct extract_view *v, uint64_t address)
{
        if (!put_function(j, v->executable, address))
                put_function(j, v->debuginfo, address);
}
