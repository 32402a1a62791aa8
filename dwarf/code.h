/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_CODE_H
#define CAIRN_DWARF_CODE_H

/**
 * @file
 * The code described by one unit: its functions and inlined calls as scopes with names, the address ranges of each
 * scope, and its line rows. Everything else in the unit is skipped.
 *
 * Threads: a reader and its results belong to one thread at a time; any number of readers work on one object.
 */
#include "common/memory/arena.h"
#include "dwarf/line.h"

#define DWARF_NO_SCOPE UINT32_MAX

struct dwarf_scope {
        uint32_t parent;                 /* the scope this one is inlined into, DWARF_NO_SCOPE for a function */
        uint32_t name;                   /* of the unit's names */
        uint32_t call_file;              /* of the unit's line table, UINT32_MAX unknown */
        uint32_t call_line, call_column; /* 0 unknown */
        uint32_t call_discriminator;     /* the same */
        uint32_t die;                    /* its offset in .debug_info, which never exceeds 4 GiB */
        uint64_t low_pc;                 /* set if lines.wants_positions; UINT64_MAX: it has none, but maybe ranges */
};

/** Addresses of a scope; those of a function are adjacent. Where intervals overlap, the greater level is the inner one,
 * else the later scope. */
struct dwarf_interval {
        uint64_t start, end;
        uint32_t scope, level;
};

/**
 * The name of a function. The linkage name is used if any DIE of its chain of abstract origins and specifications has
 * one that is readable: not mangled, or demangled by someone. Otherwise the plain name is used, for C++ and in place of
 * a linkage name prefixed with the enclosing namespaces, modules, classes and function. A linkage name that is not
 * readable is used if there is no other. Both are NULL for a nameless function.
 *
 * The file and the line of its declaration each come from the first DIE of the chain that has one, so a definition has
 * precedence over a declaration in a class.
 */
struct dwarf_name {
        const char *linkage, *plain; /* borrowed from the object or from the result */
        const char *around;          /* the linkage name of the function that encloses a plain name, or NULL */
        const char *start_path;      /* file of the declaration if it is in another unit's line table, else NULL; lives
                                      * as long as the reader. "": not given (Go's inlined functions); the file of the
                                      * code is used */
        uint32_t start_file;         /* if start_path is NULL: number in this unit's line table, UINT32_MAX unknown */
        uint32_t start_line;         /* 0 unknown */
        bool is_bare;                /* the plain name is DW_AT_name alone, or the linkage name repeats it */
};

/** Whether a name has the form of mangled C++, Rust or D. */
bool dwarf_is_mangled_name(const char *name);

/** Line rows at addresses that the DIE of the unit does not give. */
struct dwarf_stray {
        uint64_t start, end;
        uint64_t after; /* end of the unit's addresses before the rows; UINT64_MAX: the unit has a sequence of rows that
                         * starts outside of its addresses, so that these lack some of its code */
};

struct dwarf_code {
        struct dwarf_lines lines;
        struct dwarf_scope *scopes; /* a parent before its children */
        size_t scope_count, scope_capacity;
        struct dwarf_interval *intervals;
        size_t interval_count, interval_capacity;
        struct dwarf_name *names;
        size_t name_count, name_capacity;
        struct dwarf_stray *strays; /* owned; ascending, disjoint; with an address filter those that cover one */
        size_t stray_count, stray_capacity;
        size_t function_count;             /* scopes that are not inlined */
        uint64_t line_offset;              /* of the table in .debug_line, UINT64_MAX without one */
        enum status damage;                /* ST_OK, or the reason why part of the unit is missing */
        struct dwarf_companion *companion; /* owned: the split unit of a skeleton, or NULL */
        bool misses_companion;             /* the unit has a companion that was not found; only the lines are read */
        struct arena texts;
};

void dwarf_code_init(struct dwarf_code *c);
void dwarf_code_deinit(struct dwarf_code *c);

struct dwarf_reader;

/**
 * @param code  the address ranges of the executable sections; borrowed, like o, until dwarf_reader_destroy().
 * @param ret   owned.
 */
enum status dwarf_reader_create(struct dwarf_object *o, struct dwarf_regions code, struct dwarf_reader **ret,
                                struct error *err) MUST_CHECK;
void dwarf_reader_destroy(struct dwarf_reader *r);

/**
 * Restrict units and line tables read from here on to these addresses: rows and intervals that cover none of them are
 * dropped, except for intervals of functions that cover one, and calls inlined into other functions are not read.
 * function_count is not affected.
 * @param addresses ascending; borrowed until dwarf_reader_destroy(); NULL removes the filter.
 */
void dwarf_reader_set_address_filter(struct dwarf_reader *r, const uint64_t *addresses, size_t count);

/**
 * Read unit i of the object's main file and replace the content of code.
 * Data that cannot be read is left out, and code->damage gives the reason. Type units and partial units give an empty
 * result.
 * @return ST_OK also with damage; ST_NO_MEMORY; ST_TOO_BIG past LIMIT_RANGES_PER_OBJECT.
 */
enum status dwarf_reader_unit(struct dwarf_reader *r, size_t i, struct dwarf_code *code) MUST_CHECK;

/** Read only the line table of unit i. Returns as above. */
enum status dwarf_reader_unit_lines(struct dwarf_reader *r, size_t i, struct dwarf_code *code) MUST_CHECK;

/** Read a line table that no unit refers to, by its offset in .debug_line. Returns as above. */
enum status dwarf_reader_lines(struct dwarf_reader *r, uint64_t offset, struct dwarf_code *code) MUST_CHECK;

#endif
