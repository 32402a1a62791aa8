/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_DWARF_OBJECT_H
#define CAIRN_DWARF_DWARF_OBJECT_H

/**
 * @file
 * The entry point: the DWARF of one file, with its supplementary file and the source of its split units.
 *
 * Open an object, create a reader per thread (dwarf/code.h), read units.
 *
 * Threads: an object is immutable except for its budgets, which are atomic, and the caches of its files; any number of
 * readers may use it.
 */
#include <stdatomic.h>

#include "dwarf/dwarf_file.h"
#include "dwarf/split_companion.h"

/**
 * Data shared by several units is read once for each of them. A budget bounds the total, so that a crafted file cannot
 * multiply it.
 */
enum dwarf_budget {
        DWARF_BUDGET_ABBREV,     /* bytes of abbreviation tables */
        DWARF_BUDGET_LINE,       /* bytes of line programs */
        DWARF_BUDGET_FILES,      /* bytes of files of line tables, read again for declarations in other units */
        DWARF_BUDGET_RANGES,     /* entries of range lists */
        DWARF_BUDGET_INFO,       /* bytes of units read again for the names of scopes */
        DWARF_BUDGET_NAMES,      /* bytes of linkage names tested */
        DWARF_BUDGET_COMPANIONS, /* bytes of units in companions, charged each time one is opened */
        DWARF_BUDGET_COUNT,
};

struct dwarf_object {
        struct dwarf_file main, alt; /* alt: all empty without one */
        struct dwarf_companions companions;
        bool has_relative_paths; /* set before reading: paths are not joined with the compilation directory */
        _Atomic int64_t budgets[DWARF_BUDGET_COUNT]; /* remaining */
        bool (*can_be_demangled)(const char *name);  /* or NULL */
        _Atomic uintptr_t *tested_names;             /* its results; owned; NULL without it */
};

/**
 * @param alt the dwz supplementary file of img, or NULL. Both stay open until dwarf_object_close().
 * @param ret must not be copied.
 * @return ST_NOT_FOUND without .debug_info and .debug_line; the reason when these
 *         cannot be read; ST_NO_MEMORY. Other sections and units that cannot be
 *         read are left out (damage of sections and units).
 */
enum status dwarf_object_open(const struct elf_image *img, const struct elf_image *alt, struct dwarf_object *ret,
                              struct error *err) MUST_CHECK;
/** As above, from sections that are taken, also on failure. */
enum status dwarf_object_from_sections(struct dwarf_sections *main, struct dwarf_sections *alt,
                                       struct dwarf_object *ret, struct error *err) MUST_CHECK;
void dwarf_object_close(struct dwarf_object *o);

/**
 * Set the test whether a linkage name is readable; without it all that dwarf_is_mangled_name() knows are. Before
 * readers are created.
 * @param can_be_demangled may be called for any name that dwarf_is_mangled_name() knows, by several threads.
 * @return ST_NO_MEMORY.
 */
enum status dwarf_object_set_name_test(struct dwarf_object *o, bool (*can_be_demangled)(const char *name),
                                       struct error *err) MUST_CHECK;

/** Whether a linkage name that dwarf_is_mangled_name() knows is readable. @param is_kept it is in main or alt. */
bool dwarf_object_test_name(struct dwarf_object *o, const char *name, bool is_kept);

/** Add the allowance for a companion's sections to the budgets. @return false past DWARF_BUDGET_COMPANIONS. */
bool dwarf_object_allow(struct dwarf_object *o, const struct dwarf_sections *s);

/** Whether the unit may hold code: by its header, it is neither a type unit nor a partial unit. */
static inline bool dwarf_unit_has_code(const struct dwarf_unit *u)
{
        return u->type != DW_UT_type && u->type != DW_UT_split_type && u->type != DW_UT_partial;
}

/** Charge n to a budget; false when it is exhausted. */
static inline bool dwarf_object_spend(struct dwarf_object *o, enum dwarf_budget what, uint64_t n)
{
        return n <= INT64_MAX &&
               atomic_fetch_sub_explicit(&o->budgets[what], (int64_t)n, memory_order_relaxed) >= (int64_t)n;
}

#endif
