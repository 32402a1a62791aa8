/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier run left in the spool. */
#include <inttypes.h>
#include <stdlib.h>

#include "agent/outbox_internal.h"
#include "common/log.h"

#define FOREIGN_NAMES_MAX 8 /* named in the log */

struct foreign_files {
        const char *dir;
        size_t count;
};

static void on_foreign(void *context, const char *name)
{
        struct foreign_files *f = context;

        if (f->count++ < FOREIGN_NAMES_MAX)
                log_warn("agent", "the spool '%s' holds '%.64s', which is no batch of the agent's; leaving it alone", f->dir,
                         name);
}

static enum status take_found(struct outbox *o, const struct spool_found *found, struct error *err)
{
        for (size_t i = 0; i < found->count; i++) {
                struct batch *b = calloc(1, sizeof *b);

                if (!b)
                        return error_no_memory(err);
                b->number = found->entries[i].number;
                b->disk_bytes = found->entries[i].disk_bytes ? found->entries[i].disk_bytes : spool_disk_bytes(0);
                o->next_number = b->number + 1;
                o->stats.spooled++;
                o->stats.spool_bytes += b->disk_bytes;
                outbox_append(o, b);
        }
        (void)outbox_make_room(o, 0);
        if (o->stats.spooled)
                log_info("agent", "%" PRIu64 " batches of an earlier run wait in the spool '%s'", o->stats.spooled,
                         spool_dir(o->spool));
        if (found->damaged)
                log_warn("agent", "the spool '%s' holds %zu damaged files (*.damaged); remove them once nobody wants them",
                         spool_dir(o->spool), found->damaged);
        return ST_OK;
}

enum status outbox_init(struct outbox *o, const char *dir, uint64_t spool_max, struct error *err)
{
        struct foreign_files foreign = { .dir = dir };
        struct spool_found found;
        enum status st;

        *o = (struct outbox){ .spool_max = spool_max, .next_number = 1 };
        if (!dir)
                return ST_OK;
        st = spool_open(dir, on_foreign, &foreign, &o->spool, &found, err);
        if (st)
                return st;
        if (foreign.count > FOREIGN_NAMES_MAX)
                log_warn("agent", "the spool '%s' holds %zu files that are not the agent's", dir, foreign.count);
        o->damaged_files = found.damaged;
        st = take_found(o, &found, err);
        spool_found_deinit(&found);
        if (st)
                outbox_deinit(o);
        return st;
}
