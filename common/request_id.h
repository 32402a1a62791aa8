/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_REQUEST_ID_H
#define CAIRN_COMMON_REQUEST_ID_H

/**
 * @file
 * Ids of requests, for the log and for answers (X-Request-Id): that of the client or of a proxy before it, else a
 * random one.
 *
 * Threads: any.
 */
#include <stdbool.h>

#define REQUEST_ID_MAX 128 /* characters of an id */
#define REQUEST_ID_SIZE (REQUEST_ID_MAX + 1)

/** Whether text is an id: 1 to REQUEST_ID_MAX letters, digits and "-._~:/+=@". */
bool request_id_is_valid(const char *text);

/** The id that was sent if it is valid, else a random one of 32 hexadecimal digits. @param sent  NULL: none */
void request_id_choose(const char *sent, char ret[static REQUEST_ID_SIZE]);

#endif
