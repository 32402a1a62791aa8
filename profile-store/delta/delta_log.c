/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table object: one lock, the state at the last version read (delta_state.h), and the calls of the header that
 * need it. The text of commits is made by delta_encode.h and parsed by delta_actions.h; the log is read by
 * delta_replay.h; checkpoints and the deletion of old log files have files of their own.
 *
 * A commit, commit_under_lock(): encode, parse what was encoded, prepare the state, put the file under its
 * version, apply. Only publishing makes the commit visible; applying cannot fail. Commits of others are read by
 * delta_refresh.h.
 *
 * In the file: open and close; access to the state; creation; checkpoints and commits; properties and cleanup.
 * Locks: t->lock for the whole of each call on a table, file operations included; a writer of another process is
 * excluded only by the name of the commit's file.
 */
#include "profile-store/delta/delta_refresh.h"

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
        if (delta_table_notice_gap(t)) /* versions are never reused */
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
