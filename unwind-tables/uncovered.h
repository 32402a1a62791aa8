/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_UNCOVERED_H
#define CAIRN_UNWIND_TABLES_UNCOVERED_H

/**
 * @file
 * Rules for code that has no CFI but is known by other signs: trampolines that
 * return from signal handlers (by their instructions, in files that need no
 * other library or have Go's runtime; musl writes no CFI for them), and the program's entry, which
 * nobody called.
 */
#include "unwind-tables/cfi_source.h"

struct uncovered_range {
        uint64_t start, end;
        struct unwind_rule rule;
};

struct uncovered {
        struct uncovered_range *items; /* owned; by start, disjoint, outside of every FDE */
        size_t count;
        uint64_t trampolines, entries;
};

/** Is there Go's runtime in it? */
bool uncovered_is_go(const struct elf_image *img);

/**
 * @param is_go uncovered_is_go().
 * @param ret   zeroed; free with uncovered_deinit(), also on failure. At most LIMIT_UNWIND_UNCOVERED ranges.
 */
enum status uncovered_find(const struct cfi_source *source, const struct elf_image *img, bool is_go,
                           struct uncovered *ret, struct error *err) MUST_CHECK;
void uncovered_deinit(struct uncovered *u);
#define _cleanup_uncovered_ _cleanup_(uncovered_deinit)

#endif
