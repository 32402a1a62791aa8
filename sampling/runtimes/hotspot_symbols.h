/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_HOTSPOT_SYMBOLS_H
#define CAIRN_SAMPLING_RUNTIMES_HOTSPOT_SYMBOLS_H

/**
 * @file
 * The symbols by which an ELF file is known to contain HotSpot: libjvm.so exports them for debuggers, and strip keeps
 * them.
 *
 * Threads: no shared state.
 * Source: OpenJDK share/runtime/vmStructs.hpp.
 */
#include "elf-image/elf_image.h"

/** Addresses of variables. */
struct hotspot_symbols {
        uint64_t structs; /* pointer to the table of fields; 0: there is no HotSpot */
        uint64_t types;   /* pointer to the table of types */
        uint64_t struct_stride, type_stride;
};

/** Set ret to link-time addresses. */
void hotspot_symbols_read(const struct elf_image *img, struct hotspot_symbols *ret);

#endif
