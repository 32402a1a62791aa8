/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_READER_H
#define CAIRN_DWARF_READER_H

/* The inside of a reader: between reader.c, reader_companion.c, reader_types.c, walk.c, origins.c, folded.c and names.c. */
#include "common/limits.h"
#include "dwarf/code.h"
#include "dwarf/known_names.h"
#include "dwarf/outline.h"

#define DWARF_OTHER_CONTEXTS 512 /* a power of two */

/* What a DIE passes on to its children. */
struct dwarf_level {
        uint32_t scope;
        uint32_t qualifier;
        uint32_t inlined; /* inlined calls around */
        uint32_t function; /* offset of the C++ function that is innermost, 0 none; but inside of a scope it is 0 again */
};

/* From origins to the unit's names. Emptied by counting the generation up. */
struct dwarf_origin {
        dwarf_ref ref;
        uint32_t name;
        uint32_t generation;
};
struct dwarf_origins {
        struct dwarf_origin *slots; /* owned */
        size_t slot_count, count;
        uint32_t generation;
};

struct dwarf_reader {
        struct dwarf_object *object;
        struct dwarf_regions regions;
        const uint64_t *wanted;     /* borrowed; addresses, ascending; NULL: all */
        size_t wanted_count;
        struct dwarf_context main;  /* the unit that is read */
        struct dwarf_context lone;  /* for line tables without a unit */
        struct dwarf_context types; /* the type unit that was looked at last */
        struct dwarf_context others[DWARF_OTHER_CONTEXTS]; /* units that it refers to */
        size_t other_bytes;         /* of .debug_abbrev, in them */
        struct dwarf_outline outline; /* of the main unit */
        struct dwarf_origins origins;
        dwarf_ref *refs;            /* owned; of the unit's names, the DIE to begin with */
        size_t ref_capacity;
        uint32_t *by_ref;           /* owned; the names in the order of their DIEs */
        size_t by_ref_capacity;
        struct dwarf_known_names known_names; /* of functions in others */
        enum status names_damage;   /* why some of the unit's names are missing */
        struct dwarf_level levels[LIMIT_DIE_DEPTH];
};

/**
 * Walk the DIEs of a unit and make its outline; with code also its scopes and intervals.
 * @return ST_BAD_DATA at a DIE that cannot be read, with what came before it kept.
 */
enum status dwarf_walk(struct dwarf_reader *r, const struct dwarf_context *x, struct dwarf_outline *outline,
                       struct dwarf_code *code) MUST_CHECK;

/** The number of the name that an origin leads to, a new one when it is the first time; UINT32_MAX without memory. */
uint32_t dwarf_origins_name(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref);
/** A name of its own, for a function. */
uint32_t dwarf_origins_add(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref);
void dwarf_origins_clear(struct dwarf_origins *o);

/**
 * Of functions that the linker made one keep the addresses of that whose line
 * rows were kept, and leave those of the others out.
 */
enum status dwarf_folded_choose(struct dwarf_reader *r, struct dwarf_code *code) MUST_CHECK;

/** With wanted addresses, leave out the rows and the intervals that cover none of them. */
void dwarf_wanted_keep_rows(const struct dwarf_reader *r, struct dwarf_code *code);
void dwarf_wanted_keep_intervals(const struct dwarf_reader *r, struct dwarf_code *code);
/** Mark the names of the intervals' scopes and of those around them. */
void dwarf_wanted_mark_names(const struct dwarf_code *code, bool *marks);

/** Find the texts of all names of the unit; with wanted addresses, of those that they need. */
enum status dwarf_names_resolve(struct dwarf_reader *r, struct dwarf_code *code) MUST_CHECK;

/**
 * Go on from the skeleton in r->main to its other half, which the result then owns.
 * @return ST_OK also when nobody has it; ST_BAD_DATA, ST_TOO_BIG when it is
 *         broken; in both cases code->misses_companion is set and r->main is the skeleton as before. ST_NO_MEMORY.
 */
enum status dwarf_reader_enter_companion(struct dwarf_reader *r, struct dwarf_code *code) MUST_CHECK;
/** Set r->main up for the companion that the code owns, as it was when it was read; r->main is its skeleton. */
enum status dwarf_reader_return_to_companion(struct dwarf_reader *r, const struct dwarf_code *code) MUST_CHECK;
/** Keep nothing of companions: who owns one may close it now. */
void dwarf_reader_forget_companions(struct dwarf_reader *r);

/**
 * The name of the type with a signature that a unit of this file refers to,
 * borrowed as the file is; NULL when nobody has it.
 */
const char *dwarf_reader_type_name(struct dwarf_reader *r, struct dwarf_file *file, uint64_t signature);

/** The unit that holds a DIE, ready to be read; NULL when there is none or it is broken. */
struct dwarf_context *dwarf_reader_context(struct dwarf_reader *r, dwarf_ref ref);

#endif
