/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_HOTSPOT_STREAMS_H
#define CAIRN_SAMPLING_RUNTIMES_HOTSPOT_STREAMS_H

/**
 * @file
 * Decodes HotSpot's compressed tables: line numbers, and scopes of compiled code.
 *
 * Numbers have one to five bytes (UNSIGNED5): each is a digit of weight 64^i after a base is subtracted, 0 up to JDK 19
 * and 1 since; a byte below 192 is the last one.
 *
 * The bytes come from a stranger. Threads: no shared state.
 * Source: OpenJDK share/code/compressedStream.hpp (17), share/utilities/unsigned5.hpp (21), share/code/scopeDesc.cpp.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/reader.h"

/** False at the end of the data. @param base  subtracted from each byte. */
bool hotspot_read_number(struct reader *r, uint8_t base, uint32_t *ret);

/** Bytes of the line table at the start of the data, with its end mark; 0 if it does not end within them. */
size_t hotspot_measure_lines(const uint8_t *table, size_t size, uint8_t base);

/** The line of a bytecode; 0: unknown. Entries are not sorted: the one of the greatest bytecode up to ours counts. */
uint32_t hotspot_find_line(const uint8_t *table, size_t size, uint8_t base, uint32_t bytecode);

/** A method at an address in compiled code, its own or one that was inlined. */
struct hotspot_scope {
        uint32_t caller;  /* offset of the scope into which it was inlined; 0: it is the outermost one */
        uint32_t method;  /* number in the metadata, from 1; 0: none */
        int32_t bytecode; /* its index; below 0: none */
};

/** False when the data end. @param ret  untouched on failure. */
bool hotspot_read_scope(const uint8_t *data, size_t size, uint8_t base, struct hotspot_scope *ret);

#endif
