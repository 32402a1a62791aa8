/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/function_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/search.h"
#include "common/sort.h"
#include "symbol-index/demangle.h"

void function_symbols_deinit(struct function_symbols *s)
{
        free(s->items);
        hash_table_deinit(&s->names);
        *s = (struct function_symbols){ 0 };
}

/* ---- loading ---- */

struct ordered_symbol { /* as sort_by_start() wants it */
        uint64_t start;
        const struct code_symbol *symbol;
        uint64_t unused;
};

static int compare_ordered_symbols(const void *a, const void *b)
{
        return compare_code_symbols(((const struct ordered_symbol *)a)->symbol,
                                    ((const struct ordered_symbol *)b)->symbol);
}

/* @param ret room for all symbols  @return how many have a size */
static size_t order_symbols(const struct code_symbols *all, struct ordered_symbol *ret)
{
        size_t count = 0, behind;

        for (size_t i = 0; i < all->count; i++) {
                const struct code_symbol *c = &all->items[i];

                if (c->is_sized)
                        ret[count++] = (struct ordered_symbol){ .start = c->start, .symbol = c };
        }
        if (count)
                sort_by_start(ret, count, sizeof *ret);
        for (size_t i = 0; i < count; i = behind) {
                for (behind = i + 1; behind < count && ret[behind].start == ret[i].start;)
                        behind++;
                if (behind - i > 1)
                        qsort(&ret[i], behind - i, sizeof *ret, compare_ordered_symbols);
        }
        return count;
}

static enum status load_function_symbols(struct function_symbols *s)
{
        _cleanup_free_ struct ordered_symbol *ordered = NULL;
        const struct code_symbols *all;
        enum status st = s->is_loaded ? ST_OK : s->collect(s->context, &all);

        if (st || s->is_loaded)
                return st;
        ordered = calloc(all->count + 1, sizeof *ordered);
        s->items = calloc(all->count + 1, sizeof *s->items);
        if (!ordered || !s->items)
                return ST_NO_MEMORY;
        s->count = order_symbols(all, ordered);
        for (size_t i = 0; i < s->count; i++) {
                const struct code_symbol *c = ordered[i].symbol;

                s->items[i] = (struct function_symbol){ c->start - s->dwarf_bias, c->end - s->dwarf_bias, c->name,
                                                        c->is_function };
        }
        s->is_loaded = true;
        return ST_OK;
}

static struct function_symbol_name cut_clone_suffix(const char *name)
{
        const char *last = strrchr(name, 'E'), *cut;
        size_t size = elf_symbol_name_size(name);

        /* The suffix follows the mangled name; those of Rust contain ".." before their final E. */
        cut = strchr(last && last < name + size ? last : name, '.');
        return (struct function_symbol_name){ name,
                                              cut && cut > name && cut < name + size ? (size_t)(cut - name) : size };
}

