/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FETCH_H
#define CAIRN_DEBUGINFO_STORE_FETCH_H

/**
 * @file
 * One object from one upstream: libdebuginfod in a worker process
 * (`cairn worker fetch URL BUILD-ID KIND SECONDS FORWARDED-FOR`, descriptor 3
 * takes the file, 4 the answer), with a private cache that goes with the worker, so that
 * neither its cache nor its idea of a miss outlives the call.
 */
#include <stdatomic.h>

#include "debuginfo-store/store.h"

struct fetch_question {
        const char *url;
        const struct build_id *id;
        enum object_kind kind;
        const char *forwarded_for;   /* X-Forwarded-For to send */
        uint64_t timeout_s;
};

/**
 * @param out empty file; holds the object after ST_OK.
 * @return ST_NOT_FOUND when the upstream definitely has none; ST_BUSY for
 *         every transient failure, with the reason.
 */
enum status fetch_object(const struct fetch_question *question, int out, const atomic_bool *cancel,
                         struct error *err) MUST_CHECK;

/** The worker's side. @param args URL BUILD-ID KIND SECONDS FORWARDED-FOR */
#define FETCH_WORKER_ARGS 5
enum status fetch_worker(char *const args[static FETCH_WORKER_ARGS], int out, int answer, struct error *err) MUST_CHECK;

#endif
