/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_LLVM_OUTPUT_H
#define CAIRN_CLI_DROP_IN_LLVM_OUTPUT_H

/**
 * @file
 * The output of llvm-symbolizer: its styles LLVM, GNU and JSON.
 * Source: LLVM manual, "llvm-symbolizer"; the output of versions 14 and 19.
 */
#include "cli/symbols/answer_source.h"
#include "common/memory/buf.h"

enum llvm_style { LLVM_STYLE_LLVM, LLVM_STYLE_GNU, LLVM_STYLE_JSON };
enum llvm_functions { LLVM_FUNCTIONS_NONE, LLVM_FUNCTIONS_SHORT, LLVM_FUNCTIONS_LINKAGE };

struct llvm_options {
        enum llvm_style style;
        enum llvm_functions functions;
        bool demangle, inlines, addresses, pretty, base_names, verbose;
        uint64_t adjust_vma;
        uint64_t source_lines; /* of context around each line */
};

/**
 * Append the answer for an address.
 * @param a  its address is the one that was looked up: what was given, less options->adjust_vma.
 * @param module  as it was given, for JSON.
 */
void append_llvm_answer(const struct llvm_options *o, const char *module, const struct answer *a, struct buf *out);

/** Append the answer for a request without a usable address or object. @param address  NULL: none was given */
void append_llvm_failure(const struct llvm_options *o, const char *module, const uint64_t *address, const char *message,
                         struct buf *out);

#endif
