/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_USUAL_MANGLING_H
#define CAIRN_SYMBOL_INDEX_USUAL_MANGLING_H

/**
 * @file
 * Tells at about a twentieth of the cost of demangling that a name is written in the usual part of the C++ (Itanium) or
 * Rust v0 grammar, which every demangler knows. All names of most programs are.
 *
 * Source: Itanium C++ ABI, 5.1; Rust RFC 2603.
 */
#include <stdbool.h>
#include <stddef.h>

/**
 * @param name  n bytes and a NUL.
 * @return false: unknown, the name must be demangled to know. True does not promise that back references and template
 *         parameters exist: those of a compiler do.
 */
bool has_usual_mangling(const char *name, size_t n);

#endif
