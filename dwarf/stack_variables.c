/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit's DIEs are passed twice: to find the innermost function or inlined call that covers the address, and from
 * there to the end of its children for variables. Only the DIEs of variables, types and names are decoded in full.
 */
#include "dwarf/stack_variables.h"

#include <stdlib.h>

#include "common/limits.h"
#include "dwarf/dwarf_explain.h"
#include "dwarf/dwarf_reader_internal.h"
#include "dwarf/line.h"
#include "dwarf/ranges.h"

#define REGISTERS 32       /* that have an opcode each */
#define LISTS_SHARED_MAX 4 /* times that the location lists of a file are read for a function; compilers share none */

/* What a variable belongs to. */
struct variable_scope {
        const char *function;
        int frame_register; /* that DW_AT_frame_base names; -1 none */
};

struct location_section {
        struct elf_section_data data; /* owned */
        bool is_loaded;
};

struct variable_search {
        struct dwarf_reader *reader;
        struct dwarf_lines files;                 /* of the unit */
        struct location_section sections[2];      /* before version 5, and of it */
        const struct elf_section_data *locations; /* lists of the version of the unit */
        uint64_t locations_base;                  /* of their offsets, in version 5 */
        uint64_t bytes_left;                      /* of lists; several variables may refer to the same one */
        struct buf path;
        size_t count;
        struct variable_scope scopes[LIMIT_DIE_DEPTH];
};

/* ---- DIEs ---- */

/* Pass one DIE. @param depth_io  of the next one, 0 at the start. @return its abbreviation; NULL for the end of
 * children */
static const struct dwarf_abbrev *pass_die(const struct dwarf_context *x, struct dwarf_cursor *c, unsigned *depth_io,
                                           struct dwarf_die *ret)
{
        const uint8_t *start = c->pos;
        uint64_t code = dwarf_uleb(c);
        const struct dwarf_abbrev *a = code ? dwarf_abbrevs_find(&x->abbrevs, code) : NULL;

        if (code && !a)
                dwarf_fail(c);
        if (!a) {
                *depth_io -= *depth_io > 0;
                return NULL;
        }
        ret->offset = (uint64_t)(start - x->file->sections.data[DWARF_INFO].bytes);
        dwarf_context_read_die(x, c, a, ret);
        *depth_io += a->has_children;
        if (*depth_io >= LIMIT_DIE_DEPTH)
                dwarf_fail(c);
        return c->failed ? NULL : a;
}

/* The bytes of a block, which precede the position behind it. */
static struct dwarf_cursor get_block(const struct dwarf_attributes *before, const struct dwarf_attributes *after,
                                     uint16_t form)
{
        struct dwarf_cursor c = before->values;
        uint64_t size;

        c.end = after->values.pos;
        switch (form) {
        case DW_FORM_exprloc:
        case DW_FORM_block:
                size = dwarf_uleb(&c);
                break;
        case DW_FORM_block1:
                size = dwarf_u8(&c);
                break;
        case DW_FORM_block2:
                size = dwarf_u16(&c);
                break;
        case DW_FORM_block4:
                size = dwarf_u32(&c);
                break;
        default:
                size = UINT64_MAX;
        }
        if (size != dwarf_left(&c))
                dwarf_fail(&c);
        return c;
}

/* The name of a function, a variable or a type, that of its declaration or abstract origin. */
static const char *find_die_name(struct dwarf_reader *r, dwarf_ref ref)
{
        for (int i = 0; i < LIMIT_DWARF_ORIGINS && ref != DWARF_NO_REF; i++) {
                const struct dwarf_context *x = dwarf_reader_context(r, ref);
                struct dwarf_attributes a;
                struct dwarf_value v;
                uint16_t attribute;
                const char *name = NULL;
                dwarf_ref next = DWARF_NO_REF;

                if (!x || !dwarf_attributes_begin(&a, x, ref & ~DWARF_REF_ALT))
                        return NULL;
                while (!name && dwarf_attributes_next(&a, &attribute, &v)) {
                        if (attribute == DW_AT_name)
                                name = dwarf_context_string(x, &v);
                        else if (attribute == DW_AT_abstract_origin || attribute == DW_AT_specification)
                                next = dwarf_context_reference(x, &v);
                }
                if (name)
                        return name;
                ref = next;
        }
        return NULL;
}

/* ---- sizes of types ---- */

struct type_facts {
        uint16_t tag;
        bool has_size, has_children;
        uint64_t size;
        dwarf_ref type;
        uint8_t address_size;
};

