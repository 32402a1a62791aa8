/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_HOTSPOT_LAYOUT_H
#define CAIRN_SAMPLING_RUNTIMES_HOTSPOT_LAYOUT_H

/**
 * @file
 * Layout of the structures of a running HotSpot of OpenJDK 8 or later.
 *
 * All offsets come from the tables that libjvm.so exports for debuggers (VMStructs, VMTypes), which some builds fill in
 * when they start, so they are read from the process. What differs between versions is the field that states a thing:
 * the code of a blob by its address or its offset, the debug information inside the blob or in memory of its own. A
 * process whose tables lack a field, or state impossible numbers, is refused rather than guessed.
 *
 * The process is a stranger: reads are bounded, and wrong values lead to a refusal.
 *
 * Threads: no shared state.
 * Source: OpenJDK share/runtime/vmStructs.hpp, vmStructs.cpp of 8, 11, 17, 21 and 25.
 */
#include <stdbool.h>

#include "bpf/hotspot_walk.h"
#include "sampling/runtimes/hotspot_symbols.h"
#include "sampling/runtimes/python_layout.h"
#include "sampling/runtimes/runtime_refusal.h"

/** An offset of a field, and its size in bytes; size 0: this version does not have it. */
struct hotspot_slot {
        uint16_t offset, size;
};

/** How to read names, lines and inlined methods. */
struct hotspot_objects {
        uint32_t version;
        uint64_t call_stub;     /* return address in the stub through which C++ calls Java code; 0: unknown */
        uint16_t blob_bytes;    /* of an nmethod: everything that is read of it */
        uint16_t pc_desc_bytes; /* of a PcDesc */
        struct hotspot_slot blob_name, blob_code, blob_frame_complete;
        struct hotspot_slot blob_data;       /* offset of the data section */
        struct hotspot_slot blob_mutable;    /* address of data in memory of their own */
        struct hotspot_slot blob_relocation; /* bytes of relocations at the start of these */
        struct hotspot_slot method, compilation;
        struct hotspot_slot immutable; /* address of debug information in memory of its own; the offsets are in it */
        struct hotspot_slot immutable_bytes;
        struct hotspot_slot scopes_address; /* of the scopes, or: */
        struct hotspot_slot scopes;         /* offset */
        struct hotspot_slot pcs;
        struct hotspot_slot pcs_end; /* 0: the scopes follow */
        struct hotspot_slot metadata;
        uint64_t code; /* of all heaps of the code cache */
        uint32_t code_bytes;
        struct hotspot_slot method_entry; /* the address of its code for the interpreter */
        struct hotspot_slot method_const;
        struct hotspot_slot const_constants, const_flags, const_code_bytes, const_name, const_words;
        uint16_t const_bytes; /* of a ConstMethod; the bytecode follows */
        struct hotspot_slot constants_holder, constants_file;
        uint16_t constants_bytes; /* of a ConstantPool; its entries follow */
        struct hotspot_slot class_constants, class_name, class_file;
        struct hotspot_slot symbol_length;
        uint16_t symbol_text;
        uint8_t number_base; /* subtracted from each byte of a compressed number */
};

struct hotspot_layout {
        struct hotspot_process process;
        struct hotspot_objects objects;
};

enum hotspot_attach {
        HOTSPOT_ATTACHED,
        HOTSPOT_STARTING, /* its code cache does not exist yet: try again */
        HOTSPOT_REFUSED,
};

/**
 * Find the layout of a process.
 * @param s  addresses in the process.
 * @param refusal_ret  for HOTSPOT_REFUSED.
 */
enum hotspot_attach hotspot_layout_find(const struct process_memory *m, const struct hotspot_symbols *s,
                                        struct hotspot_layout *ret, struct runtime_refusal *refusal_ret);

/** The value of a field in a copy of an object; those of 4 bytes are signed. 0 if it is not in the copy. */
int64_t hotspot_get_field(const uint8_t *object, size_t size, struct hotspot_slot field);

#endif
