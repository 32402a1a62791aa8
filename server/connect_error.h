/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CONNECT_ERROR_H
#define CAIRN_SERVER_CONNECT_ERROR_H

/**
 * @file
 * Errors as clients of the Connect protocol read them: {"code": "...", "message": "..."}.
 * Source: connectrpc.com/docs/protocol, "Error Codes".
 */
#include "common/buf.h"

/** For put_error of a route. */
const char *connect_put_error(struct buf *to, const char *type, unsigned code, const char *text);

#endif