static bool read_type(struct dwarf_reader *r, dwarf_ref ref, struct type_facts *ret)
{
        const struct dwarf_context *x = ref == DWARF_NO_REF ? NULL : dwarf_reader_context(r, ref);
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;

        if (!x || !dwarf_attributes_begin(&a, x, ref & ~DWARF_REF_ALT))
                return false;
        *ret = (struct type_facts){ .tag = a.tag, .type = DWARF_NO_REF, .address_size = x->unit->format.address_size };
        while (dwarf_attributes_next(&a, &attribute, &v)) {
                if (attribute == DW_AT_byte_size)
                        ret->has_size = dwarf_value_uint(&v, &ret->size);
                else if (attribute == DW_AT_type)
                        ret->type = dwarf_context_reference(x, &v);
        }
        return true;
}

/* The number of elements of one dimension; false if it is not constant. */
static bool count_elements(const struct dwarf_context *x, uint64_t die, uint64_t *ret)
{
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;
        uint64_t low = 0, high = 0;
        bool has_count = false, has_high = false;

        if (!dwarf_attributes_begin(&a, x, die))
                return false;
        while (dwarf_attributes_next(&a, &attribute, &v)) {
                if (attribute == DW_AT_count)
                        has_count = dwarf_value_uint(&v, ret);
                else if (attribute == DW_AT_upper_bound)
                        has_high = dwarf_value_uint(&v, &high) ||
                                   ((v.form == DW_FORM_sdata || v.form == DW_FORM_implicit_const) && (high = v.number));
                else if (attribute == DW_AT_lower_bound)
                        low = v.number;
        }
        if (!has_count && has_high)
                *ret = high - low + 1; /* modulo 2^64: bounds may be negative */
        return has_count || has_high;
}

/* Multiply by the dimensions; those without a constant number of elements do not count. */
static bool multiply_dimensions(struct dwarf_reader *r, dwarf_ref array, uint64_t *factor_io)
{
        const struct dwarf_context *x = dwarf_reader_context(r, array);
        struct dwarf_cursor c;
        struct dwarf_die d;
        unsigned depth = 0;

        if (!x)
                return false;
        c = dwarf_context_cursor(x, array & ~DWARF_REF_ALT);
        if (!pass_die(x, &c, &depth, &d))
                return false;
        while (depth && !c.failed) {
                unsigned before = depth;
                const struct dwarf_abbrev *a = pass_die(x, &c, &depth, &d);
                uint64_t count = 0;

                if (a && before == 1 && a->tag == DW_TAG_subrange_type && count_elements(x, d.offset, &count) &&
                    __builtin_mul_overflow(*factor_io, count, factor_io))
                        return false;
        }
        return !c.failed;
}

static bool find_type_size(struct dwarf_reader *r, dwarf_ref ref, uint64_t *ret)
{
        uint64_t factor = 1;

        for (int i = 0; i < LIMIT_DWARF_ORIGINS; i++) {
                struct type_facts t, of;

                if (!read_type(r, ref, &t))
                        return false;
                if (!t.has_size) {
                        switch (t.tag) {
                        case DW_TAG_pointer_type:
                        case DW_TAG_reference_type:
                        case DW_TAG_rvalue_reference_type:
                                t.has_size = true;
                                t.size = t.address_size;
                                break;
                        case DW_TAG_ptr_to_member_type: /* of functions, two words in the Itanium C++ ABI */
                                t.has_size = true;
                                t.size = t.address_size;
                                if (read_type(r, t.type, &of) && of.tag == DW_TAG_subroutine_type)
                                        t.size *= 2;
                                break;
                        case DW_TAG_array_type:
                                if (!multiply_dimensions(r, ref, &factor))
                                        return false;
                                break;
                        case DW_TAG_typedef:
                        case DW_TAG_const_type:
                        case DW_TAG_volatile_type:
                        case DW_TAG_restrict_type:
                        case DW_TAG_atomic_type:
                        case DW_TAG_immutable_type:
                                break;
                        default:
                                return false;
                        }
                }
                if (t.has_size)
                        return !__builtin_mul_overflow(factor, t.size, ret);
                ref = t.type;
        }
        return false;
}

/* ---- locations ---- */

/* An offset from the frame base, which may be named by its register, alone or with an indirection behind it. */
static bool read_frame_offset(struct dwarf_cursor c, int frame_register, int64_t *ret)
{
        uint8_t opcode = dwarf_u8(&c);
        int64_t offset = dwarf_sleb(&c);

        if (c.failed || (opcode != DW_OP_fbreg && (frame_register < 0 || opcode != DW_OP_breg0 + frame_register)))
                return false;
        if (dwarf_left(&c) && (dwarf_left(&c) > 1 || dwarf_u8(&c) != DW_OP_deref))
                return false;
        *ret = offset;
        return true;
}

