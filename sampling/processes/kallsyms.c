/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/kallsyms.h"

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"
#include "sampling/objects/text_line.h"

#define SYMBOL_SPAN_MAX MiB(1) /* maximum distance of an address from its symbol */
#define MODULES_MAX UINT16_MAX

static uint16_t count_leading_underscores(struct text_line name)
{
        uint16_t n = 0;

        while (n < 15 && name.at + n < name.end && name.at[n] == '_')
                n++;
        return n;
}

/* Higher is better; 0 is reserved for symbols that are not code. */
static uint16_t rank_symbol_name(char type, struct text_line name)
{
        size_t size = text_size(&name) < 255 ? text_size(&name) : 255;
        unsigned kind;

        switch (type) {
        case 'T':
                kind = 3;
                break;
        case 't':
                kind = 2;
                break;
        case 'W':
        case 'w':
                kind = 1;
                break;
        default:
                return 0;
        }
        return (uint16_t)(kind << 12 | (15u - count_leading_underscores(name)) << 8 | size);
}

static bool append_name(struct buf *names, struct text_line text, uint32_t *ret)
{
        *ret = (uint32_t)names->size;
        buf_append(names, text.at, text_size(&text));
        return buf_append_u8(names, 0) == ST_OK;
}

/* Symbols of a module are adjacent, so the last module matches nearly always. */
static bool intern_module_name(struct kallsyms *k, struct text_line name, uint16_t *ret)
{
        for (size_t i = k->module_count; i > 0; i--) {
                const char *have = (const char *)k->names.data + k->modules[i - 1];

                if (strlen(have) == text_size(&name) && memcmp(have, name.at, text_size(&name)) == 0) {
                        *ret = (uint16_t)(i - 1);
                        return true;
                }
        }
        if (k->module_count == MODULES_MAX || !array_reserve(&k->modules, &k->module_capacity, k->module_count))
                return false;
        if (!append_name(&k->names, name, &k->modules[k->module_count]))
                return false;
        *ret = (uint16_t)k->module_count++;
        return true;
}

static enum status add_symbol_line(struct kallsyms *k, size_t *capacity, struct text_line line, struct error *err)
{
        struct text_line type, name, module;
        struct kallsyms_entry e = { 0 };

        if (!text_number(&line, 16, &e.addr) || !text_field(&line, &type) || text_size(&type) != 1 ||
            !text_field(&line, &name))
                return ST_OK;
        if (!e.addr || type.at[0] == 'A' || type.at[0] == 'a') /* hidden by the kernel, or an absolute value */
                return ST_OK;
        if (text_size(&name) == 5 && memcmp(name.at, "_text", 5) == 0)
                k->text_addr = e.addr;
        if (text_size(&name) == 6 && memcmp(name.at, "_etext", 6) == 0)
                k->text_end = e.addr;
        e.rank = rank_symbol_name(type.at[0], name);
        if (e.rank) {
                if (text_field(&line, &module) && text_size(&module) > 2 && module.at[0] == '[') {
                        module.at++;
                        module.end--;
                        if (!intern_module_name(k, module, &e.module))
                                return error_no_memory(err);
                }
                if (!append_name(&k->names, name, &e.name))
                        return error_set(err, ST_TOO_BIG, "the kernel's symbol names take more than %zu bytes",
                                         k->names.max);
        }
        if (!array_reserve(&k->entries, capacity, k->count))
                return error_no_memory(err);
        k->entries[k->count++] = e;
        return ST_OK;
}

static int compare_entries(const void *a, const void *b)
{
        const struct kallsyms_entry *x = a, *y = b;

        if (x->addr != y->addr)
                return x->addr < y->addr ? -1 : 1;
        if (x->rank != y->rank)
                return x->rank > y->rank ? -1 : 1;
        return x->name < y->name ? -1 : x->name > y->name;
}

/* Sort, keep the best name of each address, and merge consecutive symbols that are not code. */
static void remove_duplicate_addresses(struct kallsyms *k)
{
        size_t kept = 0;

        if (k->count)
                qsort(k->entries, k->count, sizeof *k->entries, compare_entries);
        for (size_t i = 0; i < k->count; i++) {
                if (kept && k->entries[kept - 1].addr == k->entries[i].addr)
                        continue;
                if (kept && !k->entries[kept - 1].name && !k->entries[i].name)
                        continue;
                k->entries[kept++] = k->entries[i];
        }
        k->count = kept;
}

enum status kallsyms_parse(const char *text, size_t n, struct kallsyms *ret, struct error *err)
{
        _cleanup_kallsyms_ struct kallsyms k = { 0 };
        struct text_line left = { text, text + n }, line;
        size_t capacity = 0;
        uint16_t kernel;

        buf_init(&k.names, LIMIT_AGENT_KALLSYMS_BYTES);
        if (!intern_module_name(&k, (struct text_line){ text, text }, &kernel))
                return error_no_memory(err);
        while (text_next_line(&left, &line)) {
                enum status st = add_symbol_line(&k, &capacity, line, err);

                if (st)
                        return st;
        }
        if (k.count == 0)
                return error_set(err, ST_NOT_FOUND,
                                 "the kernel shows no symbol addresses (kptr_restrict, or CAP_SYSLOG is missing)");
        remove_duplicate_addresses(&k);
        *ret = k;
        k = (struct kallsyms){ 0 };
        return ST_OK;
}

void kallsyms_deinit(struct kallsyms *k)
{
        free(k->entries);
        free(k->modules);
        buf_deinit(&k->names);
        *k = (struct kallsyms){ 0 };
}

enum status kallsyms_find(const struct kallsyms *k, uint64_t addr, struct kernel_symbol *ret)
{
        size_t next = find_lower_bound(i, 0, k->count, k->entries[i].addr <= addr);
        const struct kallsyms_entry *e;

        if (next == 0)
                return ST_NOT_FOUND;
        e = &k->entries[next - 1];
        if (!e->name || addr - e->addr > SYMBOL_SPAN_MAX)
                return ST_NOT_FOUND;
        *ret = (struct kernel_symbol){
                .name = (const char *)k->names.data + e->name,
                .module = (const char *)k->names.data + k->modules[e->module],
                .module_index = e->module,
                .addr = e->addr,
        };
        return ST_OK;
}
