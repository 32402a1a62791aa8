/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_INSPECTOR_PROTOCOL_H
#define CAIRN_SCAN_INSPECTOR_PROTOCOL_H

/**
 * @file
 * What the confined worker of a scan and its parent say to each other over a
 * socket of packets: the worker says how the last file went, the parent answers
 * with the next one, one byte with a descriptor, or with one byte alone.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct inspector_answer {
        int32_t status;     /* enum status, of the last file */
        bool is_first;      /* there was none yet */
        uint64_t size;      /* bytes of what was found */
        char text[240];     /* why it failed */
};

/** In the worker; the parent answers with fd_pass(). @param fd_ret -1: there is no further file. */
enum status inspector_ask(int socket, const struct inspector_answer *answer, int *fd_ret, struct error *err) MUST_CHECK;

#endif
