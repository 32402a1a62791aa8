/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DISASSEMBLER_DISASSEMBLY_H
#define CAIRN_DISASSEMBLER_DISASSEMBLY_H

/**
 * @file
 * Instructions of an ELF file, and the worker's answer format.
 *
 * The answer is little-endian: u32 count of ranges, u32 count of instructions; per range u64 start, u64 end, u32 count
 * of its instructions, u8 whether it was cut, the symbol with a NUL; per instruction u64 address, u64 target, u8 size,
 * u8 enum code_flow, u8 whether it has a target, its bytes, mnemonic and operands, each with a NUL. The worker may be
 * compromised by the file, so reading verifies all of this.
 *
 * Threads: any number of readers of one disassembly.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

#define INSTRUCTION_BYTES_MAX 15

enum code_flow {
        FLOW_NEXT, /* execution continues with the next instruction */
        FLOW_JUMP, /* conditional or not */
        FLOW_CALL,
        FLOW_RETURN,
        FLOW_UNKNOWN, /* bytes that cannot be decoded, shown as data */
        FLOW_COUNT
};

struct code_instruction {
        uint64_t address;
        uint64_t target;      /* of a jump or call; otherwise the address that an operand refers to */
        const uint8_t *bytes; /* `size` bytes */
        const char *mnemonic; /* printable ASCII */
        const char *operands; /* printable ASCII, "" none */
        uint8_t size;         /* 1 to INSTRUCTION_BYTES_MAX */
        uint8_t flow;         /* enum code_flow */
        bool has_target;
};

/** Code in [start, end): a function, or a window from an address without a symbol. */
struct code_range {
        uint64_t start, end;
        const char *symbol;    /* linkage name from a symbol table, "" none; any bytes but NUL */
        uint32_t first, count; /* instructions: ascending addresses within the range, not overlapping */
        bool is_cut;           /* the code continues past a limit */
};

struct disassembly {
        struct code_range *ranges; /* owned, as is everything that the fields point to */
        struct code_instruction *instructions;
        uint32_t range_count, instruction_count;
        void *bytes;
};

/**
 * Read a worker's answer.
 * @param ret untouched on failure; disassembly_deinit() it.
 * @return ST_BAD_DATA when it violates the format; ST_TOO_BIG past the limits.
 */
enum status disassembly_read(const void *bytes, size_t size, struct disassembly *ret, struct error *err) MUST_CHECK;
void disassembly_deinit(struct disassembly *d); /* accepts a zeroed one */
#define _cleanup_disassembly_ _cleanup_(disassembly_deinit)

/** Append in the worker's answer format; a failure is that of the buffer. */
void disassembly_write(const struct disassembly *d, struct buf *ret);

#endif
