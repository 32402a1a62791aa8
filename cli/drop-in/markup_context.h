/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_MARKUP_CONTEXT_H
#define CAIRN_CLI_DROP_IN_MARKUP_CONTEXT_H

/**
 * @file
 * The address space that a log in symbolizer markup describes: modules, and where they are mapped.
 *
 * Threads: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "cli/drop-in/markup_line.h"
#include "common/build_id.h"
#include "common/error.h"

struct markup_module {
        uint64_t id;
        char *name; /* owned */
        struct build_id build_id;
};

struct markup_mmap {
        uint64_t address, size;
        uint64_t module_address; /* of its start in the module */
        size_t module;           /* in the context's list */
        char mode[4];            /* of r, w, x */
};

struct markup_context {
        struct markup_module *modules; /* owned; in the order of the log */
        size_t module_count, module_capacity;
        struct markup_mmap *mmaps; /* owned; sorted by address, without overlaps */
        size_t mmap_count, mmap_capacity;
};

/** Forget everything; the context is empty, as one of zeros, and owns nothing. */
void markup_context_clear(struct markup_context *c);

/** The position of a module in the list, or module_count. */
size_t markup_context_find_module(const struct markup_context *c, uint64_t id);

/** @return ST_TOO_BIG past LIMIT_MARKUP_MODULES; ST_NO_MEMORY. */
enum status markup_context_add_module(struct markup_context *c, uint64_t id, const struct markup_span *name,
                                      const struct build_id *build_id, struct error *err) MUST_CHECK;

/** An mmap that overlaps this one, or NULL. */
const struct markup_mmap *markup_context_overlap(const struct markup_context *c, const struct markup_mmap *m);

/** @param m  overlaps none. @return ST_TOO_BIG past LIMIT_MARKUP_MMAPS; ST_NO_MEMORY. */
enum status markup_context_add_mmap(struct markup_context *c, const struct markup_mmap *m,
                                    struct error *err) MUST_CHECK;

/** The mmap that has an address, or NULL. */
const struct markup_mmap *markup_context_at(const struct markup_context *c, uint64_t address);

#endif
