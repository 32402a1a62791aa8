/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DISASSEMBLER_DISASSEMBLE_INTERNAL_H
#define CAIRN_DISASSEMBLER_DISASSEMBLE_INTERNAL_H

#include <stdint.h>

/* File descriptors of the worker. */
enum { DISASSEMBLE_EXECUTABLE = 3, DISASSEMBLE_SYMBOLS, DISASSEMBLE_REQUEST, DISASSEMBLE_ANSWER };

/* The service's request; address_count addresses (uint64_t) follow. */
struct disassemble_message {
        uint64_t start, end;
        uint32_t address_count;
        uint32_t is_att;
};

#endif
