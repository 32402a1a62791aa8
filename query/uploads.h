/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_UPLOADS_H
#define CAIRN_QUERY_UPLOADS_H

/**
 * @file
 * Which debuginfo would help most, and the command that gets it, as JSON and
 * as text for people: docs/formats/query-api.md. Private to query/.
 */
#include "common/buf.h"
#include "profile-store/scan.h"

struct uploads_form {
        struct work_meter *meter; /* NULL: unlimited; borrowed */
        const char *server; /* named in commands; NULL: they name none */
        uint64_t limit;     /* objects in each list; 0: all */
        int64_t from_unix_ns, to_unix_ns;
};

void uploads_put_json(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret);
void uploads_put_text(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret);

#endif
