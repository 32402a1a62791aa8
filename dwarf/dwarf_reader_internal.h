/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_DWARF_READER_INTERNAL_H
#define CAIRN_DWARF_DWARF_READER_INTERNAL_H

/* State of a reader, shared by dwarf_reader.c, walk.c, names.c, types.c, folded_functions.c and dwarf_explain.c. */
#include "common/hash/hash_table.h"
#include "common/limits.h"
#include "dwarf/code.h"
#include "dwarf/dwarf_object.h"
#include "dwarf/outline.h"

#define DWARF_OTHER_CONTEXTS 512 /* a power of two */

/* Context that a DIE passes to its children. */
struct dwarf_level {
        uint32_t scope;
        uint32_t qualifier;
        uint32_t inlined;        /* inlined calls around */
        uint32_t function;       /* offset of the innermost C++ function, 0 none; 0 again inside a scope */
        uint32_t first_interval; /* of the function with code around; undefined without a scope */
};

/*
 * Names of functions in other units than the current one. With link-time optimization, and in files processed by dwz,
 * many units refer to the same function; each reader resolves its name once.
 */
struct dwarf_cached_name {
        dwarf_ref ref;
        struct dwarf_name name;
};
struct dwarf_name_cache {
        struct hash_table table;         /* by ref, to items */
        struct dwarf_cached_name *items; /* owned */
        size_t capacity;
        struct arena texts; /* of names that were composed; lives as long as the reader */
};

/*
 * Paths of files that declarations in other units refer to, by number in the line table of that unit. With dwz many
 * functions of one header are declared in one unit.
 */
struct dwarf_path_key {
        const struct dwarf_file *file;
        const char *directory; /* of the unit */
        uint64_t table, number;
};
struct dwarf_declared_path {
        struct dwarf_path_key key;
        const char *path; /* NULL: the table does not have it */
};
struct dwarf_path_cache {
        struct hash_table table;           /* by key, to items */
        struct dwarf_declared_path *items; /* owned */
        size_t capacity;
        struct dwarf_lines files; /* of the table read last: */
        const struct dwarf_file *file;
        uint64_t offset;
        struct arena texts; /* of paths; lives as long as the reader */
        struct buf scratch;
};

struct dwarf_reader {
        struct dwarf_object *object;
        struct dwarf_regions regions;
        struct dwarf_interval *bounds; /* owned; the addresses that the unit's DIE gives: sorted, disjoint */
        size_t bound_count, bound_capacity;
        bool has_bounds;        /* it gives some */
        const uint64_t *filter; /* borrowed; addresses to keep, ascending; NULL: all */
        size_t filter_count;
        struct dwarf_context main;                         /* the unit that is read */
        struct dwarf_context lone;                         /* for line tables without a unit */
        struct dwarf_context types;                        /* the type unit entered last */
        struct dwarf_context others[DWARF_OTHER_CONTEXTS]; /* units that it refers to */
        size_t other_bytes;                                /* of .debug_abbrev, in them */
        struct dwarf_outline outline;                      /* of the main unit */
        dwarf_ref *refs;                                   /* owned; for each name of the unit, the DIE to start at */
        struct hash_table origins; /* from references of inlined calls to the unit's names; the key is in refs */
        size_t ref_capacity;
        uint32_t *by_ref; /* owned; the names in the order of their DIEs */
        size_t by_ref_capacity;
        struct dwarf_name_cache name_cache;
        struct dwarf_path_cache path_cache;
        struct dwarf_outline full_outline; /* of the unit needed last, for names in place of linkage names */
        enum status names_damage;          /* why some of the unit's names are missing */
        struct dwarf_level levels[LIMIT_DIE_DEPTH];
};

/** Whether the file lives as long as the reader; that of a companion does not. */
static inline bool dwarf_reader_owns_file(const struct dwarf_reader *r, const struct dwarf_file *file)
{
        return file == &r->object->main || file == &r->object->alt;
}

/**
 * Walk the DIEs of a unit and build its outline; with code also its scopes and intervals.
 * @return ST_BAD_DATA at a malformed DIE; results up to there are kept.
 */
enum status dwarf_walk(struct dwarf_reader *r, const struct dwarf_context *x, struct dwarf_outline *outline,
                       struct dwarf_code *code) MUST_CHECK;

/** Whether an address of the filter is in [start, end). */
bool dwarf_reader_wants(const struct dwarf_reader *r, uint64_t start, uint64_t end);

/** Forget the origins of the previous unit. */
void dwarf_walk_reset(struct dwarf_reader *r);

/**
 * Of identical functions folded by the linker, keep the intervals of the one whose line rows were kept and drop the
 * others.
 */
enum status dwarf_resolve_folded_functions(struct dwarf_reader *r, struct dwarf_code *code) MUST_CHECK;

/** Mark the names used by the scopes of the intervals and their parents. */
void dwarf_address_filter_mark_names(const struct dwarf_code *code, bool *marks);

void dwarf_name_cache_init(struct dwarf_name_cache *k);
void dwarf_name_cache_deinit(struct dwarf_name_cache *k);
void dwarf_path_cache_init(struct dwarf_path_cache *k);
void dwarf_path_cache_deinit(struct dwarf_path_cache *k);

/** Resolve all names of the unit; with an address filter, only the names that are needed. */
enum status dwarf_names_resolve(struct dwarf_reader *r, struct dwarf_code *code) MUST_CHECK;

/**
 * Switch from the skeleton in r->main to its split unit. The companion is owned by the result.
 * @return ST_OK, also when the split unit is not found; ST_BAD_DATA or ST_TOO_BIG when it is malformed. In both cases
 *          code->misses_companion is set and r->main is still the skeleton. ST_NO_MEMORY.
 */
enum status dwarf_reader_enter_companion(struct dwarf_reader *r, struct dwarf_code *code) MUST_CHECK;
/** Set r->main up for the companion that the code owns, as it was when it was read; r->main is its skeleton. */
enum status dwarf_reader_return_to_companion(struct dwarf_reader *r, const struct dwarf_code *code) MUST_CHECK;
/** Drop all references to companions, so that their owner may close them. */
void dwarf_reader_forget_companions(struct dwarf_reader *r);

/**
 * The name of the type unit with a signature that a unit of this file refers to, borrowed from the file; NULL if it is
 * not found.
 */
const char *dwarf_reader_type_name(struct dwarf_reader *r, struct dwarf_file *file, uint64_t signature);

/** The context of the unit that contains a DIE, entered; NULL when there is none or it is malformed. */
struct dwarf_context *dwarf_reader_context(struct dwarf_reader *r, dwarf_ref ref);

#endif
