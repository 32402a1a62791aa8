/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/symbol_inputs.h"

#include <assert.h>
#include <string.h>

#include "symbolizer/block_bits.h"

void symbol_inputs_add(struct symbol_inputs *inputs, const uint8_t sha256[32])
{
        assert(inputs->count < SYMBOL_INPUTS_MAX);
        inputs->items[inputs->count++] = load_le64(sha256);
}

bool symbol_inputs_have(const struct symbol_inputs *inputs, const uint8_t sha256[32])
{
        for (unsigned i = 0; i < inputs->count; i++)
                if (inputs->items[i] == load_le64(sha256))
                        return true;
        return false;
}
