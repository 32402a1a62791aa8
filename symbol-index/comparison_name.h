/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_COMPARISON_NAME_H
#define CAIRN_SYMBOL_INDEX_COMPARISON_NAME_H

/**
 * @file
 * Normal form of a function's readable name, for comparing builds: what compilers add to a name, and choose anew in
 * each build, is removed.
 *
 * | in the name                                  | normal form            | without numbers |
 * | "f.cold", "f.isra.0", "f.constprop.0.part.1" | "f"                    |                 |
 * | "f(int) [clone .isra.0]", "f(int) (.cold)"   | "f(int)"               |                 |
 * | "f.llvm.123", "f.lto_priv.0", "f.__uniq.7"   | "f"                    |                 |
 * | "a::f::h0123456789abcdef" (Rust)             | "a::f"                 |                 |
 * | "a[9c2f0e1d]::f" (Rust v0)                   | "a::f"                 |                 |
 * | "f[abi:cxx11]()"                             | "f()"                  |                 |
 * | "f()::{lambda(int)#1}::operator()(int)"      | "f()::{lambda#1}::..." | "{lambda}"      |
 * | "f()::'lambda0'(int)::..." (LLVM's form)     | "{lambda#2}"           | "{lambda}"      |
 * | "f()::$_3::..." (clang)                      | "{lambda$3}"           | "{lambda}"      |
 * | "f()::(anonymous struct)::operator()"         | as it is               | "{lambda}"      |
 * | "a::f::{closure#0}", "a::f::{{closure}}"     | as it is               | "{closure}"     |
 * | "{unnamed type#1}", "{impl#2}"               | as it is               | "{impl}"        |
 * | "main.f.func1.2", "main.f.gowrap1" (Go)      | as it is               | "main.f.func."  |
 * | "A<B<int> >"                                 | "A<B<int>>"            |                 |
 *
 * Numbers of lambdas are those of their order in a function (clang: in a file): the same number may be another lambda
 * in the next build. Which form decides is up to the caller (query/engine/function_matching.h). Parameters stay, since
 * overloads are different functions.
 *
 * Names are untrusted: scanning is linear, and a name with unbalanced brackets is only copied.
 *
 * Threads: no shared state; a scratch buffer belongs to one thread.
 */
#include "common/memory/buf.h"

enum comparison_form { COMPARISON_NUMBERED, COMPARISON_WITHOUT_NUMBERS };

/**
 * @param name     readable, as of symbol_demangle().
 * @param file     path of its source, which identifies Go; "": unknown.
 * @param scratch  its content is replaced.
 * @return borrowed: inside scratch (valid until scratch changes), never ""; or name itself if it has this form already,
 *         exceeds the max of scratch, or when out of memory.
 */
const char *symbol_comparison_name(const char *name, const char *file, enum comparison_form form, struct buf *scratch);

#endif
