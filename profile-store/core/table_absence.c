/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/table_absence.h"

#include <string.h>

#include "common/metrics.h"
#include "common/program/log.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/tables/node_identity.h"

static struct metric absent =
        METRIC_GAUGE("cairn_store_absent_tables",
                     "Tenants whose tables have not been read since the start, because the object store is away.", "");

enum status store_check_tables(struct profile_store *s, struct error *err)
{
        struct profile_store_health h;

        if (!has_absent_tables(s))
                return ST_OK;
        profile_store_get_health(s, &h);
        return error_set(err, ST_OS, "the tables have not been read since the start: %.200s", h.flush_failure);
}

void store_end_absence(struct profile_store *s)
{
        if (atomic_exchange(&s->has_absent_tables, false))
                metric_add(&absent, -1);
}

/* ---- opening ---- */

#define DEFAULT_REMOVED_GRACE_MS 3600000

static enum status open_logs(struct profile_store *s, const char *node, struct table_logs *ret, struct error *err)
{
        const struct profile_store_options *o = &s->options;
        uint64_t grace_ms = o->removed_grace_ms ? o->removed_grace_ms : DEFAULT_REMOVED_GRACE_MS;
        enum status st = o->check_tables ? o->check_tables(o->check_context, s->storage, err) : ST_OK;

        return st ? st : table_logs_open(s->storage, node, false, (int64_t)grace_ms, ret, err);
}

static enum status begin_absence(struct profile_store *s, const char *node, const struct error *why, struct error *err)
{
        s->tables = tables_create_empty();
        if (!s->tables)
                return error_no_memory(err);
        s->tables->is_absent = true;
        snprintf(s->logs.node, sizeof s->logs.node, "%s", node);
        atomic_store(&s->has_absent_tables, true);
        metric_add(&absent, 1);
        health_set_flush(s, ST_OS, why);
        log_warn("store",
                 "cannot read the tables in %.80s, so queries have only what is queued here; retrying at each flush: "
                 "%s",
                 storage_root(s->storage), why->text);
        return ST_OK;
}

enum status store_open_tables(struct profile_store *s, const char *node, struct error *err)
{
        struct error why = { 0 };
        enum status st;

        metric_register(&absent);
        if (s->options.when_away == TABLES_ARE_AWAY)
                st = error_set(&why, ST_OS, "the object store was away when the service was started");
        else
                st = open_logs(s, node, &s->logs, &why);
        if (!st)
                st = tables_load(&s->logs, false, NULL, &s->tables, &why);
        if (st == ST_OS && !storage_refused(&why) && s->options.when_away != TABLES_ARE_NEEDED) {
                table_logs_close(&s->logs);
                return begin_absence(s, node, &why, err);
        }
        if (!st)
                delta_table_copy_id(s->logs.logs[TABLE_SAMPLES], s->samples_id);
        if (st && err)
                *err = why;
        return st;
}

enum status store_open_queue(struct profile_store *s, struct error *err)
{
        enum status st = head_open(s, err);

        if (st || !has_absent_tables(s) || raw_queue_get_synced(s->queue))
                return st;
        return node_identity_replace(s->dir, s->logs.node, err);
}

/* ---- the return of the store ---- */

/* The identity stays where it is, since other threads read it. */
static void adopt_logs(struct table_logs *to, const struct table_logs *from)
{
        to->storage = from->storage;
        to->grace_ms = from->grace_ms;
        to->opened_ms = from->opened_ms;
        to->read_only = from->read_only;
        memcpy(to->logs, from->logs, sizeof to->logs);
}

enum status store_find_tables(struct profile_store *s, struct error *err)
{
        enum status st = ST_OK;

        if (!s->logs.storage) {
                struct table_logs opened;

                st = open_logs(s, s->logs.node, &opened, err);
                if (st)
                        return st;
                adopt_logs(&s->logs, &opened);
                delta_table_copy_id(s->logs.logs[TABLE_SAMPLES], s->samples_id);
        }
        s->behind = true; /* the flushed position is not known */
        st = store_reconcile_after_failure(s, err);
        if (st)
                return st;
        store_end_absence(s);
        log_info("store", "the tables in %.80s are read: the object store is back", storage_root(s->storage));
        return head_release(s, s->flushed, err);
}
