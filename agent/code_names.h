/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_CODE_NAMES_H
#define CAIRN_AGENT_CODE_NAMES_H

/**
 * @file
 * Which name holds at an address where code comes and goes.
 *
 * Symbols are added in the order in which code was made; a later one overrides
 * earlier ones where they overlap, and one without a name says that there is no
 * code any more. Only what still holds is kept, so memory follows the code that
 * lives and not all that ever did.
 *
 * The bytes are strangers': one set holds LIMIT_AGENT_JIT_PROCESS_BYTES at most,
 * and all that share a budget hold its bytes together.
 * Threads: one thread at a time, for all sets of a budget.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct code_budget {
        size_t used, max; /* bytes, reckoned per symbol */
};

#define CODE_NAME_NONE UINT32_MAX

struct code_symbol {
        uint64_t start, end;
        uint32_t name; /* offset into names, or CODE_NAME_NONE */
        uint32_t tag;  /* the owner's */
};

struct code_names {
        struct code_budget *budget;  /* borrowed; NULL: none */
        struct code_symbol *ranges;  /* what holds: ascending, no overlap */
        size_t range_count;
        struct code_symbol *pending; /* added since, in order */
        size_t pending_count, pending_capacity;
        struct buf names;
        bool keeps_names;            /* the owner has offsets of its own */
        size_t charged;              /* to the budget */
};

void code_names_init(struct code_names *c, struct code_budget *budget);
void code_names_deinit(struct code_names *c);

/** Keep a name: the n bytes and a NUL. ST_TOO_BIG, ST_NO_MEMORY. */
enum status code_names_text(struct code_names *c, const char *name, size_t n, uint32_t *ret, struct error *err) MUST_CHECK;

/**
 * [start, end) is code of that name from now on.
 * @return ST_OK; ST_TOO_BIG past a bound; ST_NO_MEMORY.
 */
enum status code_names_add(struct code_names *c, uint64_t start, uint64_t end, uint32_t name, uint32_t tag,
                           struct error *err) MUST_CHECK;

/** Charge bytes that the owner keeps next to the names; they are given back with the rest. */
enum status code_names_charge(struct code_names *c, size_t bytes, struct error *err) MUST_CHECK;

/** What holds at addr, borrowed until the next call; NULL when there is no code. */
const struct code_symbol *code_names_find(struct code_names *c, uint64_t addr);

/** The text of a symbol that code_names_find() returned; borrowed as that. */
static inline const char *code_names_name(const struct code_names *c, const struct code_symbol *s)
{
        return (const char *)c->names.data + s->name;
}

#endif
