/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_CONTEXT_H
#define CAIRN_DWARF_CONTEXT_H

/**
 * @file
 * The decoding state of one unit: its abbreviations, and the attributes of the unit DIE that other values depend on.
 *
 * Threads: a context belongs to one thread.
 * Source: DWARF 5, 7.26 (string offsets), 7.27 (addresses), 3.1.1.
 */
#include "dwarf/abbrev.h"
#include "dwarf/dwarf_object.h"

struct dwarf_context {
        struct dwarf_object *object;
        struct dwarf_file *file;
        const struct dwarf_file
                *linked; /* the file with the addresses: `file`, or for a companion the main file of the object */
        const struct dwarf_unit *unit; /* NULL: not set up */
        struct dwarf_abbrevs abbrevs;
        uint16_t tag; /* of the unit's own DIE */
        bool has_children, has_lines;
        bool has_addresses; /* the unit's DIE has some */
        uint64_t children;  /* offset of the DIE after it */
        uint64_t str_offsets_base, addr_base, rnglists_base;
        uint8_t str_offset_size; /* in .debug_str_offsets */
        uint64_t ranges_base;    /* before version 5: of the range lists of a companion */
        uint64_t low_pc, line_offset;
        uint32_t language;
        const char *directory; /* NULL unknown */
        const char *dwo_name;  /* of a skeleton; else NULL */
        uint64_t dwo_id;
};

/** The values of a DIE that have a role; one that is absent has the form 0. Those of units are set for units only. */
struct dwarf_die {
        const struct dwarf_abbrev *abbrev;
        uint64_t offset, end; /* end: where its first child or the next DIE is */
        struct dwarf_value values[DWARF_ROLE_COUNT];
};

/** A DIE of either file: an offset of .debug_info, with the highest bit set for the supplementary file. */
typedef uint64_t dwarf_ref;
#define DWARF_NO_REF UINT64_MAX
#define DWARF_REF_ALT (UINT64_C(1) << 63)

/** Whether the unit can have code of its own: no type unit, and a partial unit only if its DIE has addresses. */
bool dwarf_context_may_have_code(const struct dwarf_context *x);
/** Whether DIEs below the unit's may be functions with addresses, by its abbreviations; true once their budget is
 * spent. */
bool dwarf_context_may_have_functions(struct dwarf_context *x);

/**
 * Set up a context for a unit, in place of the previous one.
 * @return ST_BAD_DATA when the abbreviations or the unit's DIE cannot be read; ST_TOO_BIG; ST_NO_MEMORY.
 */
enum status dwarf_context_enter(struct dwarf_context *x, struct dwarf_object *o, struct dwarf_file *file,
                                const struct dwarf_unit *unit) MUST_CHECK;
/** As dwarf_context_enter(), with the values of the unit's DIE. */
enum status dwarf_context_enter_die(struct dwarf_context *x, struct dwarf_object *o, struct dwarf_file *file,
                                    const struct dwarf_unit *unit, struct dwarf_die *die_ret) MUST_CHECK;
/** As dwarf_context_enter(), but reads only the unit's own DIE. Cheap: the other abbreviations are skipped. */
enum status dwarf_context_peek(struct dwarf_context *x, struct dwarf_object *o, struct dwarf_file *file,
                               const struct dwarf_unit *unit, struct dwarf_die *die_ret) MUST_CHECK;
/** Copy to a split unit the attributes that it inherits from its skeleton. */
void dwarf_context_inherit(struct dwarf_context *x, const struct dwarf_context *skeleton);
/** Detach from the unit, so that its file may be closed. */
void dwarf_context_forget(struct dwarf_context *x);
void dwarf_context_deinit(struct dwarf_context *x);

/** A cursor from a DIE of the unit to the unit's end; a failed one for an offset outside. */
struct dwarf_cursor dwarf_context_cursor(const struct dwarf_context *x, uint64_t offset);

/** Read the values of a DIE of which the cursor has read the code, by its full plan. */
void dwarf_context_read_die(const struct dwarf_context *x, struct dwarf_cursor *c, const struct dwarf_abbrev *a,
                            struct dwarf_die *ret);

/** Interpret a value. NULL, false or DWARF_NO_REF when it is absent, of another class, or out of bounds. */
const char *dwarf_context_string(const struct dwarf_context *x, const struct dwarf_value *v);
/** An expression is an address if it adds constants to one: clang writes such a low pc to share indexed addresses. */
bool dwarf_context_address(const struct dwarf_context *x, const struct dwarf_value *v, uint64_t *ret);
bool dwarf_context_indexed_address(const struct dwarf_context *x, uint64_t index, uint64_t *ret);
dwarf_ref dwarf_context_reference(const struct dwarf_context *x, const struct dwarf_value *v);

static inline uint64_t dwarf_context_greatest_address(const struct dwarf_context *x)
{
        return UINT64_MAX >> (64 - 8 * x->unit->format.address_size);
}

/** Whether the linker discarded the section of an address: lld writes -1, in .debug_ranges -2. */
static inline bool dwarf_context_is_tombstone(const struct dwarf_context *x, uint64_t address)
{
        return address >= dwarf_context_greatest_address(x) - 1;
}

/** A constant that is not negative. */
static inline bool dwarf_value_uint(const struct dwarf_value *v, uint64_t *ret)
{
        switch (v->form) {
        case DW_FORM_data1:
        case DW_FORM_data2:
        case DW_FORM_data4:
        case DW_FORM_data8:
        case DW_FORM_udata:
        case DW_FORM_implicit_const:
        case DW_FORM_sdata:
                if ((v->form == DW_FORM_sdata || v->form == DW_FORM_implicit_const) && v->number > INT64_MAX)
                        return false;
                *ret = v->number;
                return true;
        default:
                return false;
        }
}

struct dwarf_attributes {
        const struct dwarf_context *context;
        struct dwarf_cursor specs, values;
        uint16_t tag;
};

/** Returns false when the offset is not inside the unit or holds a null entry. */
bool dwarf_attributes_begin(struct dwarf_attributes *a, const struct dwarf_context *x, uint64_t die);

/** False after the last attribute, and at malformed data. */
bool dwarf_attributes_next(struct dwarf_attributes *a, uint16_t *attribute_ret, struct dwarf_value *ret);

#endif
