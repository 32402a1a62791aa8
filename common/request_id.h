/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_REQUEST_ID_H
#define CAIRN_COMMON_REQUEST_ID_H

/**
 * @file
 * Request ids, for the log and responses (X-Request-Id): from the client or a proxy, else random.
 *
 * Threads: any.
 */
#include <stdbool.h>

#define REQUEST_ID_MAX 128 /* characters */
#define REQUEST_ID_SIZE (REQUEST_ID_MAX + 1)

/**
 * Copy the sent id if it is valid (1 to REQUEST_ID_MAX letters, digits and "-._~:/+=@"), else generate a random one of
 * 32 hexadecimal digits. @param sent  may be NULL */
void request_id_choose(const char *sent, char ret[static REQUEST_ID_SIZE]);

#endif
