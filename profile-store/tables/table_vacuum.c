/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/table_vacuum.h"

#include <string.h>

#include "common/clock.h"

#define DAY_PREFIX "date="

/* ---- removed files ---------------------------------------------------------------------- */

/* A log written by another program may name anything: only names of our own parts are unlinked. */
static bool is_part_name(const char *name)
{
        size_t n = strlen(name);

        return *name != '_' && *name != '.' && n > 8 && strcmp(name + n - 8, ".parquet") == 0;
}

/* Whether the grace period of a removed file is over. */
static bool is_grace_over(struct table_logs *l, enum table t, const struct delta_file *f, int64_t now_ms)
{
        if (f->removed_ms <= now_ms)
                return f->removed_ms < now_ms - l->grace_ms;
        if (f->removed_ms > l->future_removals[t].latest_ms) {
                l->future_removals[t].latest_ms = f->removed_ms;
                l->future_removals[t].noticed_ns = monotonic_ns();
        }
        return monotonic_ns() - l->future_removals[t].noticed_ns > l->grace_ms * 1000000;
}

static enum status vacuum_table_removed(struct table_logs *l, enum table t, int64_t now_ms,
                                        struct table_vacuum_counts *ret, struct error *err)
{
        struct delta_snapshot *removed;
        enum status st = delta_removed_acquire(l->logs[t], &removed, err);

        if (st)
                return st;
        for (size_t i = 0; i < removed->file_count; i++) {
                const struct delta_file *f = removed->files[i];
                _cleanup_free_ char *key = NULL;
                enum status done = ST_NO_MEMORY;

                if (!is_grace_over(l, t, f, now_ms))
                        continue;
                if (!is_part_name(f->path)) {
                        delta_table_forget(l->logs[t], f);
                        continue;
                }
                key = make_table_key(t, f->path);
                if (key)
                        done = storage_remove(l->storage, key, st ? NULL : err);
                if (done && done != ST_NOT_FOUND) {
                        st = st ? st : done;
                        continue;
                }
                ret->removed_files += !done;
                ret->removed_bytes += done ? 0 : f->size;
                delta_table_forget(l->logs[t], f);
        }
        delta_snapshot_release(removed);
        return st;
}

enum status tables_vacuum_removed(struct table_logs *l, struct table_vacuum_counts *ret, struct error *err)
{
        int64_t now_ms = storage_now_ms(l->storage);
        struct table_vacuum_counts unused = { 0 };
        enum status first = ST_OK;

        for (int t = 0; t < TABLE_COUNT; t++) {
                enum status st = vacuum_table_removed(l, t, now_ms, ret ? ret : &unused, first ? NULL : err);

                first = first ? first : st;
        }
        return first;
}

/* ---- orphans ---------------------------------------------------------------------------- */

struct orphan_search {
        const struct table_logs *logs;
        const struct delta_snapshot *live, *removed;
        int64_t before_ms;  /* objects put before this time are removed */
        size_t prefix_size; /* of keys, before the name in the log */
        uint64_t found;
        enum status first; /* removal that failed */
};

static int compare_file_path(const void *key, const void *file)
{
        return strcmp(key, (*(const struct delta_file *const *)file)->path);
}

static bool is_in_snapshot(const struct delta_snapshot *s, const char *name)
{
        return s->file_count && bsearch(name, s->files, s->file_count, sizeof *s->files, compare_file_path);
}

/* Only in the table's folder and the folders of its days: others, such as the log's, are not ours. */
static bool is_orphan_name(const char *name)
{
        const char *slash = strchr(name, '/');

        if (!slash)
                return is_part_name(name);
        return strncmp(name, DAY_PREFIX, strlen(DAY_PREFIX)) == 0 && !strchr(slash + 1, '/') && is_part_name(slash + 1);
}

static enum status remove_orphan(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        struct orphan_search *o = context;
        const char *name = key + o->prefix_size;
        enum status st;

        if (info->modified_ms >= o->before_ms || !is_orphan_name(name) || is_in_snapshot(o->live, name) ||
            is_in_snapshot(o->removed, name))
                return ST_OK;
        st = storage_remove(o->logs->storage, key, o->first ? NULL : err);
        o->found += !st;
        if (st && st != ST_NOT_FOUND && !o->first)
                o->first = st;
        return ST_OK;
}

static enum status vacuum_table_orphans(struct table_logs *l, enum table t, struct orphan_search *o, struct error *err)
{
        _cleanup_free_ char *folder = make_table_key(t, "");
        struct delta_snapshot *live = NULL, *removed = NULL;
        enum status st = folder ? delta_table_refresh(l->logs[t], err) : error_no_memory(err);

        if (!st)
                st = delta_snapshot_acquire(l->logs[t], &live, err);
        if (!st)
                st = delta_removed_acquire(l->logs[t], &removed, err);
        if (!st) {
                o->live = live;
                o->removed = removed;
                o->prefix_size = strlen(folder);
                st = storage_list(l->storage, folder, "", remove_orphan, o, err);
                st = st ? st : o->first;
        }
        if (!st)
                st = storage_remove_unfinished(l->storage, folder, o->before_ms, &o->found, err);
        delta_snapshot_release(live);
        delta_snapshot_release(removed);
        return st;
}

/* Younger objects may be about to be committed, by this process or, before it was opened, by another one. */
static int64_t get_orphan_bound(const struct table_logs *l)
{
        int64_t now_ms = storage_now_ms(l->storage), bound = now_ms - ORPHAN_OPEN_S * INT64_C(1000);
        int64_t age_ms = l->grace_ms > ORPHAN_LEAST_S * INT64_C(1000) ? l->grace_ms : ORPHAN_LEAST_S * INT64_C(1000);

        if (!*l->node) /* else another node may be about to commit them */
                bound = bound > l->opened_ms ? bound : l->opened_ms;
        return bound < now_ms - age_ms ? bound : now_ms - age_ms;
}

enum status tables_vacuum_orphans(struct table_logs *l, struct table_vacuum_counts *ret, struct error *err)
{
        enum status first = ST_OK;

        for (int t = 0; t < TABLE_COUNT; t++) {
                struct orphan_search o = { .logs = l, .before_ms = get_orphan_bound(l) };
                enum status st = vacuum_table_orphans(l, t, &o, first ? NULL : err);

                first = first ? first : st;
                if (ret)
                        ret->orphans += o.found;
        }
        return first;
}

/* ---- logs ------------------------------------------------------------------------------- */

#define S_PER_DAY 86400

enum status tables_clean_up_logs(struct table_logs *l, struct delta_log_cleanup *ret, struct error *err)
{
        int64_t s = (storage_now_ms(l->storage) - l->grace_ms) / 1000;
        enum status first = ST_OK;

        s -= s % S_PER_DAY;
        for (int t = 0; t < TABLE_COUNT; t++) {
                enum status st = delta_table_clean_up_log(l->logs[t], s * 1000, ret, first ? NULL : err);

                first = first ? first : st;
        }
        if (*l->node) {
                enum status st = delta_table_expire_batch_ids(l->logs[TABLE_SAMPLES], first ? NULL : err);

                first = first ? first : st;
        }
        return first;
}
