/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_V8_SYMBOLS_H
#define CAIRN_SAMPLING_RUNTIMES_V8_SYMBOLS_H

/**
 * @file
 * The constants for post-mortem debuggers (v8dbg_...) by which an ELF file is known to contain V8, and the layout of
 * V8's objects that they and the version state.
 *
 * Every build of Node.js exports them as constant data, and strip keeps them. Offsets are taken from them; where a
 * version has no symbol for one, the source below has the number for this range of versions.
 *
 * Threads: no shared state.
 * Source: V8 tools/gen-postmortem-metadata.py, src/objects/ of 7.8, 8.4, 9.4, 10.2, 11.3, 12.4, 13.6 and 14.6.
 */
#include <stdbool.h>

#include "bpf/v8_walk.h"
#include "elf-image/elf_image.h"
#include "sampling/runtimes/v8_positions.h"

#define V8_OPERAND_SCALES 3 /* operands of single, double and quadruple width */

/** How to read names and lines. Offsets are from the start of an object. */
struct v8_objects {
        uint32_t version;      /* major << 8 | minor; 0: no V8, or one that is not read */
        uint16_t string_types; /* instance types below are those of strings */
        uint16_t shared_type, script_type, scope_info_type, bytecode_type, code_type, interpreter_data_type,
                stream_type;
        uint16_t debug_info_type;
        uint8_t shared_name, shared_script, shared_data;
        uint8_t scope_slots;                           /* start of the slots of a ScopeInfo */
        uint8_t scope_locals_count, scope_first_local; /* numbers of slots */
        uint8_t script_source, script_name;
        struct v8_position_format positions;
        uint8_t bytecode_lines; /* the source position table in a BytecodeArray */
        uint8_t bytecode_start;
        uint8_t code_deoptimization, code_lines; /* tables in a Code */
        uint8_t code_start;        /* of the instructions: a pointer in Code, or where they begin in the object */
        uint8_t code_size;         /* 4 bytes */
        uint8_t code_stream_start; /* of the instructions in an InstructionStream; 0: they are in the Code */
        uint8_t code_flags;        /* 4 bytes, the kind of code in the lowest 4 bits */
        uint8_t maglev_kind;       /* of code that Maglev generated; 0: none */
        uint8_t literals_index, inlining_index, function_index; /* slots of the deoptimization data */
        uint8_t bytecode_sizes[V8_OPERAND_SCALES][256];         /* of instructions, without a prefix; 0: unknown */
};

/** V8 in a file. Compared byte by byte. */
struct v8_symbols {
        struct v8_layout layout;
        struct v8_objects objects; /* version 0: it is not read */
};

/** Returns whether the file contains V8. */
bool v8_symbols_read(const struct elf_image *img, struct v8_symbols *ret);

#endif
