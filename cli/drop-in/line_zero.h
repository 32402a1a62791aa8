/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_LINE_ZERO_H
#define CAIRN_CLI_DROP_IN_LINE_ZERO_H

/**
 * @file
 * llvm-symbolizer --skip-line-zero: for code to which the compiler gave no line, the place of the last code before it
 * that has one.
 *
 * Threads: one.
 * Source: LLVM manual, "llvm-symbolizer".
 */
#include "cli/symbols/answer_source.h"

#define LINE_ZERO_BYTES_MAX 65536 /* that are searched before an address */

/**
 * Answer one address.
 * @param give  called once. The innermost frame has the place of the code before it if is_approximate.
 */
enum status answer_without_line_zero(struct answer_source *source, uint64_t address,
                                     void (*give)(void *printer, const struct answer *a, bool is_approximate),
                                     void *printer, struct error *err) MUST_CHECK;

#endif
