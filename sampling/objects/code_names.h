/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_CODE_NAMES_H
#define CAIRN_SAMPLING_OBJECTS_CODE_NAMES_H

/**
 * @file
 * Interval map from addresses to names of code generated at run time.
 *
 * Ranges are added in the order in which code was generated. A later range
 * overrides earlier ones where they overlap; a range without a name removes
 * code. Overridden ranges are discarded, so memory follows live code, not
 * all code ever generated.
 *
 * Names come from untrusted processes: one map holds at most
 * LIMIT_AGENT_JIT_PROCESS_BYTES, and the maps that share a budget hold at most
 * its bytes in total.
 *
 * Threads: one thread at a time, for all maps of a budget.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/memory/buf.h"

struct code_budget {
        size_t used, max; /* bytes, estimated per range */
};

#define CODE_NAME_NONE UINT32_MAX

struct named_range {
        uint64_t start, end;
        uint32_t name; /* offset into names, or CODE_NAME_NONE */
        uint32_t tag;  /* value of the owner */
};

struct code_names {
        struct code_budget *budget; /* shared by several maps; borrowed; NULL: none */
        struct named_range *ranges; /* in effect: ascending, no overlap */
        size_t range_count;
        struct named_range *pending; /* added since the last lookup, in order */
        size_t pending_count, pending_capacity;
        struct buf names;
        bool keeps_names; /* names are not compacted: the owner stores offsets into them */
        size_t charged;   /* to the budget */
};

void code_names_init(struct code_names *c, struct code_budget *budget);
void code_names_deinit(struct code_names *c);

/** Append a name: n bytes and a NUL. ST_TOO_BIG, ST_NO_MEMORY. */
enum status code_names_add_text(struct code_names *c, const char *name, size_t n, uint32_t *ret,
                                struct error *err) MUST_CHECK;

/**
 * Name the code in [start, end), overriding earlier ranges.
 * @return ST_OK; ST_TOO_BIG past a limit; ST_NO_MEMORY.
 */
enum status code_names_add(struct code_names *c, uint64_t start, uint64_t end, uint32_t name, uint32_t tag,
                           struct error *err) MUST_CHECK;

/** Charge bytes that the owner stores along with the names; refunded by code_names_deinit(). */
enum status code_names_charge(struct code_names *c, size_t bytes, struct error *err) MUST_CHECK;

/** The range that holds addr, borrowed until the next call; NULL when there is no code. */
const struct named_range *code_names_find(struct code_names *c, uint64_t addr);

/** The name of a range returned by code_names_find(); borrowed likewise. */
static inline const char *code_names_get_text(const struct code_names *c, const struct named_range *s)
{
        return (const char *)c->names.data + s->name;
}

#endif
