/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DWARF_CHAINS_H
#define CAIRN_SYMBOLIZER_DWARF_CHAINS_H

/**
 * @file
 * The chains of frames of one unit, numbered within it, with what their frames
 * name. All that can be done about them before units are put together is done
 * here, since that is done one unit at a time: texts are made and hashed, and
 * equal chains are one.
 *
 * Threads: one at a time.
 */
#include "common/buf.h"
#include "dwarf/code.h"
#include "symbolizer/symbol_table_builder.h"

#define DWARF_NO_FILE UINT32_MAX

/** A text that frames name. */
struct dwarf_text {
        const char *borrowed; /* NULL: it is in the chains' texts */
        size_t offset;        /* there */
        uint32_t size;
        bool is_linkage_name;
        uint64_t hash;        /* symbol_text_hash() */
};
struct dwarf_text_list {
        struct dwarf_text *items; /* owned; in the order of their first frames */
        size_t count, capacity;
        uint32_t *numbers;        /* owned; by the unit's number of a name or file */
        size_t number_capacity;
};

/** What a chain is made of. */
struct dwarf_place {
        uint32_t scope, file, line; /* DWARF_NO_SCOPE, DWARF_NO_FILE and 0 where unknown */
};

struct dwarf_chains {
        struct symbol_chain *items;        /* owned */
        struct dwarf_place *places;        /* owned; by chain */
        size_t count, capacity, place_capacity;
        struct symbol_table_frame *frames; /* owned; function and file are indices of the texts below, or UINT32_MAX */
        size_t frame_count, frame_capacity;
        struct dwarf_text_list functions, files;
        struct buf texts, scratch;
        uint64_t *slots;                   /* owned; finds the chain of a place: hash, then number + 1; 0 is free */
        size_t slot_count, slot_capacity;  /* in use: so few that a small unit's are in the cache */
        bool failed; /* without memory */
};

void dwarf_chains_init(struct dwarf_chains *c);
void dwarf_chains_deinit(struct dwarf_chains *c);

/** Begin with the names and files of a unit, in place of another. @return false without memory. */
bool dwarf_chains_begin(struct dwarf_chains *c, const struct dwarf_code *code) MUST_CHECK;

/** The number of the chain of a place; UINT32_MAX without memory. */
uint32_t dwarf_chains_number(struct dwarf_chains *c, const struct dwarf_code *code, struct dwarf_place place);

static inline const char *dwarf_text_of(const struct dwarf_chains *c, const struct dwarf_text *t)
{
        return t->borrowed ? t->borrowed : (const char *)c->texts.data + t->offset;
}

/**
 * A plain name as tables have it, behind the function it stands in.
 * @param text unused or deinitialized; owns the result where one had to be made.  @return "" without any.
 */
const char *dwarf_plain_name(const struct dwarf_name *n, struct buf *text);

#endif
