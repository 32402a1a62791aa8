/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_replay.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-store/delta/delta_checkpoint.h"

struct listing {
        int64_t last_commit;
        int64_t checkpoint; /* the newest below bound */
        int64_t bound;
};

static enum status note_log_file(void *context, const char *name, const struct storage_info *info, struct error *err)
{
        struct listing *l = context;
        const char *suffix = "";
        int64_t version = delta_parse_version(name, &suffix);

        (void)info;
        (void)err;
        if (version > l->last_commit && strcmp(suffix, DELTA_COMMIT_SUFFIX) == 0)
                l->last_commit = version;
        if (version > l->checkpoint && version < l->bound && strcmp(suffix, DELTA_CHECKPOINT_SUFFIX) == 0)
                l->checkpoint = version;
        return ST_OK;
}

static enum status list_log_files(const struct delta_place *p, struct listing *l, struct error *err)
{
        l->last_commit = l->checkpoint = -1;
        return delta_list_log(p, note_log_file, l, err);
}

enum status delta_replay_commit(const struct delta_place *p, int64_t version, struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *key = delta_make_version_key(p, version, DELTA_COMMIT_SUFFIX);
        _cleanup_buf_ struct buf text;
        struct storage_question q = { .key = key, .text = &text };

        buf_init(&text, LIMIT_DELTA_COMMIT_BYTES);
        if (!key)
                return error_no_memory(err);
        storage_ask(p->storage, &q, 1);
        if (!q.status)
                return delta_replay_commit_text(p, version, &text, &q.info, s, err);
        if (err)
                *err = q.error;
        return q.status;
}

enum status delta_replay_commit_text(const struct delta_place *p, int64_t version, const struct buf *text,
                                     const struct storage_info *info, struct delta_state *s, struct error *err)
{
        struct delta_actions a;
        enum status st;

        if (text->size) /* every writer has a commitInfo */
                st = delta_actions_parse((const char *)text->data, text->size, &a, err);
        else
                st = error_set(err, ST_BAD_DATA, "the commit is empty");
        if (st)
                return error_prefix(err, st, "cannot read '%s/%0*jd" DELTA_COMMIT_SUFFIX "'", p->name,
                                    DELTA_VERSION_DIGITS, (intmax_t)version);
        st = delta_state_prepare(s, &a, false, err);
        if (st) {
                delta_actions_deinit(&a);
                return st;
        }
        delta_state_apply(s, &a, version);
        s->last_commit = *info;
        return ST_OK;
}

enum status delta_replay_checkpoint(const struct delta_place *p, int64_t version, struct delta_state *s,
                                    struct error *err)
{
        struct delta_actions a;
        enum status st = delta_checkpoint_read(p, version, &a, err);

        if (st)
                return st;
        st = delta_state_prepare(s, &a, false, err);
        if (st) {
                delta_actions_deinit(&a);
                return st;
        }
        delta_state_apply(s, &a, version);
        s->checkpoint_version = version;
        s->recent_actions = 0;
        return ST_OK;
}

enum status delta_replay_until(const struct delta_place *p, int64_t version, struct delta_state *s, struct error *err)
{
        while (s->version < version) {
                int64_t next = s->version + 1;
                enum status st = delta_replay_commit(p, next, s, err);

                if (st == ST_NOT_FOUND)
                        return error_set(err, ST_BAD_DATA, "'%s' lacks commit %jd of %jd", p->name, (intmax_t)next,
                                         (intmax_t)version);
                if (st)
                        return st;
        }
        return ST_OK;
}

enum status delta_replay_log(const struct delta_place *p, struct delta_state *s, struct error *err)
{
        struct listing l = { .bound = INT64_MAX };
        enum status st;

        do {
                st = list_log_files(p, &l, err);
                if (st)
                        return st;
                l.bound = l.checkpoint;
                st = l.checkpoint < 0 ? ST_OK : delta_replay_checkpoint(p, l.checkpoint, s, err);
                if (st == ST_NO_MEMORY)
                        return st;
        } while (st);
        if (l.last_commit < 0 && l.checkpoint < 0)
                return error_set(err, ST_NOT_FOUND, "no table: '%s' has no commit", p->name);
        st = delta_replay_until(p, l.last_commit, s, err);
        if (st)
                return st;
        if (!s->metadata || !s->has_protocol)
                return error_set(err, ST_BAD_DATA, "'%s' has no metaData or no protocol", p->name);
        return ST_OK;
}

enum delta_gap delta_replay_find_gap(const struct delta_place *p, int64_t version, struct error *err)
{
        _cleanup_free_ char *key = delta_make_version_key(p, version, DELTA_COMMIT_SUFFIX);
        struct storage_info unused;
        enum status st = key ? storage_stat(p->storage, key, &unused, err) : error_no_memory(err);

        /* While it exists, nothing after it was deleted: cleaning deletes in the order of versions. */
        if (!st)
                return DELTA_GAP_NONE;
        return st == ST_NOT_FOUND ? delta_replay_find_later(p, version, err) : DELTA_GAP_UNKNOWN;
}

enum delta_gap delta_replay_find_later(const struct delta_place *p, int64_t version, struct error *err)
{
        struct listing l = { .bound = INT64_MAX };

        if (list_log_files(p, &l, err))
                return DELTA_GAP_UNKNOWN;
        return l.last_commit > version ? DELTA_GAP_FOUND : DELTA_GAP_LOST;
}
