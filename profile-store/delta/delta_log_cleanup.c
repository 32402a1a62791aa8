/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_log_cleanup.h"

#include <assert.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "profile-store/delta/delta_batch_ids.h"
#include "profile-store/delta/delta_checkpoint.h"
#include "profile-store/delta/delta_replay.h"

/* A file of the log. */
struct log_file {
        char *name; /* owned */
        int64_t version, modified_ms;
        uint64_t size;
        bool is_commit, is_checkpoint; /* of the kinds that Cairn writes */
};

struct log_files {
        struct log_file *items; /* by version */
        size_t count, capacity;
        int64_t newest_checkpoint; /* -1: none */
};

static void log_files_deinit(struct log_files *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->items[i].name);
        free(l->items);
}

/* Whether the text after the version is that of a file kind of PROTOCOL.md. */
static bool is_log_suffix(const char *s)
{
        return strcmp(s, DELTA_COMMIT_SUFFIX) == 0 || strcmp(s, ".crc") == 0 || ends_with(s, ".compacted.json") ||
               (strncmp(s, ".checkpoint.", 12) == 0 && (ends_with(s, ".parquet") || ends_with(s, ".json")));
}

static int compare_log_files(const void *a, const void *b)
{
        const struct log_file *x = a, *y = b;

        return x->version != y->version ? (x->version < y->version ? -1 : 1) : strcmp(x->name, y->name);
}

static enum status append_log_file(struct log_files *l, const char *name, int64_t version, const char *suffix,
                                   const struct storage_info *info, struct error *err)
{
        struct log_file *f;

        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        f = &l->items[l->count];
        *f = (struct log_file){ .name = strdup(name),
                                .version = version,
                                .modified_ms = info->modified_ms,
                                .size = info->size,
                                .is_commit = strcmp(suffix, DELTA_COMMIT_SUFFIX) == 0,
                                .is_checkpoint = strcmp(suffix, DELTA_CHECKPOINT_SUFFIX) == 0 };
        if (!f->name)
                return error_no_memory(err);
        if (f->is_checkpoint && version > l->newest_checkpoint)
                l->newest_checkpoint = version;
        l->count++;
        return ST_OK;
}

static enum status note_removable_file(void *context, const char *name, const struct storage_info *info,
                                       struct error *err)
{
        const char *suffix = "";
        int64_t version = delta_parse_version(name, &suffix);

        return version < 0 || !is_log_suffix(suffix) ? ST_OK
                                                     : append_log_file(context, name, version, suffix, info, err);
}

/*
 * Find the newest checkpoint below bound that is not newer than the last commit made before before_ms; -1 without one.
 * Commits are read in order up to the first newer one: their times may be out of order if the clock was set.
 */
static int64_t find_cutoff_checkpoint(const struct log_files *l, int64_t before_ms, int64_t bound)
{
        int64_t candidate = -1, ret = -1;

        for (size_t i = 0; i < l->count; i++) {
                const struct log_file *f = &l->items[i];

                if (f->is_checkpoint && f->version < bound)
                        candidate = f->version;
                if (!f->is_commit)
                        continue;
                if (f->modified_ms > before_ms)
                        return ret;
                if (candidate >= 0 && candidate <= f->version)
                        ret = candidate;
        }
        return ret;
}

/* Check that a checkpoint and the commits after it yield the state s. */
static enum status verify_checkpoint(const struct delta_place *p, int64_t version, const struct delta_state *s,
                                     struct error *err)
{
        struct delta_state read;
        enum status st;

        delta_state_init(&read);
        st = delta_replay_checkpoint(p, version, &read, err);
        if (!st)
                st = delta_replay_until(p, s->version, &read, err);
        if (!st && !delta_state_matches(&read, s))
                st = error_set(
                        err, ST_BAD_DATA,
                        "checkpoint %jd of '%s' does not yield the table's current state; commits are kept until a "
                        "newer one is old enough",
                        (intmax_t)version, p->name);
        delta_state_deinit(&read);
        return st;
}

static bool is_needless(const struct log_file *f, int64_t cutoff)
{
        return f->version < cutoff || (f->version == cutoff && ends_with(f->name, ".compacted.json"));
}

static enum status delete_log_files(const struct delta_place *p, const struct log_files *l, int64_t cutoff,
                                    struct delta_log_cleanup *ret, struct error *err)
{
        for (size_t i = 0; i < l->count && l->items[i].version <= cutoff; i++) {
                _cleanup_free_ char *key = delta_make_log_key(p, l->items[i].name);
                enum status st;

                if (!key)
                        return error_no_memory(err);
                if (!is_needless(&l->items[i], cutoff))
                        continue;
                st = storage_remove(p->storage, key, err);
                if (st && st != ST_NOT_FOUND)
                        return st;
                ret->files += !st;
                ret->bytes += st ? 0 : l->items[i].size;
        }
        return ST_OK;
}

enum status delta_log_clean_up(const struct delta_place *p, struct delta_state *s, int64_t before_ms,
                               struct delta_log_cleanup *ret, struct error *err)
{
        _cleanup_(log_files_deinit) struct log_files l = { .newest_checkpoint = -1 };
        enum status st = delta_list_log(p, note_removable_file, &l, err);
        int64_t cutoff;

        if (st)
                return st;
        if (l.count)
                qsort(l.items, l.count, sizeof *l.items, compare_log_files);
        if (l.newest_checkpoint > s->version) /* written by another writer */
                return ST_OK;
        cutoff = l.newest_checkpoint;
        do { /* a damaged checkpoint is skipped */
                cutoff = find_cutoff_checkpoint(&l, before_ms, cutoff);
                assert(cutoff < 0 || l.items);
                if (cutoff < 0 || !is_needless(&l.items[0], cutoff))
                        return st;
                st = verify_checkpoint(p, cutoff, s, err);
        } while (st == ST_BAD_DATA);
        if (!st && (verify_checkpoint(p, l.newest_checkpoint, s, NULL) || delta_checkpoint_read_hint(p) < cutoff)) {
                st = delta_batch_ids_write(p, s, err);
                if (!st)
                        st = delta_checkpoint_write(p, s, err); /* an intact one, which _last_checkpoint then names */
                if (!st) {
                        s->checkpoint_version = s->version;
                        s->recent_actions = 0;
                }
        }
        return st ? st : delete_log_files(p, &l, cutoff, ret, err);
}
