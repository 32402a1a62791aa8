/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the response of a disassembly worker: it is refused, or everything in it is within bounds, and
 * encoding it gives the same bytes. Each instruction is also written without its addresses.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "disassembler/disassembly.h"
#include "query/engine/code_alignment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t check_instruction(const struct code_instruction *in)
{
        _cleanup_buf_ struct buf text = { 0 };
        size_t sum = 0;

        buf_init(&text, LIMIT_DISASSEMBLY_ANSWER_BYTES);
        code_put_without_addresses(in, NULL, &text);
        if (buf_status(&text, NULL, "the text") == ST_TOO_BIG)
                abort(); /* an address is not longer than its number */
        if (!in->size || in->size > INSTRUCTION_BYTES_MAX || in->flow >= FLOW_COUNT)
                abort();
        for (const char *p = in->mnemonic; *p; p++)
                if (*p < ' ' || *p > '~')
                        abort();
        for (uint8_t i = 0; i < in->size; i++)
                sum += in->bytes[i];
        return sum + strlen(in->operands);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        void *copy = malloc(size ? size : 1);
        struct disassembly d;
        struct buf again;
        uint32_t next = 0;
        size_t sum = 0;

        if (!copy)
                return 0;
        if (size)
                memcpy(copy, data, size);
        if (disassembly_read(copy, size, &d, NULL)) {
                free(copy);
                return 0;
        }
        for (uint32_t i = 0; i < d.range_count; i++) {
                uint64_t at = d.ranges[i].start;

                if (d.ranges[i].first != next)
                        abort();
                next += d.ranges[i].count;
                sum += strlen(d.ranges[i].symbol);
                for (uint32_t k = d.ranges[i].first; k < next; k++) {
                        sum += check_instruction(&d.instructions[k]);
                        if (d.instructions[k].address < at)
                                abort();
                        at = d.instructions[k].address + d.instructions[k].size;
                }
                if (at > d.ranges[i].end)
                        abort();
        }
        buf_init(&again, size);
        disassembly_write(&d, &again);
        if (next != d.instruction_count || sum == SIZE_MAX || again.size != size || memcmp(again.data, copy, size) != 0)
                abort();
        buf_deinit(&again);
        disassembly_deinit(&d);
        free(copy);
        return 0;
}
