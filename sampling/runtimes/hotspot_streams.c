/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/hotspot_streams.h"

#define NUMBER_BYTES_MAX 5
#define LAST_DIGIT_BELOW 192

#define LINES_END 0
#define LINES_ESCAPE 255 /* two numbers with a sign follow */

bool hotspot_read_number(struct reader *r, uint8_t base, uint32_t *ret)
{
        uint32_t value = 0;
        uint8_t byte = 0;

        for (unsigned i = 0; i < NUMBER_BYTES_MAX; i++) {
                if (!reader_u8(r, &byte) || byte < base)
                        return false;
                value += (uint32_t)(byte - base) << 6 * i;
                if (byte < LAST_DIGIT_BELOW)
                        break;
        }
        *ret = value;
        return true;
}

static bool add_signed_number(struct reader *r, uint8_t base, uint32_t *to)
{
        uint32_t value;

        if (!hotspot_read_number(r, base, &value))
                return false;
        *to += value & 1 ? ~(value >> 1) : value >> 1;
        return true;
}

/* Advance to the next entry. False at the end, where *ended tells whether it is marked. */
static bool read_line_row(struct reader *r, uint8_t base, uint32_t *bytecode, uint32_t *line, bool *ended)
{
        uint8_t byte;

        *ended = false;
        if (!reader_u8(r, &byte))
                return false;
        if (byte == LINES_END) {
                *ended = true;
                return false;
        }
        if (byte == LINES_ESCAPE)
                return add_signed_number(r, base, bytecode) && add_signed_number(r, base, line);
        *bytecode += byte >> 3;
        *line += byte & 7;
        return true;
}

size_t hotspot_measure_lines(const uint8_t *table, size_t size, uint8_t base)
{
        uint32_t bytecode = 0, line = 0;
        struct reader r;
        bool ended;

        reader_init(&r, table, size);
        while (read_line_row(&r, base, &bytecode, &line, &ended))
                ;
        return ended ? size - reader_left(&r) : 0;
}

uint32_t hotspot_find_line(const uint8_t *table, size_t size, uint8_t base, uint32_t bytecode)
{
        uint32_t at = 0, line = 0, best = 0, ret = 0;
        struct reader r;
        bool ended;

        reader_init(&r, table, size);
        while (read_line_row(&r, base, &at, &line, &ended)) {
                if (at == bytecode)
                        return line;
                if (at < bytecode && at >= best) {
                        best = at;
                        ret = line;
                }
        }
        return ret;
}

bool hotspot_read_scope(const uint8_t *data, size_t size, uint8_t base, struct hotspot_scope *ret)
{
        uint32_t caller, method, bytecode;
        struct reader r;

        reader_init(&r, data, size);
        if (!hotspot_read_number(&r, base, &caller) || !hotspot_read_number(&r, base, &method) ||
            !hotspot_read_number(&r, base, &bytecode))
                return false;
        *ret = (struct hotspot_scope){ caller, method, (int32_t)(bytecode - 1) };
        return true;
}
