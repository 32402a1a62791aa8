/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_INSPECTOR_H
#define CAIRN_SCAN_INSPECTOR_H

/**
 * @file
 * Has confined workers look at many files: each worker takes one file after the
 * other, since starting one costs more than looking at most files. A file that
 * kills its worker fails, and the next file gets a new one.
 *
 * Threads: inspector_run() may be called from several threads, with a context each.
 */
#include <stdatomic.h>

#include "scan/found.h"

struct inspector_options {
        const char *scratch_dir;
        const atomic_bool *cancel;
        /** The next file, owned by the inspector from then on; -1: none for now, and inspector_run() returns. */
        int (*next)(void *context);
        /** How the file that came last went. found may be taken (and zeroed); with a failure it holds what came before it. */
        void (*done)(void *context, struct found *found, enum status st, const struct error *why);
        void *context;
};

/** One worker's life. ST_OK also when a file killed it; ST_OS when none can be started; ST_BUSY when cancelled. */
enum status inspector_run(const struct inspector_options *options, struct error *err) MUST_CHECK;

#endif
