/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_DEMANGLE_H
#define CAIRN_SYMBOL_INDEX_DEMANGLE_H

/**
 * @file
 * Demangling of C++ (Itanium), Rust (legacy and v0) and D names by libiberty, with the output of `addr2line -C`. C++
 * names that it does not know, and those over 4 KiB, are demangled by LLVM's demangler (demangle_llvm.h), with the
 * output of `llvm-cxxfilt`. A suffix from '@' on, as of stubs and versions, is kept. Other names are returned
 * unchanged.
 *
 * Linkage names are untrusted: a few bytes can expand to an unbounded name. Names over LIMIT_MANGLED_BYTES or with a
 * readable form over LIMIT_DEMANGLED_BYTES are returned unchanged, as are Rust and D names over 4 KiB.
 *
 * Threads: any number, with a stack of 2 MiB or more; a scratch buffer belongs to one thread.
 */
#include <stdbool.h>

#include "common/memory/buf.h"

/**
 * @param scratch its content is replaced.
 * @return borrowed: the readable name inside scratch (valid until scratch changes), or linkage_name itself if it is not
 *         mangled, is malformed, exceeds a limit, or when out of memory.
 */
const char *symbol_demangle(const char *linkage_name, struct buf *scratch);

/** Whether symbol_demangle() knows a name of a compiler; for most names much faster than demangling it. */
bool symbol_can_be_demangled(const char *name);

#endif
