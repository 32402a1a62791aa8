/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_HTTP_RAW_H
#define CAIRN_TESTS_SUPPORT_HTTP_RAW_H

/* An HTTP client that sends exactly the given bytes. */
#include <stddef.h>
#include <stdint.h>

/** A connection to 127.0.0.1:port with a time limit of 20 s on each read. */
int raw_connect(uint16_t port);
void raw_send(int fd, const void *data, size_t n);
/**
 * Read to the end of the connection; NUL-terminated, owned. errno_ret (may be NULL): the error that ended it, 0 for an
 * orderly shutdown.
 */
char *raw_read_all(int fd, size_t *size_ret, int *errno_ret);
/** Send text, read the whole response, close. */
char *raw_request(uint16_t port, const char *text);
/** The status code of a response, 0 if it is malformed. */
int raw_status(const char *answer);
/** The body of a response. */
const char *raw_body(const char *answer);

#endif
