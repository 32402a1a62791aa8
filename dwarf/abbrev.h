/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_ABBREV_H
#define CAIRN_DWARF_ABBREV_H

/**
 * @file
 * Abbreviation tables, compiled into plans for decoding the DIEs that use them.
 *
 * A plan is a list of steps: skip a number of bytes, then read one value. Consecutive unused values of fixed size are
 * folded into one skip, so most DIEs are passed with one or two additions. Each abbreviation has a skip plan, which
 * finds the end of the DIE and its sibling. Abbreviations of functions, inlined calls, scopes and units also have a
 * full plan, which reads every value that has a role.
 *
 * Source: DWARF 5, 7.5.3.
 */
#include "common/error.h"
#include "dwarf/form.h"
#include "dwarf/sections.h"

/** The purpose an attribute is read for. */
enum dwarf_role {
        DWARF_ROLE_NONE,
        DWARF_ROLE_SIBLING,
        DWARF_ROLE_NAME,
        DWARF_ROLE_LINKAGE_NAME,
        DWARF_ROLE_ORIGIN, /* abstract origin */
        DWARF_ROLE_SPECIFICATION,
        DWARF_ROLE_LOW_PC,
        DWARF_ROLE_HIGH_PC,
        DWARF_ROLE_RANGES,
        DWARF_ROLE_CALL_FILE,
        DWARF_ROLE_CALL_LINE,
        DWARF_ROLE_CALL_COLUMN,
        DWARF_ROLE_CALL_DISCRIMINATOR,
        DWARF_ROLE_DECL_FILE, /* of functions only */
        DWARF_ROLE_DECL_LINE,
        DWARF_ROLE_SIGNATURE,
        /* of units only */
        DWARF_ROLE_STMT_LIST,
        DWARF_ROLE_OF_UNITS = DWARF_ROLE_STMT_LIST,
        DWARF_ROLE_COMP_DIR,
        DWARF_ROLE_LANGUAGE,
        DWARF_ROLE_STR_OFFSETS_BASE,
        DWARF_ROLE_ADDR_BASE,
        DWARF_ROLE_RNGLISTS_BASE,
        DWARF_ROLE_GNU_RANGES_BASE,
        DWARF_ROLE_DWO_NAME,
        DWARF_ROLE_DWO_ID, /* before version 5 */
        DWARF_ROLE_COUNT,
};

/** How the walk treats a DIE. */
enum dwarf_kind {
        DWARF_KIND_PLAIN,    /* contains no code, nor do its children */
        DWARF_KIND_FUNCTION, /* a function that may have code */
        DWARF_KIND_DECLARED, /* a function without code and linkage name, with a name */
        DWARF_KIND_ABSTRACT, /* another function without code; functions inside may have some */
        DWARF_KIND_INLINED,  /* an inlined call */
        DWARF_KIND_SCOPE,    /* a namespace or class: its name qualifies the names inside */
        DWARF_KIND_BLOCK,    /* may hold code */
};

struct dwarf_step {
        int64_t implicit; /* of DW_FORM_implicit_const */
        uint32_t skip;    /* bytes before the value */
        uint16_t form;
        uint8_t role; /* DWARF_ROLE_NONE: skip the value */
};

struct dwarf_plan {
        uint32_t first, count; /* of the table's steps */
        uint32_t tail;         /* bytes after the last one */
};

struct dwarf_abbrev {
        uint64_t code;
        uint16_t tag;
        uint8_t kind;
        bool has_children;
        struct dwarf_plan skip; /* finds DWARF_ROLE_SIBLING only */
        struct dwarf_plan full; /* only of functions, calls, scopes and units; else like skip */
};

/** A table; reused from unit to unit. */
struct dwarf_abbrevs {
        struct dwarf_abbrev *items; /* owned, in the order of the section */
        uint32_t *order;            /* owned; indices by code, made when codes are not 1, 2, 3, ... */
        struct dwarf_step *steps;   /* owned */
        size_t count, capacity, order_capacity, step_count, step_capacity;
        bool is_dense;   /* item i has the code i + 1 */
        uint64_t offset; /* of the table it holds, when is_valid */
        struct dwarf_format format;
        bool is_valid;
        bool is_one; /* holds only the abbreviation passed to dwarf_abbrevs_read_one(), if present; is_valid is false */
        uint8_t kept[48]; /* that abbreviation behind its code, as it is in the section */
        size_t kept_size; /* 0: none */
        size_t bytes;     /* of the section */
};

/**
 * Read the table at an offset of .debug_abbrev for units of this format.
 * @return ST_BAD_DATA when it is cut off; ST_TOO_BIG
 *         past LIMIT_DWARF_ABBREVS or LIMIT_DWARF_ATTRIBUTES; ST_NO_MEMORY.
 */
enum status dwarf_abbrevs_read(struct dwarf_abbrevs *t, const struct dwarf_sections *s, uint64_t offset,
                               const struct dwarf_format *format) MUST_CHECK;
/** Read only the abbreviation with this code, which is not 0. */
enum status dwarf_abbrevs_read_one(struct dwarf_abbrevs *t, const struct dwarf_sections *s, uint64_t offset,
                                   const struct dwarf_format *format, uint64_t code) MUST_CHECK;
/**
 * Whether units with the table at this offset may have functions with addresses: an abbreviation of it is of such
 * functions, or it cannot be read. Nothing is compiled. @param bytes_ret of the section, that were read.
 */
bool dwarf_abbrevs_may_have_functions(const struct dwarf_sections *s, uint64_t offset, size_t *bytes_ret);
void dwarf_abbrevs_deinit(struct dwarf_abbrevs *t);

const struct dwarf_abbrev *dwarf_abbrevs_search(const struct dwarf_abbrevs *t, uint64_t code);

/** The first abbreviation with this code; NULL if there is none. */
static inline const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *t, uint64_t code)
{
        if (t->is_dense)
                return code - 1 < t->count ? &t->items[code - 1] : NULL;
        return dwarf_abbrevs_search(t, code);
}

#endif
