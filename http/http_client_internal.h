/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_HTTP_CLIENT_INTERNAL_H
#define CAIRN_HTTP_HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <time.h>

#include "http/http_client.h"

/** The value of Retry-After, seconds or an HTTP date, as a pause from now; 0 if malformed or in the past. */
uint64_t parse_retry_after_ms(const char *value, size_t n, time_t now);

#endif
