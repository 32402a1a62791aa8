/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store snapshot: a consistent copy of a data directory. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands/store/store_command.h"
#include "common/text/number_text.h"
#include "pipeline/snapshot.h"

enum status store_snapshot_command(const struct store_command *c, const char *dir, struct error *err)
{
        struct snapshot_result r;
        char bytes[40];
        enum status st = take_snapshot(c->data, dir, &r, err);

        if (st)
                return st;
        if (c->json)
                printf("{\"linked_files\":%" PRIu64 ",\"copied_files\":%" PRIu64 ",\"copied_bytes\":%" PRIu64
                       ",\"sample_files\":%" PRIu64 ",\"sample_rows\":%" PRIu64 "}\n",
                       r.linked_files, r.copied_files, r.copied_bytes, r.sample_files, r.sample_rows);
        else
                printf("%s: %s in %s; %s, %" PRIu64 " copied (%s)\n", dir, COUNTED(r.sample_rows, "sample", "samples"),
                       COUNTED(r.sample_files, "file", "files"), COUNTED(r.linked_files, "file linked", "files linked"),
                       r.copied_files, format_store_bytes(r.copied_bytes, bytes));
        return ST_OK;
}
