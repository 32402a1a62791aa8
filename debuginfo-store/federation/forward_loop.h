/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_FORWARD_LOOP_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_FORWARD_LOOP_H

/**
 * @file
 * Loop prevention by X-Forwarded-For, which lists the servers that forwarded a request. A Cairn service appends a
 * random name generated at its start ("_cairn-" and 16 hex digits, an obfuscated identifier of RFC 7239, 6.3), and so
 * recognizes its own requests when they return. Other servers forward the list unchanged.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define FORWARDED_NAME_SIZE 24 /* including the NUL */
#define FORWARDED_SIZE 1024    /* of a header, including the NUL */
#define FORWARD_LIMIT 8        /* maximum number of forwarding servers, as in elfutils */

struct forward_list {
        char header[FORWARDED_SIZE];                   /* to send: the received list and self */
        char via[FORWARD_LIMIT * FORWARDED_NAME_SIZE]; /* names of the Cairn services in it, without self; "": none */
};

/** Generate a name. ST_OS if getrandom() fails. */
enum status forward_loop_make_name(char ret[static FORWARDED_NAME_SIZE], struct error *err) MUST_CHECK;

/**
 * @param header the received value; NULL or "": none.
 * @param self   the name of this service.
 * @return ST_OK; ST_TOO_BIG if FORWARD_LIMIT servers or this one have forwarded the request, or the header is too long:
 * it must not be forwarded again.
 */
enum status forward_loop_check(const char *header, const char *self, struct forward_list *ret,
                               struct error *err) MUST_CHECK;

/** Whether the last server in the list is a Cairn service. @param header NULL: no header. */
bool forward_loop_is_from_service(const char *header);

#endif
