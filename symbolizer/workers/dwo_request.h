/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_WORKERS_DWO_REQUEST_H
#define CAIRN_SYMBOLIZER_WORKERS_DWO_REQUEST_H

/**
 * @file
 * Requests for .dwo files from a confined worker. The worker cannot open files;
 * it sends a request with the directory and name from the skeleton unit to its
 * parent over a socket and receives a descriptor, or none. The parent decides
 * which files may be opened (symbolizer/extraction/debug_file_search.c). One request is in
 * flight at a time.
 *
 * A request is one packet: the unit's id and the attempt (8 and 4 bytes in this
 * machine's byte order), one byte that is 1 if the directory is known, then
 * directory and name, each NUL-terminated. The answer is one byte: 1 with a
 * descriptor, or 0.
 */
#include <pthread.h>

#include "dwarf/split_companion.h"

/** Create the socket pair, close-on-exec. */
enum status dwo_request_create_sockets(int *worker_ret, int *parent_ret, struct error *err) MUST_CHECK;

/** In the parent: answer one pending request. A malformed request gets no descriptor. */
void dwo_request_serve(const struct dwarf_dwo_source *from, int socket);

/** In the worker. Threads: any; requests are serialized. */
struct dwo_requester {
        int socket;
        pthread_mutex_t lock;
};
/** As open() of struct dwarf_dwo_source; the context is the requester. */
enum status dwo_request_send(void *asker, uint64_t id, const char *directory, const char *name, unsigned attempt,
                             int *fd_ret);

#endif
