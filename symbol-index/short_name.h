/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_SHORT_NAME_H
#define CAIRN_SYMBOL_INDEX_SHORT_NAME_H

/**
 * @file
 * Short form of a readable name, for labels with little space: the qualified name of a function without parameters and
 * return type.
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
#include "common/memory/buf.h"

/**
 * @param name          readable: the result of symbol_demangle(), or a name sent by a client.
 * @param linkage_name  determines the language; "": unknown, then determined by the syntax of name.
 * @param scratch       its content is replaced.
 * @return borrowed: inside scratch (valid until scratch changes), never longer than name, never ""; or name itself if
 *         it is already short or when out of memory.
 */
const char *symbol_short_name(const char *name, const char *linkage_name, struct buf *scratch);

/** The size of the first n bytes of a name without " [clone .x]", " (.x)", ".isra.0", ".cold" and the like; never 0. */
size_t symbol_name_without_clones(const char *name, size_t n);

/** The size of the first n bytes of a name without "::h" and the 16 hexadecimal digits of a Rust hash at their end. */
size_t symbol_name_without_rust_hash(const char *name, size_t n);

#endif
