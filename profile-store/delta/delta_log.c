/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table object: one lock, the state at the last version read (delta_state.h), and the calls of the header that
 * need it. The text of commits is made by delta_encode.h and parsed by delta_actions.h; the log is read by
 * delta_replay.h; checkpoints and the deletion of old log files have files of their own.
 *
 * A commit, commit_under_lock(): encode, parse what was encoded, prepare the state, put the file under its
 * version, apply. Only publishing makes the commit visible; applying cannot fail. A refresh reads the commits after
 * the state's version one by one; when log cleaning has deleted the next one, the whole log is read again, from a
 * checkpoint on.
 *
 * In the file: open, close and refresh; replaced tables (delta_table_follow()); access to the state; creation;
 * checkpoints and commits; properties and cleanup.
 * Locks: t->lock for the whole of each call on a table, file operations included; a writer of another process is
 * excluded only by the name of the commit's file.
 */
#include "profile-store/delta/delta_log.h"

#include <json-c/json.h>
#include <pthread.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "profile-store/delta/delta_batch_ids.h"
#include "profile-store/delta/delta_checkpoint.h"
#include "profile-store/delta/delta_encode.h"
#include "profile-store/delta/delta_log_cleanup.h"
#include "profile-store/delta/delta_replay.h"

struct delta_table {
        pthread_mutex_t lock; /* protects state and the members below */
        struct delta_place place;
        struct delta_state state;
        bool lacks_batch_ids;            /* of commits that were not read */
        int64_t next_checkpoint;         /* after a failed checkpoint: no automatic one before this version */
        struct storage_info last_commit; /* for delta_table_follow(): file of the last commit read */
        int64_t lifetime_ms;             /* of commits; 0: not known */
        int64_t gapless_ms;              /* by the storage's clock: commits made before were read */
};

#define GAPLESS_MOST_MS 30000 /* limits how long another writer's shorter lifetime of commits can go unnoticed */

/* last_commit of the current version; "" when the file does not exist. */
static void stat_commit(const struct delta_table *t, struct storage_info *ret)
{
        _cleanup_free_ char *key = delta_make_version_key(&t->place, t->state.version, DELTA_COMMIT_SUFFIX);

        if (!key || storage_stat(t->place.storage, key, ret, NULL))
                *ret = (struct storage_info){ 0 };
}

enum status delta_table_open(struct storage *s, const char *folder, struct delta_table **ret, struct error *err)
{
        struct delta_table *t = calloc(1, sizeof *t);
        enum status st;

        if (!t)
                return error_no_memory(err);
        pthread_mutex_init(&t->lock, NULL);
        t->lacks_batch_ids = true;
        delta_state_init(&t->state);
        st = delta_place_init(&t->place, s, folder, err);
        if (!st)
                st = delta_replay_log(&t->place, &t->state, err);
        if (st)
                delta_table_close(t);
        else
                *ret = t;
        return st;
}

void delta_table_close(struct delta_table *t)
{
        if (!t)
                return;
        delta_state_deinit(&t->state);
        pthread_mutex_destroy(&t->lock);
        delta_place_deinit(&t->place);
        free(t);
}

static enum status read_new_commits(struct delta_table *t, struct error *err)
{
        enum status st;

        do
                st = delta_replay_commit(&t->place, t->state.version + 1, &t->state, err);
        while (!st);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status read_whole_log(struct delta_table *t, bool may_go_back, struct error *err)
{
        struct delta_state now;
        enum status st;

        delta_state_init(&now);
        st = delta_replay_log(&t->place, &now, err);
        if (st || (now.version < t->state.version && !may_go_back)) {
                delta_state_deinit(&now);
                return st;
        }
        delta_state_deinit(&t->state);
        t->state = now;
        t->lacks_batch_ids = true;
        return ST_OK;
}

/* Whether commits that were not read are too young to have been deleted: they were made after gapless_ms. */
static bool is_surely_gapless(const struct delta_table *t)
{
        const int64_t passed_ms = storage_now_ms(t->place.storage) - t->gapless_ms;

        return passed_ms >= 0 && passed_ms < GAPLESS_MOST_MS && passed_ms < t->lifetime_ms / 2;
}

/* After a gap the next refresh asks too: another writer may keep commits for less than lifetime_ms. */
static bool notice_gap(struct delta_table *t)
{
        const bool is_found = delta_replay_find_gap(&t->place, t->state.version) == DELTA_GAP_FOUND;

        if (is_found)
                t->gapless_ms = 0;
        return is_found;
}

static enum status read_commits_after_gap(struct delta_table *t, struct error *err)
{
        const int64_t version = t->state.version;
        enum status st = read_new_commits(t, err); /* commits made while the log was read */

