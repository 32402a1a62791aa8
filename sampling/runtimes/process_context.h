/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_PROCESS_CONTEXT_H
#define CAIRN_SAMPLING_RUNTIMES_PROCESS_CONTEXT_H

/**
 * @file
 * The context that an OpenTelemetry SDK publishes for its process: the attributes of the resource, and what is needed
 * to read the contexts of threads. It is a message in a mapping that has a name, and may be replaced at any time: a
 * stamp in its head tells whether that happened while it was read.
 *
 * Threads: one context belongs to one thread.
 * Source: OTEP 4719 of the OpenTelemetry specification; OTEP 4947, "Process Context: Thread-Local Reference Data".
 */
#include "common/memory/arena.h"
#include "sampling/runtimes/python_layout.h"

#define CONTEXT_NAMES_MAX 256 /* of attributes of threads: their numbers are bytes */

struct context_label {
        const char *key, *value;
};

struct process_context {
        uint64_t published_ns; /* the stamp; 0: nothing was read */
        struct arena arena;    /* of everything below */
        struct context_label *labels;
        size_t label_count;
        const char **names; /* of the attributes of threads */
        size_t name_count;
        bool has_threads; /* threads publish contexts of a known form */
        uint64_t dropped; /* labels and names past a limit, or with a value that is no text or number */
};

enum process_context_state {
        PROCESS_CONTEXT_READ,
        PROCESS_CONTEXT_UNCHANGED, /* since it was read into this context */
        PROCESS_CONTEXT_CHANGING,  /* it was replaced each time that it was read */
        PROCESS_CONTEXT_NONE,      /* there is none at this address, or one of another version */
        PROCESS_CONTEXT_BAD,       /* it cannot be read, or is malformed or too large */
};

/**
 * @param address  of the mapping.
 * @param c  in: zeroed, or what was read before; replaced if the state is PROCESS_CONTEXT_READ. Owned, with
 *           process_context_deinit().
 */
enum process_context_state process_context_read(const struct process_memory *m, uint64_t address,
                                                struct process_context *c);
void process_context_deinit(struct process_context *c);

#endif
