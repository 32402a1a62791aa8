/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_REPORT_H
#define CAIRN_UPLOADER_REPORT_H

/**
 * @file
 * What cairn-upload says: a line per file, or one progress line on a terminal,
 * on stderr; the summary, or JSON, on stdout.
 *
 * Threads: any; lines do not mix.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "uploader/upload_list.h"

struct report {
        pthread_mutex_t lock;
        bool is_terminal;    /* stderr is one */
        bool progress_shown; /* a progress line waits to be overwritten */
        size_t done, total;  /* files to send */
        uint64_t total_bytes;
        _Atomic uint64_t moved;    /* unpacked bytes on their way so far */
        uint64_t stripped;         /* programs */
        uint64_t problems;         /* files that could not be read or sent */
        enum status first_failure; /* decides the exit code */
};

void report_init(struct report *r);

/** An error about one file: one line on stderr, counted. */
void report_problem(struct report *r, const struct error *why);

/** A remark that counts as nothing. */
void report_note(struct report *r, const char *path, const char *text);

/** One more item was sent, found there or failed. */
void report_item(struct report *r, const struct upload_item *item);

/** Draw the progress line anew, on a terminal. */
void report_progress(struct report *r);

/** The summary on stdout: one line of text. */
void report_summary(struct report *r, const struct upload_list *list, bool dry_run);

/** The summary on stdout: one JSON object. */
void report_json(struct report *r, const struct upload_list *list, const char *server, bool dry_run);

#endif
