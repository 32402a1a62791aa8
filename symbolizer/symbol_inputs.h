/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SYMBOL_INPUTS_H
#define CAIRN_SYMBOLIZER_SYMBOL_INPUTS_H

/**
 * @file
 * Which stored contents were read for an object's symbols, so that one that
 * was not is found. Times could not tell: they are seconds, clocks are set,
 * and a content may be stored while an older one is being read.
 */
#include <stdbool.h>
#include <stdint.h>

#define SYMBOL_INPUTS_MAX 5 /* debuginfo, supplementary, executable, symbols, package */

struct symbol_inputs {
        uint8_t count;
        uint64_t items[SYMBOL_INPUTS_MAX]; /* of each the first bytes of its SHA-256 */
};

void symbol_inputs_add(struct symbol_inputs *inputs, const uint8_t sha256[32]);
bool symbol_inputs_have(const struct symbol_inputs *inputs, const uint8_t sha256[32]);

#endif
