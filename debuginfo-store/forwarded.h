/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FORWARDED_H
#define CAIRN_DEBUGINFO_STORE_FORWARDED_H

/**
 * @file
 * Where a question came along, as X-Forwarded-For tells it: one item for each
 * server it has passed. Ours add a name that is drawn when the service starts
 * ("_cairn-" and 16 hex digits, an obfuscated identifier of RFC 7239, 6.3),
 * so that a service knows a question of its own when it comes back; other
 * servers hand the list on as it is.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define FORWARDED_NAME_SIZE 24   /* with its NUL */
#define FORWARDED_SIZE 1024      /* of a header, with its NUL */
#define FORWARD_LIMIT 8          /* servers a question may have passed, as in elfutils */

struct forwarded {
        char header[FORWARDED_SIZE]; /* to send on: what came, and self */
        char via[FORWARD_LIMIT * FORWARDED_NAME_SIZE]; /* the services of our kind it passed, "" none; self left out */
};

/** A new name; ST_OS when there is no randomness. */
enum status forwarded_name(char ret[static FORWARDED_NAME_SIZE], struct error *err) MUST_CHECK;

/**
 * @param header the value that came, NULL or "" none.
 * @param self   the name of this service.
 * @return ST_OK; ST_TOO_BIG when the question has passed FORWARD_LIMIT servers or this one, or does not say so within
 *         reason: it is not to be asked any further.
 */
enum status forwarded_parse(const char *header, const char *self, struct forwarded *ret, struct error *err) MUST_CHECK;

/** Does the question come straight from a service of our kind, as the last item of the list says? NULL is none. */
bool forwarded_by_service(const char *header);

#endif
