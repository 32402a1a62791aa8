/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_LLVM_OUTPUT_H
#define CAIRN_CLI_DROP_IN_LLVM_OUTPUT_H

/**
 * @file
 * The output of llvm-symbolizer: its styles LLVM, GNU and JSON.
 * Source: LLVM manual, "llvm-symbolizer"; the output of version 19.
 */
#include "cli/drop-in/object_symbols.h"
#include "cli/symbols/answer_source.h"
#include "common/json/json_out.h"
#include "common/memory/buf.h"

enum llvm_style { LLVM_STYLE_LLVM, LLVM_STYLE_GNU, LLVM_STYLE_JSON };
enum llvm_functions { LLVM_FUNCTIONS_NONE, LLVM_FUNCTIONS_SHORT, LLVM_FUNCTIONS_LINKAGE };

struct llvm_options {
        enum llvm_style style;
        enum llvm_functions functions;
        bool demangle, inlines, addresses, pretty, base_names, verbose;
        bool are_tags_kept; /* of addresses */
        bool skips_line_zero;
        uint64_t adjust_vma;
        uint64_t source_lines; /* of context around each line */
};

/** The name of the function of a frame, as the options want it; empty: none. */
struct answer_text get_llvm_function_text(const struct llvm_options *o, const struct answer_frame *f);

/** What an answer is about. */
struct llvm_subject {
        const char *module;                   /* as it was given, for JSON */
        const struct answer_source *source;   /* for texts of source files; NULL none */
        bool has_no_address;                  /* the request could not be read */
        uint64_t tag;                         /* added to the address that is shown */
        bool is_approximate;                  /* the innermost place is that of other code, line_zero.h */
        const struct object_symbol *function; /* the symbol of the function, for its start and its file; NULL unknown */
        struct answer_text function_name; /* of that symbol, if it is not that of DWARF; demangled if that is wanted */
};

/** The name of a symbol, as it is: a demangled one has the suffix of a clone in parentheses, as in "f(int) (.isra.0)".
 */
void append_llvm_symbol_name(struct buf *out, const char *name, bool is_readable);

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

/** An answer to a request that names a symbol in place of an address: a place for each function of this name. */
struct llvm_symbol_answer {
        struct llvm_options options; /* inlined calls are left out */
        struct buf *out;
        struct json_out json;
        size_t count; /* places so far */
};

void llvm_symbol_answer_begin(struct llvm_symbol_answer *a, const struct llvm_options *o, struct buf *out);
/** Add a place, unless its file is unknown. */
void llvm_symbol_answer_add(struct llvm_symbol_answer *a, const struct llvm_subject *s, const struct answer *answer);
/** @param symbol  without its offset */
void llvm_symbol_answer_end(struct llvm_symbol_answer *a, const char *module, const struct answer_text *symbol);

/** What a request is for. */
enum llvm_command { LLVM_CODE, LLVM_DATA, LLVM_FRAME };

/**
 * Append the answer to a request without a usable address or object.
 * @param address  NULL: none was given.
 * @param symbol   that was given in its place; empty: none.
 * @param message  for JSON; NULL: the request could not be read, and an answer without a place is appended.
 */
void append_llvm_failure(const struct llvm_options *o, enum llvm_command command, const char *module,
                         const uint64_t *address, const struct answer_text *symbol, const char *message,
                         struct buf *out);

#endif
