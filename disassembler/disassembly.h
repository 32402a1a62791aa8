/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DISASSEMBLER_DISASSEMBLY_H
#define CAIRN_DISASSEMBLER_DISASSEMBLY_H

/**
 * @file
 * Instructions of an ELF file, and the form in which the worker that decodes them answers.
 *
 * The answer is little-endian: u32 count of ranges, u32 count of instructions; per range u64 start, u64 end, u32 count
 * of its instructions, u8 whether it was cut, the symbol with a NUL; per instruction u64 address, u64 target, u8 size,
 * u8 enum code_flow, u8 whether it has a target, its bytes, mnemonic and operands, each with a NUL. The worker may have
 * been taken over by the file, so reading checks everything that is said here.
 *
 * Threads: any number of readers of one disassembly.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

#define INSTRUCTION_BYTES_MAX 15

enum code_flow {
        FLOW_NEXT, /* goes on with the next instruction */
        FLOW_JUMP, /* may go on elsewhere */
        FLOW_CALL,
        FLOW_RETURN,
        FLOW_UNKNOWN, /* bytes that are no instruction: shown as data */
        FLOW_COUNT
};

struct code_instruction {
        uint64_t address;
        uint64_t target;      /* of a jump or a call; of others the address that an operand is relative to */
        const uint8_t *bytes; /* size of them */
        const char *mnemonic; /* printable ASCII */
        const char *operands; /* likewise, "" none */
        uint8_t size;         /* 1 to INSTRUCTION_BYTES_MAX */
        uint8_t flow;         /* enum code_flow */
        bool has_target;
};

/** Code from start to end, half-open: a function, or what is around an address without a symbol. */
struct code_range {
        uint64_t start, end;
        const char *symbol;    /* linkage name by the file's symbol tables, "" none; any bytes but NUL */
        uint32_t first, count; /* of the instructions: ascending addresses within the range, none overlaps another */
        bool is_cut;           /* the range goes on, past a limit */
};

struct disassembly {
        struct code_range *ranges; /* owned, as is all that the fields point to */
        struct code_instruction *instructions;
        uint32_t range_count, instruction_count;
        void *bytes;
};

/**
 * Read a worker's answer.
 * @param ret untouched on failure; disassembly_deinit() it.
 * @return ST_BAD_DATA when it breaks the form; ST_TOO_BIG past the limits.
 */
enum status disassembly_read(const void *bytes, size_t size, struct disassembly *ret, struct error *err) MUST_CHECK;
void disassembly_deinit(struct disassembly *d); /* also fine on a zeroed one */
#define _cleanup_disassembly_ _cleanup_(disassembly_deinit)

/** Append the answer's form; the failure is that of the buffer. */
void disassembly_write(const struct disassembly *d, struct buf *ret);

#endif
