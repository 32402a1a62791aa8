/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_DEMANGLE_H
#define CAIRN_SYMBOL_INDEX_DEMANGLE_H

/**
 * @file
 * Demangling of C++ (Itanium), Rust (legacy and v0) and D names, with the output
 * of `addr2line -C`; other names are returned unchanged.
 *
 * Linkage names are untrusted: a few bytes can expand to an unbounded name. Names over LIMIT_MANGLED_BYTES or with a
 * readable form over LIMIT_DEMANGLED_BYTES are returned unchanged.
 *
 * Threads: any number, with a stack of 2 MiB or more; a scratch buffer belongs to one thread.
 */
#include "common/memory/buf.h"

/**
 * @param scratch its content is replaced.
 * @return borrowed: the readable name inside scratch (valid until scratch changes), or linkage_name itself if it is not
 *         mangled, is malformed, exceeds a limit, or when out of memory.
 */
const char *symbol_demangle(const char *linkage_name, struct buf *scratch);

#endif
