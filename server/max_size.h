/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_MAX_SIZE_H
#define CAIRN_SERVER_MAX_SIZE_H

/**
 * @file
 * X-DEBUGINFOD-MAXSIZE: a client that wants nothing larger.
 * Source: elfutils, debuginfod(8).
 */
#include "http/server.h"

/**
 * Say how large it is, in X-DEBUGINFOD-SIZE.
 * @param size of what would be sent; 0 not known yet.
 * @return false, with 406 answered, when it is more than the request allows.
 */
bool max_size_allows(struct http_request *req, uint64_t size) MUST_CHECK;

#endif
