/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_RUNTIME_REFUSAL_H
#define CAIRN_SAMPLING_RUNTIMES_RUNTIME_REFUSAL_H

/**
 * @file
 * Why the runtime of a process is not read: a reason that metrics count, and a text for the log and the doctor.
 */
enum runtime_refusal_reason {
        REFUSAL_NONE,
        REFUSAL_VERSION,   /* no layout is known for its version */
        REFUSAL_BUILD,     /* a build with another layout: debug, free-threaded */
        REFUSAL_SYMBOLS,   /* it exports no symbols by which it could be read */
        REFUSAL_RIGHTS,    /* this user may not read its memory */
        REFUSAL_MEMORY,    /* its memory cannot be read, or does not hold what it should */
        REFUSAL_THREADS,   /* its threads are not found */
        REFUSAL_PROCESSOR, /* not on this processor */
        REFUSAL_LIMIT,     /* too many runtimes */
        REFUSAL_COUNT
};

struct runtime_refusal {
        enum runtime_refusal_reason reason;
        const char *text; /* static; completes "... is not read: " */
};

#endif
