/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_KALLSYMS_H
#define CAIRN_AGENT_KALLSYMS_H

/**
 * @file
 * The running kernel's own symbols, from the text of /proc/kallsyms.
 *
 * A symbol covers [its address, the address of the next symbol), of whatever
 * kind. Of several names for one address the most telling one is kept: global
 * before local before weak, then fewer leading underscores, then the longer.
 * Threads: any number of readers.
 * Source: kernel/kallsyms.c, s_show(); nm(1) for the type letters.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct kallsyms_entry {
        uint64_t addr;
        uint32_t name;   /* offset into names; 0: a symbol that is no code */
        uint16_t module; /* index into modules; 0: the kernel itself */
        uint16_t rank;
};

struct kallsyms {
        struct kallsyms_entry *entries; /* ascending, addresses unique */
        size_t count;
        struct buf names;               /* NUL-terminated names and module names, byte 0 empty */
        uint32_t *modules;              /* offsets into names */
        size_t module_count;
        uint64_t text_addr;             /* of _text, 0 when absent */
};

struct kernel_symbol {
        const char *name;   /* borrowed from the table */
        const char *module; /* "" for the kernel itself */
        uint16_t module_index; /* below module_count; 0 for the kernel itself */
        uint64_t addr;
};

/**
 * Parse the whole text. Lines that are no symbol are skipped.
 * @param ret  owned, free with kallsyms_deinit(); untouched on failure.
 * @return ST_OK; ST_NOT_FOUND when every address is zero (the kernel hides
 *         them: kptr_restrict, or no CAP_SYSLOG) or there is no symbol.
 */
enum status kallsyms_parse(const char *text, size_t n, struct kallsyms *ret, struct error *err) MUST_CHECK;
void kallsyms_deinit(struct kallsyms *k);
#define _cleanup_kallsyms_ _cleanup_(kallsyms_deinit)

/** ST_OK; ST_NOT_FOUND when no code symbol covers addr. */
enum status kallsyms_find(const struct kallsyms *k, uint64_t addr, struct kernel_symbol *ret) MUST_CHECK;

#endif
