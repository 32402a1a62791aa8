/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_EMBEDDED_TEXTS_H
#define CAIRN_CLI_SYMBOLS_EMBEDDED_TEXTS_H

/**
 * @file
 * The source files that the line tables of one file embed. The last few that were found are kept; a file without any is
 * read once.
 *
 * Threads: one.
 */
#include "cli/symbols/answer_source.h"
#include "common/memory/buf.h"
#include "symbolizer/extraction/extract.h"

#define EMBEDDED_TEXTS_KEPT 8

struct embedded_text {
        char *path;         /* owned; NULL: unused */
        uint64_t address;   /* that it was read for */
        struct buf report;  /* symbolizer/extraction/extract_source.h */
        bool is_unreadable; /* no report: the worker failed, as for a text over its limit, and is not tried again */
};

struct embedded_texts {
        struct embedded_text items[EMBEDDED_TEXTS_KEPT];
        size_t next; /* the one that is replaced next */
        bool has_none;
};

/** @param t  all zero, or used before. */
void embedded_texts_deinit(struct embedded_texts *t);

/**
 * As find_text in struct answer_source; the filter of the inputs is replaced meanwhile. A failure is returned once for
 * a path, then it has no text.
 */
enum status embedded_texts_find(struct embedded_texts *t, struct extract_inputs *in, uint64_t address, const char *path,
                                struct answer_text *ret, struct error *err) MUST_CHECK;

#endif
