/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_CASE_FOLD_H
#define CAIRN_COMMON_TEXT_CASE_FOLD_H

/**
 * @file
 * Which letters are equal without regard to case: Unicode's simple case folding, of one code point to one.
 *
 * towlower() was rejected: it depends on the process's locale, and misses letters with several lower or upper cases.
 * Threads: no state.
 */
#include <stddef.h>
#include <stdint.h>

/** Most letters that are equal to each other: theta, for example, has four. */
#define CASE_FOLD_MAX 4

/**
 * All code points that are equal to a code point, itself included, in no particular order.
 * @return their number, at least 1.
 */
size_t case_fold_equals(uint32_t code, uint32_t ret[static CASE_FOLD_MAX]);

#endif
