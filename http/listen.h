/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_LISTEN_H
#define CAIRN_HTTP_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct listen_address {
        char host[256];
        uint16_t port;    /* 0: any free port */
        bool is_loopback; /* all addresses of the host are loopback addresses */
};

/** "HOST:PORT", "[V6]:PORT", ":PORT" (all addresses) or "HOST" (default_port). ST_USAGE. */
enum status parse_listen_address(const char *text, uint16_t default_port, struct listen_address *ret,
                                 struct error *err) MUST_CHECK;

/**
 * Open a non-blocking listening socket. @param port_ret its port. @return ST_USAGE if the host has no address; ST_OS.
 */
enum status open_listen_socket(const char *host, uint16_t port, int *fd_ret, uint16_t *port_ret,
                               struct error *err) MUST_CHECK;

#endif
