/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/object_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/search.h"
#include "symbolizer/extraction/relocatable.h"

#define PAGE_BYTES 4096

/* ---- reading ---- */

static bool is_wanted_symbol(const struct elf_image *img, const struct elf_symbol *sym)
{
        const struct elf_section *section = elf_image_section_at(img, sym->section);

        if (!sym->name[0] || sym->section == SHN_UNDEF || sym->section >= ELF_SECTION_RESERVED)
                return false;
        if (section && !(section->flags & SHF_ALLOC))
                return false;
        return sym->type == STT_FUNC || sym->type == STT_OBJECT || sym->type == STT_GNU_IFUNC ||
               (sym->type == STT_NOTYPE && sym->name[0] != '$');
}

static uint64_t get_linked_address(const struct object_symbols *s, const struct elf_symbol *sym)
{
        bool is_thumb_bit = s->image.machine == EM_ARM && sym->type == STT_FUNC;
        uint64_t value = is_thumb_bit ? sym->value & ~UINT64_C(1) : sym->value;

        return s->section_addresses && sym->section < s->image.section_count
                       ? value + s->section_addresses[sym->section]
                       : value;
}

static int compare_symbol_extents(const struct object_symbol *x, const struct object_symbol *y)
{
        if (x->address != y->address)
                return x->address < y->address ? -1 : 1;
        return x->size < y->size ? -1 : x->size > y->size;
}

static int compare_later_symbols(const void *a, const void *b)
{
        const struct object_symbol *x = a, *y = b;
        int order = compare_symbol_extents(x, y);

        return order ? order : x->order < y->order ? -1 : 1;
}

static int compare_global_symbols(const void *a, const void *b)
{
        const struct object_symbol *x = a, *y = b;
        int order = compare_symbol_extents(x, y);

        if (order)
                return order;
        if (x->binding_rank != y->binding_rank)
                return x->binding_rank < y->binding_rank ? -1 : 1;
        return x->order < y->order ? 1 : -1;
}

static void sort_object_symbols(struct object_symbols *s)
{
        if (s->count)
                qsort(s->items, s->count, sizeof *s->items,
                      s->preference == PREFER_LATER_SYMBOLS ? compare_later_symbols : compare_global_symbols);
}

static enum status read_object_symbols(struct object_symbols *s, struct elf_symbol_cursor *c, struct error *err)
{
        const char *file = "";
        size_t capacity = 0;
        struct elf_symbol sym;

        while (elf_symbols_next(c, &sym)) {
                const struct elf_section *section = elf_image_section_at(&s->image, sym.section);

                if (sym.type == STT_FILE)
                        file = sym.name;
                if (!is_wanted_symbol(&s->image, &sym))
                        continue;
                if (!array_reserve(&s->items, &capacity, s->count))
                        return error_no_memory(err);
                s->items[s->count] = (struct object_symbol){
                        .address = get_linked_address(s, &sym),
                        .size = sym.size,
                        .name = sym.name,
                        .section = section ? section->name : "",
                        .file = sym.binding == STB_LOCAL ? file : "",
                        .order = (uint32_t)s->count,
                        .binding_rank = sym.binding == STB_LOCAL  ? 0
                                        : sym.binding == STB_WEAK ? 1
                                                                  : 2,
                };
                s->count++;
        }
        sort_object_symbols(s);
        return ST_OK;
}

enum status object_symbols_open(const char *path, enum object_symbol_preference preference, struct object_symbols *ret,
                                struct error *err)
{
        struct object_symbols s = { .preference = preference };
        struct elf_symbol_cursor c;
        enum status st = elf_image_open(path, &s.image, err);

