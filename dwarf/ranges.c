/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/ranges.h"

#include <assert.h>

/* DW_AT_high_pc is an address or an offset from DW_AT_low_pc, by its form. */
static bool read_single_range(const struct dwarf_context *x, const struct dwarf_die *d, struct dwarf_ranges *r)
{
        const struct dwarf_value *high = &d->values[DWARF_ROLE_HIGH_PC];
        uint64_t size;

        if (!dwarf_context_address(x, &d->values[DWARF_ROLE_LOW_PC], &r->start))
                return false;
        if (dwarf_context_address(x, high, &r->end))
                return true;
        if (!dwarf_value_uint(high, &size))
                return false;
        return !__builtin_add_overflow(r->start, size, &r->end);
}

static void begin_range_list(struct dwarf_ranges *r, const struct dwarf_value *v)
{
        const struct dwarf_context *x = r->context;
        enum dwarf_section_id section = x->unit->format.version >= 5 ? DWARF_RNGLISTS : DWARF_RANGES;
        uint8_t size = x->unit->format.offset_size;
        uint64_t offset, at;

        if (v->form == DW_FORM_sec_offset) {
                offset = v->number;
        } else if (v->form == DW_FORM_rnglistx) {
                if (__builtin_mul_overflow(v->number, size, &at) || __builtin_add_overflow(at, x->rnglists_base, &at))
                        return;
                r->list = dwarf_section_at(&x->file->sections, DWARF_RNGLISTS, at);
                offset = dwarf_uint(&r->list, size);
                if (r->list.failed || __builtin_add_overflow(offset, x->rnglists_base, &offset))
                        return;
        } else if (!dwarf_value_uint(v, &offset)) {
                return;
        }
        if (section == DWARF_RANGES && x->linked != x->file && __builtin_add_overflow(offset, x->ranges_base, &offset))
                return;
        r->list =
                dwarf_section_at(section == DWARF_RANGES ? &x->linked->sections : &x->file->sections, section, offset);
        r->is_list = true;
}

void dwarf_ranges_begin(struct dwarf_ranges *r, const struct dwarf_context *x, const struct dwarf_die *d)
{
        assert(x->unit);
        *r = (struct dwarf_ranges){ .context = x,
                                    .base = x->low_pc,
                                    .is_base_dead = dwarf_context_is_tombstone(x, x->low_pc) };
        r->is_single = read_single_range(x, d, r);
        if (!r->is_single && d->values[DWARF_ROLE_RANGES].form)
                begin_range_list(r, &d->values[DWARF_ROLE_RANGES]);
}

static void set_range_base(struct dwarf_ranges *r, uint64_t base)
{
        r->base = base;
        r->is_base_dead = dwarf_context_is_tombstone(r->context, base);
}

static uint64_t read_indexed_address(struct dwarf_ranges *r)
{
        uint64_t address = 0;

        if (!dwarf_context_indexed_address(r->context, dwarf_uleb(&r->list), &address))
                dwarf_fail(&r->list);
        return address;
}

/* @return whether r->start and r->end are a live range now; the list fails at its end. */
static bool read_range_pair(struct dwarf_ranges *r)
{
        uint8_t size = r->context->unit->format.address_size;
        uint64_t mask = dwarf_context_greatest_address(r->context);
        uint64_t a = dwarf_uint(&r->list, size), b = dwarf_uint(&r->list, size);

        if (r->list.failed || (a == 0 && b == 0)) {
                dwarf_fail(&r->list);
                return false;
        }
        if (a == mask) {
                set_range_base(r, b);
                return false;
        }
        if (dwarf_context_is_tombstone(r->context, a) || r->is_base_dead)
                return false;
        r->start = (r->base + a) & mask;
        r->end = (r->base + b) & mask;
        return true;
}

static bool read_range_entry(struct dwarf_ranges *r)
{
        uint8_t size = r->context->unit->format.address_size;
        uint64_t mask = dwarf_context_greatest_address(r->context);
        struct dwarf_cursor *c = &r->list;

        switch (dwarf_u8(c)) {
        case DW_RLE_base_addressx:
                set_range_base(r, read_indexed_address(r));
                return false;
        case DW_RLE_base_address:
                set_range_base(r, dwarf_uint(c, size));
                return false;
        case DW_RLE_startx_endx:
                r->start = read_indexed_address(r);
                r->end = read_indexed_address(r);
                break;
        case DW_RLE_startx_length:
                r->start = read_indexed_address(r);
                r->end = (r->start + dwarf_uleb(c)) & mask;
                break;
        case DW_RLE_offset_pair:
                r->start = (r->base + dwarf_uleb(c)) & mask;
                r->end = (r->base + dwarf_uleb(c)) & mask;
                return !c->failed && !r->is_base_dead;
        case DW_RLE_start_end:
                r->start = dwarf_uint(c, size);
                r->end = dwarf_uint(c, size);
                break;
        case DW_RLE_start_length:
                r->start = dwarf_uint(c, size);
                r->end = (r->start + dwarf_uleb(c)) & mask;
                break;
        case DW_RLE_end_of_list:
        default:
                dwarf_fail(c);
                return false;
        }
        return !c->failed && !dwarf_context_is_tombstone(r->context, r->start);
}

/* The budget is shared by all threads, so entries are paid for in batches. */
#define PAID_AT_ONCE 8

static bool spend_range_budget(struct dwarf_ranges *r)
{
        if (r->paid == 0) {
                if (!dwarf_object_spend(r->context->object, DWARF_BUDGET_RANGES, PAID_AT_ONCE))
                        return false;
                r->paid = PAID_AT_ONCE;
        }
        r->paid--;
        return true;
}

bool dwarf_ranges_next(struct dwarf_ranges *r, uint64_t *start_ret, uint64_t *end_ret)
{
        bool found = false;

        if (r->is_single) {
                r->is_single = false;
                found = !dwarf_context_is_tombstone(r->context, r->start);
        }
        while (!found && r->is_list && !r->list.failed) {
                if (!spend_range_budget(r)) {
                        r->is_cut = true;
                        return false;
                }
                found = r->context->unit->format.version >= 5 ? read_range_entry(r) : read_range_pair(r);
        }
        if (found) {
                *start_ret = r->start;
                *end_ret = r->end;
        }
        return found;
}
