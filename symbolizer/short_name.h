/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SHORT_NAME_H
#define CAIRN_SYMBOLIZER_SHORT_NAME_H

/**
 * @file
 * The short form of a readable name, for labels that have little room: what a function is called and where it
 * belongs, without what it takes and returns.
 *
 * C++   no parameters and return type; template arguments are "<...>"; "{lambda(int)#1}" is "{lambda#1}"; anonymous
 *       namespaces stay; "[clone .isra.0]", ".cold" and "[abi:cxx11]" go.
 * Rust  generic arguments are "<...>", "<T as Trait>" stays; the hash goes.
 * Go    only the last element of the package's path; type arguments are "[...]".
 * D, C and everything else stays, but for the suffixes of clones.
 *
 * Names come from outside and may hold anything: scanning is linear, depth is bounded, and a name whose brackets do
 * not match stays as it is.
 *
 * Threads: no shared state; a scratch buffer belongs to one thread.
 */
#include "common/buf.h"

/**
 * @param name          readable: what symbol_demangle() gave, or what a sender called it.
 * @param linkage_name  tells the language; "" when it is unknown, then the name's look decides.
 * @param scratch       its content is replaced.
 * @return borrowed: inside scratch (valid until scratch changes), never longer than name, never ""; or name itself
 *         when it is short already or memory ran out.
 */
const char *symbol_short_name(const char *name, const char *linkage_name, struct buf *scratch);

#endif
