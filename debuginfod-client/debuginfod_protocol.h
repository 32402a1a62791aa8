/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFOD_CLIENT_PROTOCOL_H
#define CAIRN_DEBUGINFOD_CLIENT_PROTOCOL_H

/**
 * @file
 * Packets between a debuginfo_fetcher and its worker, over one SOCK_SEQPACKET socket.
 *
 * The fetcher sends DEBUGINFOD_FIND, the worker answers with any number of DEBUGINFOD_PROGRESS and one DEBUGINFOD_DONE.
 * On DEBUGINFOD_CANCEL it aborts the transfer and answers DEBUGINFOD_DONE with ECANCELED.
 */
#include <stdint.h>

#include "common/build_id.h"

enum debuginfod_packet { DEBUGINFOD_FIND = 1, DEBUGINFOD_CANCEL, DEBUGINFOD_PROGRESS, DEBUGINFOD_DONE };

struct debuginfod_request {
        uint32_t packet;
        char build_id[BUILD_ID_HEX_MAX];
};

struct debuginfod_reply {
        uint32_t packet;
        int32_t error;       /* of DEBUGINFOD_DONE: an errno; 0: found */
        uint64_t done_bytes; /* of DEBUGINFOD_PROGRESS; total 0: unknown */
        uint64_t total_bytes;
        char path[320]; /* of DEBUGINFOD_DONE: relative to the cache directory */
        char url[256];  /* "" while unknown, or if the file came from the cache */
};

/* Descriptors of the worker. */
enum { DEBUGINFOD_WORKER_SOCKET = 3, DEBUGINFOD_WORKER_VERBOSE = 4 };

#endif
