/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_KALLSYMS_H
#define CAIRN_SAMPLING_PROCESSES_KALLSYMS_H

/**
 * @file
 * Symbols of the running kernel, from the text of /proc/kallsyms.
 *
 * A symbol covers the addresses up to the next symbol of any kind. Of several
 * names for one address the preferred one is global before local before weak,
 * then with fewer leading underscores, then longer.
 *
 * Threads: any number of readers.
 * Source: kernel/kallsyms.c, s_show(); nm(1) for the type letters.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/memory/buf.h"

struct kallsyms_entry {
        uint64_t addr;
        uint32_t name;   /* offset into names; 0: not code */
        uint16_t module; /* index into modules; 0: the kernel itself */
        uint16_t rank;
};

struct kallsyms {
        struct kallsyms_entry *entries; /* ascending, addresses unique */
        size_t count;
        struct buf names;  /* NUL-terminated symbol and module names, byte 0 empty */
        uint32_t *modules; /* offsets into names */
        size_t module_count, module_capacity;
        uint64_t text_addr, text_end; /* of _text and _etext, 0 when absent */
};

struct kernel_symbol {
        const char *name;      /* borrowed from the table */
        const char *module;    /* "" for the kernel itself */
        uint16_t module_index; /* below module_count; 0 for the kernel itself */
        uint64_t addr;
};

/**
 * Parse the whole text. Malformed lines are skipped.
 * @param ret  owned, free with kallsyms_deinit(); untouched on failure.
 * @return ST_OK; ST_NOT_FOUND without symbols, or when all addresses are zero: hidden by the
 *         kernel (kptr_restrict, or no CAP_SYSLOG).
 */
enum status kallsyms_parse(const char *text, size_t n, struct kallsyms *ret, struct error *err) MUST_CHECK;
void kallsyms_deinit(struct kallsyms *k);
#define _cleanup_kallsyms_ _cleanup_(kallsyms_deinit)

/** ST_OK; ST_NOT_FOUND when no code symbol covers addr. */
enum status kallsyms_find(const struct kallsyms *k, uint64_t addr, struct kernel_symbol *ret) MUST_CHECK;

#endif
