/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DWARF_CHAINS_H
#define CAIRN_SYMBOLIZER_SOURCES_DWARF_CHAINS_H

/**
 * @file
 * Chains of frames of one compilation unit, numbered within the unit, with the
 * texts that their frames refer to. Units are merged into the table one at a
 * time; therefore everything that needs only the unit is done here: texts are
 * built and hashed, and equal chains are interned.
 *
 * Threads: one at a time.
 */
#include "common/memory/buf.h"
#include "dwarf/code.h"
#include "symbolizer/table/symbol_table_builder.h"

#define DWARF_NO_FILE UINT32_MAX

/** A function name or file path that frames refer to. */
struct dwarf_text {
        const char *borrowed; /* NULL: it is in dwarf_chains.texts */
        size_t offset;        /* there */
        uint32_t size;
        bool is_linkage_name;
        uint32_t start_file;    /* of a function's declaration: index of a file, UINT32_MAX unknown */
        uint32_t start_line;    /* 0 unknown */
        const char *start_path; /* borrowed; its file, until a frame has it; NULL none */
        uint64_t hash;          /* hash_symbol_text() */
};
struct dwarf_text_list {
        struct dwarf_text *items; /* owned; in the order of their first frames */
        size_t count, capacity;
        uint32_t *numbers; /* owned; by the unit's number of a name or file */
        size_t number_capacity;
};

/** Key of a chain: innermost scope and line row. */
struct dwarf_place {
        uint32_t scope, file, line; /* DWARF_NO_SCOPE, DWARF_NO_FILE and 0 where unknown */
};

/** The innermost frame of a place whose scope has an entry: the row's position, and that entry. */
struct dwarf_entry_place {
        uint32_t scope, line;
};

struct dwarf_chains {
        struct symbol_chain *items; /* owned */
        struct dwarf_place *places; /* owned; by chain */
        size_t count, capacity, place_capacity;
        struct symbol_table_frame *frames; /* owned; function and file are indices of the texts below, or UINT32_MAX */
        size_t frame_count, frame_capacity;
        struct dwarf_entry_place *entries; /* owned; of the innermost frames */
        size_t entry_count, entry_capacity;
        struct dwarf_text_list functions, files;
        struct buf texts, scratch;
        uint64_t *slots;                  /* owned; hash table of chains by place: hash, then number + 1; 0 is free */
        size_t slot_count, slot_capacity; /* slot_count of them in use, few enough for the cache in small units */
        bool failed;                      /* without memory */
};

void dwarf_chains_init(struct dwarf_chains *c);
void dwarf_chains_deinit(struct dwarf_chains *c);

/** Start a new unit, discarding the previous one. @return false without memory. */
bool dwarf_chains_begin(struct dwarf_chains *c, const struct dwarf_code *code) MUST_CHECK;

/**
 * The positions that the lines of frames number if code->lines.wants_positions: those of the line rows, then one for
 * the call of each scope, then those of the entries.
 */
size_t dwarf_chains_position_count(const struct dwarf_chains *c, const struct dwarf_code *code);
struct symbol_position dwarf_chains_position(const struct dwarf_chains *c, const struct dwarf_code *code,
                                             size_t number);

/** Number of the chain of a place, added if new; UINT32_MAX without memory. */
uint32_t dwarf_chains_intern(struct dwarf_chains *c, const struct dwarf_code *code, struct dwarf_place place);

static inline const char *dwarf_text_of(const struct dwarf_chains *c, const struct dwarf_text *t)
{
        return t->borrowed ? t->borrowed : (const char *)c->texts.data + t->offset;
}

/**
 * A plain name, qualified by the enclosing function ("outer::inner").
 * @param text unused or deinitialized; owns the result when it had to be composed.  @return "" without any.
 */
const char *dwarf_make_plain_name(const struct dwarf_name *n, struct buf *text);

#endif
