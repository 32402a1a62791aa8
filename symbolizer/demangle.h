/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DEMANGLE_H
#define CAIRN_SYMBOLIZER_DEMANGLE_H

/**
 * @file
 * Readable names: C++ (Itanium), Rust (legacy and v0) and D, spelled as
 * `addr2line -C` spells them; every other name is readable already.
 *
 * Linkage names come from object files and may be hostile: a few bytes can
 * stand for an endless name. Names over LIMIT_MANGLED_BYTES or with a readable
 * form over LIMIT_DEMANGLED_BYTES stay as they are.
 *
 * Threads: any number, with a stack of 2 MiB or more; a scratch buffer belongs
 * to one.
 */
#include "common/buf.h"

/**
 * @param scratch its content is replaced.
 * @return borrowed: the readable name inside scratch (valid until scratch
 *         changes), or linkage_name itself when it is not mangled, cannot be
 *         read, passes a limit, or memory ran out.
 */
const char *symbol_demangle(const char *linkage_name, struct buf *scratch);

#endif
