/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_NAME_SCAN_H
#define CAIRN_SYMBOLIZER_NAME_SCAN_H

/** @file Finding one's way in a readable C++, Rust or Go name, for symbol_short_name(). Private to it. */
#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

struct name_scan {
        const char *text; /* size bytes and a NUL, or another byte that may be read */
        size_t size, at;
};

/** Does text stand at `at`? */
bool name_scan_starts(const struct name_scan *s, size_t at, const char *text);

/** As name_scan_starts() for a whole word: no letter or digit beside it. */
bool name_scan_word(const struct name_scan *s, size_t at, const char *word);

/** May template arguments follow this byte? */
bool name_char_takes_arguments(char c);

/**
 * Behind the bracket that closes the one at `at`; 0 when none does, or they nest deeper than NAME_DEPTH_MAX.
 * '<' and '>' of operators, arrows and comparisons in parentheses are not brackets.
 */
#define NAME_DEPTH_MAX 512
size_t name_scan_balanced(const struct name_scan *s, size_t at);

/** Behind the symbol of the operator whose word stands at `at`; 0 for an operator that is named by a type. */
size_t name_scan_operator(const struct name_scan *s, size_t at);

/** Behind what may follow parameters: const, volatile, &, &&, noexcept, [abi:...]. */
size_t name_scan_qualifiers(const struct name_scan *s, size_t at);

/** The size of the name without " [clone .x]", " (.x)", ".isra.0", ".cold" and their like at its end; never 0. */
size_t name_without_clones(const char *name, size_t n);

/** Take "::h" and 16 hexadecimal digits off the end. */
void name_drop_rust_hash(struct buf *name);

/** Has the name "::" outside of brackets, or parameters behind a word? */
bool name_looks_scoped(const char *name, size_t n);

/** Is it "path/package.Function" or has it type arguments in "[]" behind a word? */
bool name_looks_go(const char *name, size_t n);

#endif
