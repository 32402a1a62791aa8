/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_LLVM_ARGUMENTS_H
#define CAIRN_CLI_DROP_IN_LLVM_ARGUMENTS_H

/**
 * @file
 * The options of llvm-symbolizer and llvm-addr2line: those of LLVM 19.
 * Source: LLVM manual, "llvm-symbolizer".
 */
#include "cli/drop-in/llvm_output.h"
#include "cli/drop-in/tool_output.h"
#include "common/build_id.h"

enum markup_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct llvm_arguments {
        struct llvm_options options;
        const char *object;              /* borrowed from argv; NULL not given */
        char build_id[BUILD_ID_HEX_MAX]; /* in capitals; "" not given */
        bool is_addr2line;               /* addresses are hexadecimal without 0x, too; set by the caller */
        bool is_filter;                  /* of a log in symbolizer markup */
        enum markup_color color;
};

/**
 * Parse options; those about files are set in output.
 * @param a     set to the defaults.
 * @param argv  with owned items, which may be replaced.
 * @return the exit code; -1: go on. The other arguments are argv + optind.
 */
int parse_llvm_arguments(struct llvm_arguments *a, struct tool_output *output, int argc, char **argv);

/** Copy hexadecimal digits as capitals, of an odd number with 0 before it. False if the text is no build-id. */
bool parse_llvm_build_id(const char *text, char ret[static BUILD_ID_HEX_MAX]);

/** All of a number: decimal, or with 0x, 0b, 0o or 0 before it. */
bool parse_llvm_address(const char *text, bool is_addr2line, uint64_t *ret);

#endif
