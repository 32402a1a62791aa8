/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_INSPECTOR_H
#define CAIRN_SCAN_INSPECTOR_H

/**
 * @file
 * Service side of a scan: runs confined workers that each inspect many files, since starting a worker costs more than
 * inspecting most files. When a file crashes its worker, that file fails and the next one gets a new worker.
 *
 * Threads: inspector_run() may be called from several threads, with a context each.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "scan/contents.h"

/**
 * The worker's message about the last file. The protocol is a SOCK_SEQPACKET socket: the worker sends this message, the
 * parent replies with one byte and the next file's descriptor, or with the byte alone when there is no further file.
 */
struct inspector_answer {
        int32_t status; /* enum status, result of the last file */
        bool is_first;  /* there was no file before */
        uint64_t size;  /* size of the contents */
        char text[240]; /* why it failed */
};

struct inspector_options {
        const char *scratch_dir;
        const atomic_bool *cancel;
        /** The next file, taken by the inspector; -1: none queued, inspector_run() returns. */
        int (*next)(void *context);
        /** Result result of the last file. contents may be taken (and zeroed); after a failure it holds the objects
         * found before it. */
        void (*done)(void *context, struct scan_contents *contents, enum status st, const struct error *why);
        void *context;
};

/** Run one worker until it exits. ST_OK also when a file crashed it; ST_OS when it cannot be started; ST_BUSY when
 * cancelled. */
enum status inspector_run(const struct inspector_options *options, struct error *err) MUST_CHECK;

#endif
