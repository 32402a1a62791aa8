/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DROP_IN_SOURCE_CONTEXT_H
#define CAIRN_CLI_DROP_IN_SOURCE_CONTEXT_H

/**
 * @file
 * The lines of source around a line, as llvm-symbolizer prints them.
 */
#include "cli/symbols/answer_source.h"
#include "common/memory/buf.h"

/**
 * Append count lines with the given one in the middle, as in "12 >: text": those of the text that the debug file
 * embeds, else those of the file on this machine. Appends nothing without either.
 * @param source   of the frame; NULL: nothing is embedded.
 * @param address  of the frame.
 */
void append_source_lines(const struct answer_source *source, uint64_t address, const struct answer_frame *f,
                         uint64_t count, struct buf *out);

#endif
