/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_URL_PART_H
#define CAIRN_SERVER_URL_PART_H

#include <stdbool.h>

#include "common/buf.h"

/** Append text percent-encoded for a URL's path; unreserved characters and those of also stay. Source: RFC 3986, 2.3. */
void url_part_append(struct buf *to, const char *text, const char *also);

/** Does a ".." in it lead above its root? */
bool path_climbs_out(const char *path);

#endif