static bool is_same_symbol_name(struct function_symbol_name a, struct function_symbol_name b)
{
        return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

static bool equal_symbol_name(const void *context, uint32_t item, const void *key, size_t size)
{
        const struct function_symbols *s = context;

        return is_same_symbol_name(cut_clone_suffix(s->items[item].name), (struct function_symbol_name){ key, size });
}

static enum status hash_symbol_names(struct function_symbols *s)
{
        for (size_t i = 0; !s->is_hashed && i < s->count && i < UINT32_MAX; i++) {
                struct function_symbol_name name = cut_clone_suffix(s->items[i].name);
                uint32_t known, hash = hash_table_hash(name.text, name.size);

                if (hash_table_find(&s->names, hash, equal_symbol_name, s, name.text, name.size, &known))
                        continue;
                if (hash_table_reserve(&s->names, NULL))
                        return ST_NO_MEMORY;
                hash_table_insert(&s->names, hash, (uint32_t)i);
        }
        s->is_hashed = true;
        return ST_OK;
}

/* ---- choosing ---- */

static bool can_be_demangled(struct function_symbol_name name)
{
        _cleanup_free_ char *text = strndup(name.text, name.size);

        return text && symbol_can_be_demangled(text);
}

/*
 * Whether a symbol is the name with its scopes: "*IO::Memory#read<Slice(UInt8)>:Int32" of Crystal, for "read". Its
 * procs are "->" and "~procProc(Nil)@FILE:LINE". Matches do not overlap: the time is linear in the symbol's length.
 */
static bool is_qualified_name(const char *symbol, const char *plain)
{
        size_t size = strlen(plain);

        if (strcmp(plain, "->") == 0)
                return strncmp(symbol, "~proc", strlen("~proc")) == 0;
        for (const char *at = symbol; size && (at = strstr(at, plain)) != NULL; at += size) {
                bool begins =
                        at > symbol && (strchr("*#", at[-1]) || (at - symbol >= 2 && memcmp(at - 2, "::", 2) == 0));

                if (begins && (!at[size] || strchr("<(:", at[size])))
                        return true;
        }
        return false;
}

/*
 * Of several symbols (folded functions, constructors) one that contains the name is preferred. One that is not mangled
 * has to be the name with its scopes.
 */
static void choose_full_symbol(const struct function_symbol *items, size_t count, const char *plain,
                               struct function_symbol_name *ret)
{
        const struct function_symbol *any = NULL, *best = NULL, *qualified = NULL;
        size_t size = strcspn(plain, "<");
        char wanted[LIMIT_NAME_BYTES + 32];

        snprintf(wanted, sizeof wanted, "%zu%.*s", size, (int)(size < LIMIT_NAME_BYTES ? size : 0), plain);
        for (size_t i = 0; i < count; i++) {
                struct function_symbol_name base = cut_clone_suffix(items[i].name);

                if (is_same_symbol_name(base, (struct function_symbol_name){ plain, strlen(plain) }))
                        return;
                if (!qualified && is_qualified_name(items[i].name, plain))
                        qualified = &items[i];
                if (!dwarf_is_mangled_name(items[i].name))
                        continue;
                if (!any)
                        any = &items[i];
                if (!best && memmem(base.text, base.size, wanted, strlen(wanted)))
                        best = &items[i];
        }
        if (any && can_be_demangled(cut_clone_suffix((best ? best : any)->name)))
                *ret = cut_clone_suffix((best ? best : any)->name);
        else if (qualified)
                *ret = (struct function_symbol_name){ qualified->name, elf_symbol_name_size(qualified->name) };
}

/* The symbol of a function whose address another one's debug information has. */
static enum status choose_real_symbol(struct function_symbols *s, const struct function_symbol *items, size_t count,
                                      uint64_t end, const char *linkage, struct function_symbol_name *ret)
{
        struct function_symbol_name wanted = cut_clone_suffix(linkage);
        const struct function_symbol *exact = NULL;
        enum status st;
        uint32_t other;

        for (size_t i = 0; i < count; i++) {
                if (is_same_symbol_name(cut_clone_suffix(items[i].name), wanted))
                        return ST_OK;
                if (!exact && items[i].end == end && items[i].is_function)
                        exact = &items[i];
        }
        st = exact ? hash_symbol_names(s) : ST_OK;
        if (!st && exact &&
            hash_table_find(&s->names, hash_table_hash(wanted.text, wanted.size), equal_symbol_name, s, wanted.text,
                            wanted.size, &other))
                *ret = cut_clone_suffix(exact->name);
        return st;
}

static size_t find_first_symbol(const struct function_symbols *s, uint64_t start)
{
        size_t first = find_lower_bound(i, 0, s->count, s->items[i].start < start);

        return first;
}

enum status function_symbols_find_end(struct function_symbols *s, const struct dwarf_interval *range, uint64_t *ret)
{
        enum status st = s ? load_function_symbols(s) : ST_OK;
        uint64_t own_end = 0;
        size_t i;

        if (st)
                return st;
        *ret = range->end;
        i = s ? find_first_symbol(s, range->start) : 0;
        for (; s && i < s->count && s->items[i].start == range->start; i++)
                if (s->items[i].is_function && s->items[i].end > own_end)
                        own_end = s->items[i].end;
        if (!own_end || own_end >= range->end)
                return ST_OK;
        for (i = find_first_symbol(s, own_end); i < s->count && s->items[i].start < range->end; i++)
                if (s->items[i].is_function) {
                        *ret = s->items[i].start;
                        break;
                }
        return ST_OK;
}

enum status function_symbols_find_name(struct function_symbols *s, const struct dwarf_interval *range,
                                       const struct dwarf_name *name, struct function_symbol_name *ret)
{
        size_t first, count = 0;
        enum status st;

        *ret = (struct function_symbol_name){ 0 };
        if (!s || (!name->linkage && !name->is_bare))
                return ST_OK;
        st = load_function_symbols(s);
        if (st)
                return st;
        first = find_first_symbol(s, range->start);
        while (first + count < s->count && s->items[first + count].start == range->start)
                count++;
        if (name->linkage)
                st = choose_real_symbol(s, s->items + first, count, range->end, name->linkage, ret);
        if (!st && !ret->text && name->is_bare)
                choose_full_symbol(s->items + first, count, name->linkage ? name->linkage : name->plain, ret);
        return st;
}
