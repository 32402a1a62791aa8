/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/dwarf_object.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

#define TESTED_NAMES 8192

static int64_t section_budget(const struct dwarf_sections *s, enum dwarf_section_id id, uint64_t times)
{
        return (int64_t)(s->data[id].size * times);
}

static int64_t range_entry_budget(const struct dwarf_sections *s)
{
        int64_t n = section_budget(s, DWARF_RANGES, LIMIT_DWARF_REREAD) +
                    section_budget(s, DWARF_RNGLISTS, LIMIT_DWARF_REREAD);

        return n < LIMIT_DWARF_RANGE_ENTRIES ? n : LIMIT_DWARF_RANGE_ENTRIES;
}

static void add_budgets(struct dwarf_object *o, const struct dwarf_sections *s)
{
        const struct {
                enum dwarf_budget what;
                int64_t n;
        } added[] = {
                { DWARF_BUDGET_ABBREV, section_budget(s, DWARF_ABBREV, LIMIT_DWARF_ABBREV_REREAD) },
                { DWARF_BUDGET_LINE, section_budget(s, DWARF_LINE, LIMIT_DWARF_REREAD) },
                { DWARF_BUDGET_FILES, section_budget(s, DWARF_LINE, LIMIT_DWARF_REREAD) },
                { DWARF_BUDGET_INFO, section_budget(s, DWARF_INFO, LIMIT_DWARF_REREAD) },
                { DWARF_BUDGET_RANGES, range_entry_budget(s) },
                { DWARF_BUDGET_NAMES, section_budget(s, DWARF_STR, LIMIT_DWARF_NAMES_RETEST) +
                                              section_budget(s, DWARF_INFO, LIMIT_DWARF_NAMES_RETEST) },
        };

        for (size_t i = 0; i < sizeof added / sizeof *added; i++)
                atomic_fetch_add_explicit(&o->budgets[added[i].what], added[i].n, memory_order_relaxed);
}

bool dwarf_object_allow(struct dwarf_object *o, const struct dwarf_sections *s)
{
        if (!dwarf_object_spend(o, DWARF_BUDGET_COMPANIONS, s->data[DWARF_INFO].size + s->data[DWARF_ABBREV].size))
                return false;
        add_budgets(o, s);
        return true;
}

enum status dwarf_object_from_sections(struct dwarf_sections *main, struct dwarf_sections *alt,
                                       struct dwarf_object *ret, struct error *err)
{
        enum status st;

        *ret = (struct dwarf_object){ .alt.sections = *alt };
        st = dwarf_file_init(&ret->main, main, err);
        if (!st)
                st = dwarf_file_init(&ret->alt, alt, err);
        if (!st && !main->data[DWARF_INFO].size && !main->data[DWARF_LINE].size)
                st = main->damage.code ? error_set(err, main->damage.code, "%s", main->damage.text)
                                       : error_set(err, ST_NOT_FOUND, "no DWARF sections");
        if (st) {
                dwarf_object_close(ret);
                return st;
        }
        ret->budgets[DWARF_BUDGET_ABBREV] = (int64_t)KiB(64) * LIMIT_DWARF_ABBREV_REREAD;
        ret->budgets[DWARF_BUDGET_LINE] = ret->budgets[DWARF_BUDGET_FILES] = ret->budgets[DWARF_BUDGET_INFO] =
                ret->budgets[DWARF_BUDGET_RANGES] = (int64_t)KiB(64) * LIMIT_DWARF_REREAD;
        ret->budgets[DWARF_BUDGET_COMPANIONS] = LIMIT_DWARF_COMPANION_BYTES;
        add_budgets(ret, &ret->main.sections);
        add_budgets(ret, &ret->alt.sections);
        return ST_OK;
}

enum status dwarf_object_open(const struct elf_image *img, const struct elf_image *alt, struct dwarf_object *ret,
                              struct error *err)
{
        struct dwarf_sections main_sections, alt_sections;
        enum status st = dwarf_sections_load(img, DWARF_LINKED, &main_sections, err);

        if (st)
                return st;
        dwarf_sections_init(&alt_sections, false);
        if (alt && (st = dwarf_sections_load(alt, DWARF_LINKED, &alt_sections, err))) {
                dwarf_sections_free(&main_sections);
                return st;
        }
        st = dwarf_object_from_sections(&main_sections, &alt_sections, ret, err);
        return st ? error_prefix(err, st, "cannot read the DWARF of '%s'", img->name) : ST_OK;
}

enum status dwarf_object_set_name_test(struct dwarf_object *o, bool (*can_be_demangled)(const char *name),
                                       struct error *err)
{
        o->tested_names = calloc(TESTED_NAMES, sizeof *o->tested_names);
        if (!o->tested_names)
                return error_no_memory(err);
        o->can_be_demangled = can_be_demangled;
        return ST_OK;
}

/*
 * Results are kept by a hash of the name's address, as twice the address, plus 1 for a readable name; 0 is none. A
 * later result replaces an earlier one.
 */
bool dwarf_object_test_name(struct dwarf_object *o, const char *name, bool is_kept)
{
        size_t slot = ((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15) >> 32) % TESTED_NAMES;
        uintptr_t known, key = (uintptr_t)name << 1;
        bool result;

        if (!o->can_be_demangled)
                return true;
        known = atomic_load_explicit(&o->tested_names[slot], memory_order_relaxed);
        if ((known & ~(uintptr_t)1) == key)
                return known & 1;
        result = !dwarf_object_spend(o, DWARF_BUDGET_NAMES, strlen(name)) || o->can_be_demangled(name);
        if (is_kept)
                atomic_store_explicit(&o->tested_names[slot], key | result, memory_order_relaxed);
        return result;
}

void dwarf_object_close(struct dwarf_object *o)
{
        free(o->tested_names);
        o->tested_names = NULL;
        dwarf_file_deinit(&o->main);
        dwarf_file_deinit(&o->alt);
}
