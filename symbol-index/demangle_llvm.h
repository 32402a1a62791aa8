/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_DEMANGLE_LLVM_H
#define CAIRN_SYMBOL_INDEX_DEMANGLE_LLVM_H

/**
 * @file
 * LLVM's demangler of C++ (Itanium) names, bounded. It knows the names of C++20, with constraints and explicit object
 * parameters, and names of any length.
 *
 * The demangler is compiled from LLVM's header, with a call at the entry of each of its functions. There the work is
 * counted and the depth of the stack is measured; its memory comes from a block of fixed size. Past a bound, or where
 * one of its assertions fails, it is left by longjmp, which is safe since it owns nothing but that block. So a crafted
 * name costs at most work and memory in proportion to its size, the same on every machine. The library of the same
 * code, libc++abi, has no such bounds: names of 100 bytes can keep it busy for hours.
 *
 * Threads: any number, with a stack of 2 MiB or more.
 */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @param name    n bytes that begin with _Z.
 * @param ret     the readable name, without a NUL, of at most max bytes.
 * @return its size; 0 if the name is not one of C++ or exceeds a bound.
 */
size_t llvm_demangle_name(const char *name, size_t n, char *ret, size_t max);

#ifdef __cplusplus
}
#endif

#endif
