/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_INDEX_PROGRESS_H
#define CAIRN_CLI_INDEX_PROGRESS_H

/**
 * @file
 * How far a run over many files is, as one line of a terminal that is written anew.
 *
 * Threads: one.
 */
#include <stdbool.h>
#include <stdint.h>

struct index_progress {
        uint64_t done, total;   /* files */
        uint64_t bytes;         /* of the files that are done */
        int64_t begin_ns;
        bool is_shown;          /* the line is on the terminal now */
        bool is_terminal;
};

/** Nothing is ever written unless is_terminal. */
void index_progress_init(struct index_progress *p, uint64_t total, bool is_terminal);

/** Say which file is read now. */
void index_progress_show(struct index_progress *p, const char *file);

/** One file more is done. */
void index_progress_done(struct index_progress *p, uint64_t bytes);

/** Take the line away, so that another text can be written. */
void index_progress_hide(struct index_progress *p);

/** Megabytes (10^6) of files a second so far. */
double index_progress_rate(const struct index_progress *p);

#endif
