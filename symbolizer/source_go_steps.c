/* SPDX-License-Identifier: Apache-2.0 */
/* Go's tables of values by pc. */
#include <stdlib.h>

#include "common/reader.h"
#include "symbolizer/huge_array.h"
#include "symbolizer/source_gopclntab.h"
#include "symbolizer/symbol_table_builder.h"

void go_steps_deinit(struct go_steps *s)
{
        free(s->items);
        *s = (struct go_steps){ 0 };
}

/* At most five bytes; more mean that this is no number. */
static bool read_varint(struct reader *r, uint32_t *ret)
{
        uint32_t value = 0;
        uint8_t byte;

        for (unsigned shift = 0; shift < 35; shift += 7) {
                if (!reader_u8(r, &byte))
                        return false;
                value |= (uint32_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80)) {
                        *ret = value;
                        return true;
                }
        }
        return false;
}

bool go_steps_read(const struct go_pclntab *t, const struct go_function *f, uint32_t offset, struct go_steps *s)
{
        uint32_t value = UINT32_MAX, change, length;
        uint64_t pc = f->entry;
        struct reader r;

        s->count = 0;
        reader_init(&r, t->data, t->size);
        if (offset == 0 || !reader_seek(&r, t->tables + offset))
                return true;
        while (pc < f->end && read_varint(&r, &change) && (change || pc == f->entry) && read_varint(&r, &length) &&
               length) {
                value += change & 1 ? ~(change >> 1) : change >> 1;
                if (__builtin_add_overflow(pc, (uint64_t)length * t->quantum, &pc) || pc > f->end)
                        pc = f->end;
                if (!huge_array_reserve(&s->items, &s->capacity, s->count))
                        return false;
                s->items[s->count++] = (struct go_step){ pc, (int32_t)value };
        }
        return true;
}

int32_t go_steps_at(const struct go_steps *s, uint64_t address)
{
        size_t low = 0, high = s->count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (s->items[mid].end <= address)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < s->count ? s->items[low].value : -1;
}
