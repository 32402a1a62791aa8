/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_LLVM_OUTPUT_H
#define CAIRN_CLI_DROP_IN_LLVM_OUTPUT_H

/**
 * @file
 * The output of llvm-symbolizer: its styles LLVM, GNU and JSON.
 * Source: LLVM manual, "llvm-symbolizer"; the output of versions 14 and 19.
 */
#include "cli/drop-in/object_symbols.h"
#include "cli/symbols/answer_source.h"
#include "common/memory/buf.h"

enum llvm_style { LLVM_STYLE_LLVM, LLVM_STYLE_GNU, LLVM_STYLE_JSON };
enum llvm_functions { LLVM_FUNCTIONS_NONE, LLVM_FUNCTIONS_SHORT, LLVM_FUNCTIONS_LINKAGE };

struct llvm_options {
        enum llvm_style style;
        enum llvm_functions functions;
        bool demangle, inlines, addresses, pretty, base_names, verbose;
        bool are_tags_kept; /* of addresses */
        uint64_t adjust_vma;
        uint64_t source_lines; /* of context around each line */
};

/** What an answer is about. */
struct llvm_subject {
        const char *module;                   /* as it was given, for JSON */
        const struct answer_text symbol;      /* that was given in place of an address; empty: none */
        const struct object_symbol *function; /* the symbol of the function, for its start address; NULL unknown */
};

/**
 * Append the answer for an address.
 * @param a  its address is the one that was looked up: what was given, less options->adjust_vma.
 */
void append_llvm_answer(const struct llvm_options *o, const struct llvm_subject *s, const struct answer *a,
                        struct buf *out);

/** Append the answer to a DATA request. @param variable  NULL unknown */
void append_llvm_data(const struct llvm_options *o, const char *module, uint64_t address,
                      const struct object_symbol *variable, struct buf *out);

/** Append the answer to a FRAME request. @param report  of variables, symbolizer/extraction/extract_variables.h */
void append_llvm_variables(const struct llvm_options *o, const char *module, uint64_t address, const struct buf *report,
                           struct buf *out);

/** Append the answer for a request without a usable address or object. @param address  NULL: none was given */
void append_llvm_failure(const struct llvm_options *o, const char *module, const uint64_t *address, const char *message,
                         struct buf *out);

#endif