/* Pass an entry of a list before version 5. @return false at the end */
static bool pass_old_location(struct dwarf_cursor *c, unsigned address_size, struct dwarf_cursor *expression_ret)
{
        const uint64_t start = dwarf_uint(c, address_size), end = dwarf_uint(c, address_size);
        uint16_t size;

        expression_ret->end = expression_ret->pos; /* a base address has none */
        if (start == (address_size == 8 ? UINT64_MAX : UINT32_MAX))
                return !c->failed;
        if (!start && !end)
                return false;
        size = dwarf_u16(c);
        expression_ret->pos = c->pos;
        dwarf_skip(c, size);
        expression_ret->end = c->pos;
        return !c->failed;
}

static bool pass_new_location(struct dwarf_cursor *c, unsigned address_size, struct dwarf_cursor *expression_ret)
{
        const uint8_t kind = dwarf_u8(c);
        uint64_t size;

        expression_ret->end = expression_ret->pos;
        switch (kind) {
        case DW_LLE_base_addressx:
                dwarf_skip_leb(c);
                return !c->failed;
        case DW_LLE_base_address:
                dwarf_skip(c, address_size);
                return !c->failed;
        case DW_LLE_startx_endx:
        case DW_LLE_startx_length:
        case DW_LLE_offset_pair:
                dwarf_skip_leb(c);
                dwarf_skip_leb(c);
                break;
        case DW_LLE_default_location:
                break;
        case DW_LLE_start_end:
                dwarf_skip(c, 2 * address_size);
                break;
        case DW_LLE_start_length:
                dwarf_skip(c, address_size);
                dwarf_skip_leb(c);
                break;
        default: /* the end of the list */
                return false;
        }
        size = dwarf_uleb(c);
        expression_ret->pos = c->pos;
        dwarf_skip(c, size);
        expression_ret->end = c->pos;
        return !c->failed;
}

static uint64_t find_location_list(struct variable_search *s, const struct dwarf_context *x,
                                   const struct dwarf_value *v)
{
        struct dwarf_cursor c = { .pos = s->locations->bytes, .swap = x->file->sections.swap };
        const uint8_t size = x->unit->format.offset_size;
        uint64_t at;

        if (v->form != DW_FORM_loclistx)
                return v->number;
        c.end = c.pos + s->locations->size;
        if (__builtin_mul_overflow(v->number, size, &at) || __builtin_add_overflow(at, s->locations_base, &at))
                return UINT64_MAX;
        dwarf_skip(&c, at);
        at = dwarf_uint(&c, size);
        return c.failed || __builtin_add_overflow(at, s->locations_base, &at) ? UINT64_MAX : at;
}

/* Charge the bytes from start to where the cursor is. */
static bool pay_for_list(struct variable_search *s, const struct dwarf_cursor *c, const uint8_t *start)
{
        uint64_t n = (uint64_t)(c->pos - start);

        s->bytes_left = n < s->bytes_left ? s->bytes_left - n : 0;
        return s->bytes_left > 0;
}

/* The first offset from the frame base in a list. */
static bool search_location_list(struct variable_search *s, const struct dwarf_context *x, const struct dwarf_value *v,
                                 int frame_register, int64_t *ret)
{
        const bool is_new = x->unit->format.version >= 5;
        struct dwarf_cursor c = { .pos = s->locations->bytes, .swap = x->file->sections.swap };
        struct dwarf_cursor expression;
        const uint8_t *start;

        if (x->file != &x->object->main || !s->locations->size)
                return false;
        c.end = c.pos + s->locations->size;
        dwarf_skip(&c, find_location_list(s, x, v));
        expression = c;
        for (start = c.pos; is_new ? pass_new_location(&c, x->unit->format.address_size, &expression)
                                   : pass_old_location(&c, x->unit->format.address_size, &expression);
             start = c.pos) {
                if (!pay_for_list(s, &c, start))
                        return false;
                if (read_frame_offset(expression, frame_register, ret))
                        return true;
        }
        return false;
}

