/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/dwarf_object.h"

#include "common/limits.h"

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

void dwarf_object_close(struct dwarf_object *o)
{
        dwarf_file_deinit(&o->main);
        dwarf_file_deinit(&o->alt);
}