        if (st)
                return st;
        if (s.image.type == ET_REL)
                st = relocatable_place_sections(&s.image, &s.section_addresses, err);
        if (!st)
                st = elf_symbols_begin_type(&s.image, SHT_SYMTAB, &c, err);
        if (!st)
                st = read_object_symbols(&s, &c, err);
        if ((!st || st == ST_NOT_FOUND) && !s.count) {
                st = elf_symbols_begin_type(&s.image, SHT_DYNSYM, &c, err);
                if (!st)
                        st = read_object_symbols(&s, &c, err);
        }
        if (st && st != ST_NOT_FOUND) {
                object_symbols_close(&s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

void object_symbols_close(struct object_symbols *s)
{
        free(s->items);
        free(s->section_addresses);
        s->items = NULL;
        s->section_addresses = NULL;
        s->count = 0;
        elf_image_close(&s->image);
}

uint64_t untag_address(uint64_t address)
{
        return (uint64_t)((int64_t)(address << 8) >> 8);
}

void object_symbols_untag(struct object_symbols *s)
{
        for (size_t i = 0; i < s->count; i++)
                s->items[i].address = untag_address(s->items[i].address);
        sort_object_symbols(s);
}

/* ---- lookups ---- */

bool object_symbols_is_loaded(const struct object_symbols *s, uint64_t address)
{
        for (size_t i = 0; i < s->image.segment_count; i++) {
                const struct elf_segment *segment = &s->image.segments[i];
                uint64_t pages = (segment->memory_size + (segment->address & (PAGE_BYTES - 1)) + PAGE_BYTES - 1) &
                                 ~(uint64_t)(PAGE_BYTES - 1);

                if (segment->type == PT_LOAD && address - (segment->address & ~(uint64_t)(PAGE_BYTES - 1)) < pages)
                        return true;
        }
        return s->image.type == ET_REL;
}

const struct elf_section *object_symbols_section_at(const struct object_symbols *s, uint64_t address)
{
        for (size_t i = 1; i < s->image.section_count; i++) {
                const struct elf_section *section = &s->image.sections[i];
                uint64_t start = s->section_addresses ? s->section_addresses[i] : section->address;

                if ((section->flags & SHF_ALLOC) && !(section->flags & SHF_TLS) && address >= start &&
                    address - start < section->size)
                        return section;
        }
        return NULL;
}

static bool is_in_section(const struct object_symbols *s, const struct object_symbol *symbol, uint64_t address)
{
        const struct elf_section *section = object_symbols_section_at(s, address);

        return address == symbol->address || !s->image.section_count ||
               (section && strcmp(section->name, symbol->section) == 0);
}

const struct object_symbol *object_symbols_before(const struct object_symbols *s, uint64_t address)
{
        size_t behind = find_lower_bound(i, 0, s->count, s->items[i].address <= address);
        const struct object_symbol *symbol = behind ? &s->items[behind - 1] : NULL;

        if (!symbol || (symbol->size && address - symbol->address >= symbol->size))
                return NULL;
        return symbol->size || s->image.type != ET_REL || is_in_section(s, symbol, address) ? symbol : NULL;
}

const struct object_symbol *object_symbols_at(const struct object_symbols *s, uint64_t address)
{
        const struct object_symbol *symbol = object_symbols_before(s, address);

        return symbol && (symbol->size || is_in_section(s, symbol, address)) ? symbol : NULL;
}

static bool is_symbol_named(const struct object_symbol *symbol, const char *name, size_t name_size)
{
        return strlen(symbol->name) == name_size && memcmp(symbol->name, name, name_size) == 0;
}

const struct object_symbol *object_symbols_named(const struct object_symbols *s, const char *name, size_t name_size)
{
        const struct object_symbol *first = NULL;

        for (size_t i = 0; i < s->count; i++)
                if (is_symbol_named(&s->items[i], name, name_size) && (!first || s->items[i].order < first->order))
                        first = &s->items[i];
        return first;
}

static int compare_symbol_orders(const void *a, const void *b)
{
        const struct object_symbol *const *x = a, *const *y = b;

        return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

size_t object_symbols_all_named(const struct object_symbols *s, const char *name, size_t name_size,
                                const struct object_symbol **ret, size_t max)
{
        size_t n = 0;

        for (size_t i = 0; i < s->count && n < max; i++)
                if (is_symbol_named(&s->items[i], name, name_size))
                        ret[n++] = &s->items[i];
        if (n)
                qsort(ret, n, sizeof *ret, compare_symbol_orders);
        return n;
}

bool parse_symbol_offset(const char *text, struct symbol_offset *ret)
{
        struct symbol_offset r = { .name = text, .name_size = strcspn(text, "+-") };
        const char *sign = text + r.name_size;
        uint64_t offset;
        char *end;

        if (!r.name_size)
                return false;
        if (*sign) {
                if (sign[1] < '0' || sign[1] > '9')
                        return false;
                errno = 0;
                offset = strtoull(sign + 1, &end, 0);
                if (*end || errno || offset > INT64_MAX)
                        return false;
                r.offset = *sign == '-' ? -(int64_t)offset : (int64_t)offset;
                r.has_offset = true;
        }
        *ret = r;
        return true;
}
