/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_CONTEXT_SYMBOLS_H
#define CAIRN_SAMPLING_RUNTIMES_CONTEXT_SYMBOLS_H

/**
 * @file
 * Where an ELF file keeps the thread-local variable through which an OpenTelemetry SDK publishes the context of a
 * thread. In a program its place is fixed when it is linked. In a library the dynamic linker chooses the place when it
 * loads the file, and writes it to words that the relocations of the variable name.
 *
 * Source: OTEP 4947. System V ABI, AMD64 supplement, 4.4.1; ELF Handling For Thread-Local Storage, 3.4.6.
 */
#include <stdint.h>

#include "elf-image/elf_image.h"

#define CONTEXT_VARIABLE "otel_thread_ctx_v1"

struct context_symbols {
        uint64_t is_defined; /* 0: the file has no such variable */
        uint64_t offset;     /* in the thread-local block of the file */
        uint64_t is_program;
        uint64_t program_offset;  /* of a program: from the thread pointer, negative */
        uint64_t descriptor_slot; /* link-time address of the TLS descriptor, two words; 0: none; likewise: */
        uint64_t module_slot;     /* the word with the number of the module */
        uint64_t offset_slot;     /* the word with the offset from the thread pointer */
};

/** Zero where the file does not define the variable. */
void context_symbols_read(const struct elf_image *img, struct context_symbols *ret);

/** The same for the variable in which Go keeps the current g, of a file that has the runtime of Go. */
void context_symbols_read_go(const struct elf_image *img, struct context_symbols *ret);

#endif
