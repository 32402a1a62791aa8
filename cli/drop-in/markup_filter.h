/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_MARKUP_FILTER_H
#define CAIRN_CLI_DROP_IN_MARKUP_FILTER_H

/**
 * @file
 * llvm-symbolizer --filter-markup: a log with elements in place of addresses is copied, with functions and lines in
 * place of the elements. Elements of modules and their mappings are replaced by one line for each module; what follows
 * one in its line is left out. Elements that are not known are copied.
 *
 * Threads: one.
 * Source: LLVM manual, "Symbolizer Markup Format"; the output of version 19.
 */
#include "cli/drop-in/llvm_output.h"
#include "cli/drop-in/markup_context.h"
#include "cli/drop-in/tool_output.h"

struct markup_filter {
        const struct llvm_options *options;
        struct tool_output *output;
        bool has_colors;
        /* Zero at first. */
        struct markup_context context;
        const char *line;   /* being filtered */
        unsigned color;     /* of its text: 30 to 37; 0 the usual one */
        bool is_bold;       /* its text */
        bool has_open_line; /* the summary of a module, to which mappings are added */
        size_t open_module;
        struct markup_mmap *added; /* owned; mappings of the open line */
        size_t added_count, added_capacity;
};

/** @param f  the first three members set, the others zero. */
void markup_filter_line(struct markup_filter *f, const char *line);

/** End the output and free what the filter owns. */
void markup_filter_finish(struct markup_filter *f);

#endif
