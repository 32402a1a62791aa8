/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_REPORT_H
#define CAIRN_UPLOADER_REPORT_H

/**
 * @file
 * Output of cairn-upload: on stderr a line per file, or a progress line on a terminal; on stdout the summary as text or
 * JSON.
 *
 * Threads: any; lines are not interleaved.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "uploader/upload_list.h"

struct report {
        pthread_mutex_t lock;
        bool is_terminal;    /* stderr is one */
        bool progress_shown; /* a progress line has to be cleared */
        size_t done, total;  /* files to send */
        uint64_t total_bytes;
        _Atomic uint64_t moved;    /* uncompressed bytes sent so far */
        uint64_t stripped;         /* programs */
        uint64_t unreadable;       /* paths that could not be searched: absent, damaged archives, other files */
        uint64_t problems;         /* all files that could not be read or sent */
        enum status first_failure; /* determines the exit code */
};

void report_init(struct report *r);

/** Print an error about one file, and count it. */
void report_add_problem(struct report *r, const struct error *why);

/** The same for a path whose files, if it has any, are unknown. */
void report_add_unreadable(struct report *r, const struct error *why);

/** Print a remark that is not counted as a problem. */
void report_add_note(struct report *r, const char *path, const char *text);

/** Report that an item was sent, is stored already or failed. */
void report_add_item(struct report *r, const struct upload_item *item);

/** Redraw the progress line on a terminal. */
void report_draw_progress(struct report *r);

/** The summary on stdout: one line of text. */
void report_print_summary(struct report *r, const struct upload_list *list, bool dry_run);

/** The summary on stdout: one JSON object. */
void report_print_json(struct report *r, const struct upload_list *list, const char *server, bool dry_run);

#endif
