/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_INSPECTOR_H
#define CAIRN_PACKAGE_TREES_INSPECTOR_H

/**
 * @file
 * Service side of a scan: runs confined workers that each inspect many files, since starting a worker costs more than
 * inspecting most files. If a file crashes its worker, that file fails and the next one gets a new worker.
 *
 * Threads: inspector_run() may be called from several threads, each with its own context.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "package-trees/package_contents.h"

/**
 * The worker's message about the last file. The protocol is a SOCK_SEQPACKET socket: the worker sends this message, the
 * parent replies with one byte and the next file's descriptor, or with the byte alone if there are no more files.
 */
struct inspector_answer {
        int32_t status; /* enum status, result of the last file */
        bool is_first;  /* no file precedes */
        uint64_t size;  /* size of the contents */
        char text[240]; /* why it failed */
};

struct inspector_options {
        const char *scratch_dir;
        const atomic_bool *cancel;
        /** The next file, owned by the inspector; -1: none queued, inspector_run() returns. */
        int (*next)(void *context);
        /**
         * Result of the last file. May take contents (and zero it); after a failure it has the objects found before.
         */
        void (*done)(void *context, struct package_contents *contents, enum status st, const struct error *why);
        void *context;
};

/**
 * Run one worker until it exits. ST_OK also if a file crashed it; ST_OS if it cannot be started; ST_BUSY if cancelled.
 */
enum status inspector_run(const struct inspector_options *options, struct error *err) MUST_CHECK;

#endif
