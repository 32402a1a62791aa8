/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/cursor.h"

uint64_t dwarf_uleb_long(struct dwarf_cursor *c)
{
        uint64_t v = 0;

        for (unsigned shift = 0; c->pos != c->end; shift += 7) {
                uint8_t byte = *c->pos++;

                if (shift > 63 ? byte & 0x7f : shift == 63 && (byte & 0x7e))
                        return dwarf_fail(c);
                if (shift <= 63)
                        v |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80)
                        return v;
        }
        return dwarf_fail(c);
}

int64_t dwarf_sleb_long(struct dwarf_cursor *c)
{
        uint64_t v = 0;

        for (unsigned shift = 0; c->pos != c->end; shift += 7) {
                uint8_t byte = *c->pos++, bits = byte & 0x7f;

                if (shift >= 63 && bits != 0 && bits != 0x7f)
                        return (int64_t)dwarf_fail(c);
                if (shift <= 63)
                        v |= (uint64_t)bits << shift;
                if (byte < 0x80) {
                        if (shift < 57 && (byte & 0x40))
                                v |= UINT64_MAX << (shift + 7);
                        return (int64_t)v;
                }
        }
        return (int64_t)dwarf_fail(c);
}