static bool find_frame_offset(struct variable_search *s, const struct dwarf_attributes *before,
                              const struct dwarf_attributes *after, const struct dwarf_value *v, int frame_register,
                              int64_t *ret)
{
        struct dwarf_cursor block;

        if (v->form == DW_FORM_sec_offset || v->form == DW_FORM_loclistx || v->form == DW_FORM_data4 ||
            v->form == DW_FORM_data8)
                return search_location_list(s, before->context, v, frame_register, ret);
        block = get_block(before, after, v->form);
        return !block.failed && read_frame_offset(block, frame_register, ret);
}

static int read_frame_register(const struct dwarf_context *x, uint64_t die)
{
        struct dwarf_attributes a, before;
        struct dwarf_value v;
        uint16_t attribute;

        if (!dwarf_attributes_begin(&a, x, die))
                return -1;
        for (before = a; dwarf_attributes_next(&a, &attribute, &v); before = a) {
                struct dwarf_cursor block;
                uint8_t opcode;

                if (attribute != DW_AT_frame_base)
                        continue;
                block = get_block(&before, &a, v.form);
                opcode = dwarf_u8(&block);
                return !block.failed && opcode >= DW_OP_reg0 && opcode < DW_OP_reg0 + REGISTERS ? opcode - DW_OP_reg0
                                                                                                : -1;
        }
        return -1;
}

/* ---- variables ---- */

struct variable_facts {
        struct dwarf_variable variable;
        bool has_file;
        uint64_t file;
        dwarf_ref origin, type;
};

/* @param origin  the attributes are those of an abstract origin: a location there is of no call */
static void read_variable(struct variable_search *s, const struct dwarf_context *x, uint64_t die, int frame_register,
                          bool is_origin, struct variable_facts *f)
{
        struct dwarf_attributes a, before;
        struct dwarf_value v;
        uint16_t attribute;

        if (!dwarf_attributes_begin(&a, x, die))
                return;
        for (before = a; dwarf_attributes_next(&a, &attribute, &v); before = a) {
                switch (attribute) {
                case DW_AT_name:
                        f->variable.name = dwarf_context_string(x, &v);
                        break;
                case DW_AT_decl_file:
                        f->has_file = dwarf_value_uint(&v, &f->file);
                        break;
                case DW_AT_decl_line:
                        dwarf_value_uint(&v, &f->variable.line);
                        break;
                case DW_AT_type:
                        f->type = dwarf_context_reference(x, &v);
                        break;
                case DW_AT_abstract_origin:
                        f->origin = is_origin ? DWARF_NO_REF : dwarf_context_reference(x, &v);
                        break;
                case DW_AT_location:
                        f->variable.has_frame_offset =
                                !is_origin &&
                                find_frame_offset(s, &before, &a, &v, frame_register, &f->variable.frame_offset);
                        break;
                case DW_AT_LLVM_tag_offset:
                        f->variable.has_tag_offset = !is_origin && dwarf_value_uint(&v, &f->variable.tag_offset);
                        break;
                default:
                        break;
                }
        }
}

static void give_variable(struct variable_search *s, const struct dwarf_context *x, uint64_t die,
                          const struct variable_scope *scope,
                          void (*give)(void *context, const struct dwarf_variable *), void *context)
{
        struct variable_facts f = { .variable.function = scope->function,
                                    .origin = DWARF_NO_REF,
                                    .type = DWARF_NO_REF };
        const struct dwarf_context *of;

        read_variable(s, x, die, scope->frame_register, false, &f);
        of = f.origin == DWARF_NO_REF ? NULL : dwarf_reader_context(s->reader, f.origin);
        if (of)
                read_variable(s, of, f.origin & ~DWARF_REF_ALT, -1, true, &f);
        f.variable.has_size = find_type_size(s->reader, f.type, &f.variable.size);
        buf_clear(&s->path);
        if (f.has_file)
                dwarf_lines_path(&s->files, f.file, &s->path);
        f.variable.path = s->path.size && buf_cstr(&s->path) ? buf_cstr(&s->path) : "";
        give(context, &f.variable);
}

static enum status give_variables_below(struct variable_search *s, const struct dwarf_context *x, uint64_t die,
                                        void (*give)(void *context, const struct dwarf_variable *), void *context,
                                        struct error *err)
{
        struct dwarf_cursor c = dwarf_context_cursor(x, die);
        unsigned depth = 0;

