/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_ASK_H
#define CAIRN_SYMBOLIZER_EXTRACT_ASK_H

/**
 * @file
 * How a confined worker gets .dwo files: it cannot open any, so it asks its
 * parent over a socket for one after the other, by the names that the skeleton
 * has, and gets a descriptor or nothing. The parent decides which files may be
 * handed over (symbolizer/extract_find_dwo.h), and neither has more than one
 * open for it at a time.
 *
 * A question is one packet: the unit's id and the attempt (8 and 4 bytes of this
 * machine's order), 1 or 0 for with or without a directory, directory and name,
 * each with its NUL. The
 * answer is one byte, 1 with a descriptor or 0.
 */
#include <pthread.h>

#include "dwarf/companion.h"

/** Two ends of a socket for the questions, close-on-exec. */
enum status dwo_ask_sockets(int *worker_ret, int *parent_ret, struct error *err) MUST_CHECK;

/** In the parent: answer what can be read. What is malformed gets no descriptor. */
void dwo_ask_answer(const struct dwarf_dwo_source *from, int socket);

/** In the worker. Threads: any; they wait for each other. */
struct dwo_asker {
        int socket;
        pthread_mutex_t lock;
};
/** As open() of struct dwarf_dwo_source; the context is the asker. */
enum status dwo_ask(void *asker, uint64_t id, const char *directory, const char *name, unsigned attempt, int *fd_ret);

#endif