        return !st && t->state.version == version ? read_whole_log(t, false, err) : st;
}

/* Log cleaning may have deleted commits made since the last refresh. */
static enum status refresh_state(struct delta_table *t, struct error *err)
{
        const int64_t began_ms = storage_now_ms(t->place.storage);
        enum status st = read_new_commits(t, err);

        if (st || is_surely_gapless(t))
                return st;
        switch (delta_replay_find_gap(&t->place, t->state.version)) {
        case DELTA_GAP_NONE:
                t->gapless_ms = began_ms;
                return ST_OK;
        case DELTA_GAP_FOUND:
                return read_commits_after_gap(t, err);
        case DELTA_GAP_UNKNOWN:
                break;
        }
        return ST_OK;
}

void delta_table_set_commit_lifetime(struct delta_table *t, int64_t ms)
{
        pthread_mutex_lock(&t->lock);
        t->lifetime_ms = ms;
        pthread_mutex_unlock(&t->lock);
}

enum status delta_table_refresh(struct delta_table *t, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = refresh_state(t, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

/* ---- replaced tables ---- */

/* Cleaning deletes a commit only when later ones exist. */
static bool is_replaced(struct delta_table *t)
{
        struct storage_info now;

        if (!*t->last_commit.etag || notice_gap(t))
                return false;
        stat_commit(t, &now);
        return strcmp(now.etag, t->last_commit.etag) != 0;
}

void delta_table_begin_follow(struct delta_table *t)
{
        pthread_mutex_lock(&t->lock);
        stat_commit(t, &t->last_commit);
        pthread_mutex_unlock(&t->lock);
}

enum status delta_table_follow(struct delta_table *t, bool *replaced_ret, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&t->lock);
        *replaced_ret = is_replaced(t);
        st = *replaced_ret ? read_whole_log(t, true, err) : refresh_state(t, err);
        if (!st)
                stat_commit(t, &t->last_commit);
        pthread_mutex_unlock(&t->lock);
        return st;
}

enum status delta_snapshot_acquire(struct delta_table *t, struct delta_snapshot **ret, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = delta_state_get_snapshot(&t->state, ret, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

enum status delta_removed_acquire(struct delta_table *t, struct delta_snapshot **ret, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = delta_state_get_removed(&t->state, ret, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

void delta_table_forget(struct delta_table *t, const struct delta_file *f)
{
        pthread_mutex_lock(&t->lock);
        delta_state_forget(&t->state, f);
        pthread_mutex_unlock(&t->lock);
}

void delta_table_copy_id(struct delta_table *t, char ret[static DELTA_TABLE_ID_SIZE])
{
        static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
        const char *id;

        ret[0] = 0;
        pthread_mutex_lock(&t->lock);
        id = delta_json_get_string(t->state.metadata, "id");
        if (id && strlen(id) < DELTA_TABLE_ID_SIZE && !id[strspn(id, plain)])
                snprintf(ret, DELTA_TABLE_ID_SIZE, "%s", id);
        pthread_mutex_unlock(&t->lock);
}

int64_t delta_table_get_txn_version(struct delta_table *t, const char *app_id)
{
        int64_t version = -1;

        pthread_mutex_lock(&t->lock);
        for (size_t i = 0; i < t->state.txn_count; i++) {
                if (!strcmp(t->state.txns[i].app_id, app_id))
                        version = t->state.txns[i].version;
        }
        pthread_mutex_unlock(&t->lock);
        return version;
}

/* ---- ids of batches ---- */

static enum status take_batch_ids(struct delta_table *t, struct hash128 **ids, size_t *count, struct error *err)
{
        size_t capacity = 0, taken = t->lacks_batch_ids ? 0 : t->state.taken_batch_ids;
        enum status st = t->lacks_batch_ids ? delta_batch_ids_read(&t->place, ids, count, &capacity, err) : ST_OK;

        if (!st && !array_reserve_many(ids, &capacity, *count, t->state.batch_id_count - taken))
                st = error_no_memory(err);
        if (st)
                return st;
        while (taken < t->state.batch_id_count)
                (*ids)[(*count)++] = t->state.batch_ids[taken++].id;
        t->state.taken_batch_ids = taken;
        t->lacks_batch_ids = false;
        return ST_OK;
}

enum status delta_table_take_batch_ids(struct delta_table *t, struct hash128 **ret, size_t *count_ret,
                                       struct error *err)
{
        _cleanup_free_ struct hash128 *ids = NULL;
        size_t count = 0;
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = take_batch_ids(t, &ids, &count, err);
        pthread_mutex_unlock(&t->lock);
        if (st)
                return st;
        *ret = steal_ptr(ids);
        *count_ret = count;
        return ST_OK;
}

void delta_table_return_batch_ids(struct delta_table *t)
{
        pthread_mutex_lock(&t->lock);
        t->lacks_batch_ids = true;
        pthread_mutex_unlock(&t->lock);
}

enum status delta_table_expire_batch_ids(struct delta_table *t, struct error *err)
{
        return delta_batch_ids_expire(&t->place, err);
}

struct log_size {
        uint64_t files, bytes;
};

static enum status add_log_file_size(void *context, const char *name, const struct storage_info *info,
                                     struct error *err)
{
        struct log_size *s = context;

        (void)name;
        (void)err;
        s->files++;
        s->bytes += info->size;
        return ST_OK;
}

enum status delta_log_measure(struct storage *s, const char *folder, uint64_t *files_ret, uint64_t *bytes_ret,
                              struct error *err)
{
        _cleanup_delta_place_ struct delta_place place;
        struct log_size size = { 0 };
        enum status st = delta_place_init(&place, s, folder, err);

        if (!st)
                st = delta_list_log(&place, add_log_file_size, &size, err);
        *files_ret = size.files;
        *bytes_ret = size.bytes;
        return st;
}

/* Publish a commit; its name must not exist yet. */
static enum status publish_commit(const struct delta_place *p, int64_t version, const struct buf *text,
                                  struct error *err)
{
        _cleanup_free_ char *key = delta_make_version_key(p, version, DELTA_COMMIT_SUFFIX);

        return key ? storage_put(p->storage, key, text->data, text->size, STORAGE_NEW, err) : error_no_memory(err);
}

enum status delta_table_create(struct storage *s, const char *folder, const struct parquet_field *fields,
                               size_t field_count, const char *const *partition_columns, size_t partition_count,
                               const struct delta_retention *retention, struct error *err)
{
        _cleanup_delta_place_ struct delta_place place = { 0 };
        _cleanup_free_ char *first = NULL;
        _cleanup_buf_ struct buf text;
        struct delta_actions check;
        enum status st;

        buf_init(&text, LIMIT_DELTA_COMMIT_BYTES);
        st = delta_encode_create(&text, fields, field_count, partition_columns, partition_count, retention, err);
        if (!st)
                st = delta_actions_parse((const char *)text.data, text.size, &check, err);
        if (st)
                return st;
        delta_actions_deinit(&check);
        st = delta_place_init(&place, s, folder, err);
        first = st ? NULL : delta_make_version_key(&place, 0, DELTA_COMMIT_SUFFIX);
        if (!st)
                st = first ? storage_make_folder(s, first, err) : error_no_memory(err);
        return st ? st : publish_commit(&place, 0, &text, err);
}

/*
 * A checkpoint repeats the whole state. Writing one whenever the commits since the last one amount to a fixed share of
 * the state keeps the cost of all checkpoints proportional to that of all commits, however large the table grows, and
 * the commits to replay after a checkpoint take about that share of its reading time.
 */
static bool is_checkpoint_due(const struct delta_table *t)
{
        const struct delta_state *s = &t->state;

        return s->version >= t->next_checkpoint && s->version - s->checkpoint_version >= DELTA_CHECKPOINT_INTERVAL &&
               s->recent_actions >= (s->live.count + s->removed.count) / DELTA_CHECKPOINT_SHARE;
}

static void note_checkpoint(struct delta_table *t, int64_t version)
{
        t->state.checkpoint_version = version;
        t->state.recent_actions = 0;
        delta_state_forget_batch_ids(&t->state, version);
}

/* After a failure, wait for one interval: on a full disk each attempt costs the size of the checkpoint. */
static enum status write_checkpoint(struct delta_table *t, struct error *err)
{
        enum status st = delta_batch_ids_write(&t->place, &t->state, err);

        if (!st)
                st = delta_checkpoint_write(&t->place, &t->state, err);
        if (st)
                t->next_checkpoint = t->state.version + DELTA_CHECKPOINT_INTERVAL;
        else
                note_checkpoint(t, t->state.version);
        return st;
}

/* Another writer may have written one meanwhile. */
static void write_due_checkpoint(struct delta_table *t)
{
        int64_t other = delta_checkpoint_read_hint(&t->place);

        if (other > t->state.checkpoint_version && other <= t->state.version)
                note_checkpoint(t, other);
        else
                (void)!write_checkpoint(t, NULL); /* optional: the commits hold the same state */
}

/*
 * The commit's text is parsed before it is published: the new state is the one that readers will see, a text that
 * readers would reject is never published, and after publishing nothing can fail.
 */
static enum status commit_under_lock(struct delta_table *t, const struct delta_commit *c, struct error *err)
{
        _cleanup_buf_ struct buf text;
        struct delta_actions a = { 0 };
        enum status st;

        buf_init(&text, LIMIT_DELTA_COMMIT_BYTES);
        if (c->is_exact && c->after_version != t->state.version)
                return error_set(err, ST_BUSY, "the table of '%s' is at version %jd, not %jd", t->place.name,
                                 (intmax_t)t->state.version, (intmax_t)c->after_version);
        if (notice_gap(t)) /* versions are never reused */
                return error_set(err, ST_BUSY, "another writer changed the table of '%s'; refresh it", t->place.name);
        st = delta_encode_commit(&text, &t->state, c, err);
        if (st == ST_TOO_BIG)
                return error_prefix(err, st, "cannot commit to '%s'", t->place.name);
        if (!st)
                st = delta_actions_parse((const char *)text.data, text.size, &a, err);
        if (!st)
                st = delta_state_prepare(&t->state, &a, true, err);
        if (!st)
                st = publish_commit(&t->place, t->state.version + 1, &text, err);
        if (st) {
                delta_actions_deinit(&a);
                return st;
        }
        delta_state_apply(&t->state, &a, t->state.version + 1);
        if (is_checkpoint_due(t))
                write_due_checkpoint(t);
        return ST_OK;
}

static struct delta_commit copy_commit(const struct delta_commit *c)
{
        struct delta_commit full = { 0 };

        memcpy(&full, c, c->size < sizeof full ? c->size : sizeof full);
        return full;
}

enum status delta_commit(struct delta_table *t, const struct delta_commit *c, struct error *err)
{
        struct delta_commit full = copy_commit(c);
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = commit_under_lock(t, &full, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

enum status delta_commit_write(struct delta_table *t, const struct delta_commit *c, struct buf *ret, struct error *err)
{
        struct delta_commit full = copy_commit(c);
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = delta_encode_commit(ret, &t->state, &full, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

/* ---- past commits ---- */

void delta_past_commit_deinit(struct delta_past_commit *c)
{
        if (c->memory)
                delta_actions_deinit(c->memory);
        free(c->memory);
        free(c->parameter);
        *c = (struct delta_past_commit){ 0 };
}

/* An operation parameter of commitInfo, the first line; owned, NULL without one. */
static enum status find_parameter(const struct buf *text, const char *name, char **ret, struct error *err)
{
        const char *data = (const char *)text->data, *end = memchr(data, '\n', text->size), *value;
        struct json_object *line = delta_json_parse(data, end ? (size_t)(end - data) : text->size), *info, *parameters;
        enum status st = ST_OK;

        *ret = NULL;
        if (line && json_object_object_get_ex(line, "commitInfo", &info) &&
            json_object_object_get_ex(info, "operationParameters", &parameters)) {
                value = delta_json_get_string(parameters, name);
                *ret = value ? strdup(value) : NULL;
                if (value && !*ret)
                        st = error_no_memory(err);
        }
        json_object_put(line);
        return st;
}

enum status delta_past_commit_read(struct delta_table *t, uint64_t version, const char *parameter,
                                   struct delta_past_commit *ret, struct error *err)
{
        _cleanup_free_ char *key = delta_make_version_key(&t->place, (int64_t)version, DELTA_COMMIT_SUFFIX);
        _cleanup_delta_past_commit_ struct delta_past_commit c = { .memory = calloc(1, sizeof *c.memory) };
        _cleanup_buf_ struct buf text;
        struct delta_actions a;
        enum status st;

        buf_init(&text, LIMIT_DELTA_COMMIT_BYTES);
        if (!key || !c.memory)
                return error_no_memory(err);
        st = storage_read(t->place.storage, key, &text, err);
        if (!st)
                st = delta_actions_parse((const char *)text.data, text.size, &a, err);
        if (st)
                return st;
        *c.memory = a;
        c.adds = (const struct delta_file *const *)a.adds; /* the file is their first member */
        c.add_count = a.add_count;
        c.remove_count = a.remove_count;
        c.rearranges = a.remove_count && !a.removes[0]->file.removal_changes_data;
        st = find_parameter(&text, parameter, &c.parameter, err);
        if (st)
                return st;
        *ret = c;
        c = (struct delta_past_commit){ 0 };
        return ST_OK;
}

enum status delta_checkpoint(struct delta_table *t, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = write_checkpoint(t, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

enum status delta_table_set_retention(struct delta_table *t, const struct delta_retention *r, struct error *err)
{
        const struct delta_commit c = { .operation = "SET TBLPROPERTIES", .retention = r };
        enum status st = ST_OK;

        pthread_mutex_lock(&t->lock);
        if (!delta_retention_is_set(&t->state, r))
                st = commit_under_lock(t, &c, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

enum status delta_table_clean_up_log(struct delta_table *t, int64_t before_ms, struct delta_log_cleanup *ret,
                                     struct error *err)
{
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = delta_log_clean_up(&t->place, &t->state, before_ms, ret, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}