        do {
                const unsigned before = depth;
                struct variable_scope *scope = &s->scopes[before];
                struct dwarf_die d;
                const struct dwarf_abbrev *a = pass_die(x, &c, &depth, &d);

                if (!a)
                        continue;
                if (before)
                        *scope = s->scopes[before - 1]; /* the scopes of a level are those of its last DIE */
                if (a->tag == DW_TAG_inlined_subroutine || !before)
                        *scope = (struct variable_scope){ .function = find_die_name(s->reader, d.offset),
                                                          .frame_register = read_frame_register(x, d.offset) };
                if (a->tag != DW_TAG_variable && a->tag != DW_TAG_formal_parameter)
                        continue;
                if (s->count++ == LIMIT_STACK_VARIABLES)
                        return error_set(err, ST_TOO_BIG, "a function has more than %d variables",
                                         LIMIT_STACK_VARIABLES);
                give_variable(s, x, d.offset, scope, give, context);
                if (!s->bytes_left)
                        return error_set(err, ST_TOO_BIG, "the variables of a function share too many location lists");
        } while (depth && !c.failed);
        return c.failed ? error_set(err, ST_BAD_DATA, "the DIEs of a function are malformed") : ST_OK;
}

/* The innermost function or inlined call that covers the address; DWARF_NO_REF none. */
static uint64_t find_innermost_function(const struct dwarf_context *x, uint64_t address)
{
        struct dwarf_cursor c = dwarf_context_cursor(x, x->unit->first_die);
        uint64_t found = DWARF_NO_REF;
        unsigned depth = 0, found_depth = 0;

        do {
                const unsigned before = depth;
                struct dwarf_die d;
                const struct dwarf_abbrev *a = pass_die(x, &c, &depth, &d);
                struct dwarf_ranges ranges;
                uint64_t start, end;

                if (!a || (a->tag != DW_TAG_subprogram && a->tag != DW_TAG_inlined_subroutine) || before < found_depth)
                        continue;
                dwarf_ranges_begin(&ranges, x, &d);
                while (dwarf_ranges_next(&ranges, &start, &end)) {
                        if (start <= address && address < end) {
                                found = d.offset;
                                found_depth = before;
                        }
                }
        } while (depth && !c.failed);
        return found;
}

/* Load the section with the lists of the unit, at its first one. */
static void load_locations(struct variable_search *s, const struct dwarf_context *x, const struct elf_image *img)
{
        const bool is_new = x->unit->format.version >= 5;
        const struct elf_section *section = elf_image_section(img, is_new ? ".debug_loclists" : ".debug_loc");
        struct location_section *of = &s->sections[is_new];
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;

        if (!of->is_loaded) {
                if (section && elf_section_data(img, section, LIMIT_SECTION_UNPACKED_BYTES, &of->data, NULL))
                        of->data = (struct elf_section_data){ 0 };
                of->is_loaded = true;
                s->bytes_left += LISTS_SHARED_MAX * (uint64_t)of->data.size;
        }
        s->locations = &of->data;
        s->locations_base = 0;
        for (bool more = dwarf_attributes_begin(&a, x, x->unit->first_die);
             more && dwarf_attributes_next(&a, &attribute, &v);)
                if (attribute == DW_AT_loclists_base)
                        s->locations_base = v.number;
}

static enum status give_variables_of_unit(struct variable_search *s, const struct elf_image *img, uint64_t address,
                                          void (*give)(void *context, const struct dwarf_variable *), void *context,
                                          struct error *err)
{
        const struct dwarf_context *x = &s->reader->main;
        const uint64_t die = find_innermost_function(x, address);
        struct dwarf_line_header h;

        if (die == DWARF_NO_REF)
                return ST_OK;
        dwarf_lines_clear(&s->files);
        if (x->has_lines && dwarf_line_header_read(&h, &s->files, x, x->line_offset) == ST_NO_MEMORY)
                return error_no_memory(err);
        load_locations(s, x, img);
        return give_variables_below(s, x, die, give, context, err);
}

enum status dwarf_stack_variables_find(struct dwarf_reader *r, const struct elf_image *img, uint64_t address,
                                       void (*give)(void *context, const struct dwarf_variable *), void *context,
                                       struct error *err)
{
        struct variable_search *s = calloc(1, sizeof *s);
        enum status st = ST_OK;

        if (!s)
                return error_no_memory(err);
        s->reader = r;
        s->bytes_left = 1; /* without lists it is not exhausted */
        buf_init(&s->path, 4 * LIMIT_NAME_BYTES);
        for (size_t i = 0; !st && !s->count && i < r->object->main.units.count; i++)
                if (dwarf_unit_claims(r, i, address))
                        st = give_variables_of_unit(s, img, address, give, context, err);
        for (size_t i = 0; i < 2; i++)
                elf_section_data_free(&s->sections[i].data);
        dwarf_lines_deinit(&s->files);
        buf_deinit(&s->path);
        free(s);
        return st;
}
