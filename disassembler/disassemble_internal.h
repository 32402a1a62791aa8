/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DISASSEMBLER_DISASSEMBLE_INTERNAL_H
#define CAIRN_DISASSEMBLER_DISASSEMBLE_INTERNAL_H

#include <stdint.h>

/* Descriptors of the worker. */
enum { DISASSEMBLE_EXECUTABLE = 3, DISASSEMBLE_SYMBOLS, DISASSEMBLE_REQUEST, DISASSEMBLE_ANSWER };

/* What the service asks: this, then the addresses. */
struct disassemble_message {
        uint64_t start, end;
        uint32_t address_count;
        uint32_t is_att;
};

#endif
