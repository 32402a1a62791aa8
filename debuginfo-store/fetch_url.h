/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FETCH_URL_H
#define CAIRN_DEBUGINFO_STORE_FETCH_URL_H

/**
 * @file
 * Whom a URL asks, for the worker that fetches. What cannot be read is like nothing else, and is not followed.
 *
 * Threads: any.
 */
#include <stdbool.h>

/** The same scheme, host and port: what opens the one may be sent to the other. */
bool fetch_url_same_origin(const char *from, const char *to);

/** To the same host, and to TLS on any port; without it to the same port and not from TLS. */
bool fetch_url_may_follow(const char *from, const char *to);

/** This machine, as 127.0.0.0/8, ::1 or localhost: no proxy is asked for it. */
bool fetch_url_is_loopback(const char *url);

#endif
