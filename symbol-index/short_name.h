/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_SHORT_NAME_H
#define CAIRN_SYMBOL_INDEX_SHORT_NAME_H

/**
 * @file
 * Short form of a readable name, for labels with little room: the qualified name
 * of a function without parameters and return type.
 *
 * C++   no parameters and return type; template arguments are "<...>"; "{lambda(int)#1}" is "{lambda#1}"; anonymous
 *       namespaces stay; "[clone .isra.0]", ".cold" and "[abi:cxx11]" are removed.
 * Rust  generic arguments are "<...>", "<T as Trait>" stays; the hash is removed.
 * Go    only the last element of the package's path; type arguments are "[...]".
 * D, C and other languages: unchanged except for clone suffixes.
 *
 * Names are untrusted: scanning is linear, depth is bounded, and a name with unbalanced brackets is returned unchanged.
 *
 * Threads: no shared state; a scratch buffer belongs to one thread.
 */
#include "common/buf.h"

/**
 * @param name          readable: the result of symbol_demangle(), or the name that a sender gave.
 * @param linkage_name  decides the language; "" unknown, then the syntax of name decides.
 * @param scratch       its content is replaced.
 * @return borrowed: inside scratch (valid until scratch changes), never longer than name, never ""; or name itself
 *         when it is short already or memory ran out.
 */
const char *symbol_short_name(const char *name, const char *linkage_name, struct buf *scratch);

#endif
