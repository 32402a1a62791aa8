/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Later commits are asked for by name, one after the other. Two things can make the next one absent although later ones
 * exist: log cleaning has deleted it, or the table was replaced by another copy.
 *
 * Cleaning deletes in the order of versions, so while the commit of the version that was read exists, nothing after it
 * was deleted (delta_replay_find_gap()). What was made since the last such answer is younger than the lifetime of
 * commits, so the question is needed only from time to time. It is asked after the answer that the next commit does not
 * exist, since both may be deleted between two answers in the other order; at the same time only while no commit that
 * was not read can have reached its lifetime.
 *
 * In the file: the question; reading all again; several commits at once; one table of a round: questions, answers;
 * rounds.
 */
#include "profile-store/delta/delta_refresh.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-store/delta/delta_encode.h"
#include "profile-store/delta/delta_replay.h"

#define GAPLESS_MOST_MS 30000 /* limits how long a commit that was deleted before its lifetime can go unnoticed */

/* ---- deleted commits ---- */

/* Whether commits that were not read are too young to have been deleted after their lifetime. */
static bool are_commits_young(const struct delta_table *t)
{
        const int64_t passed_ms = storage_now_ms(t->place.storage) - t->gapless_ms;

        return passed_ms >= 0 && passed_ms < delta_get_commit_lifetime_ms(&t->state) / 2;
}

static bool is_surely_gapless(const struct delta_table *t)
{
        return are_commits_young(t) && storage_now_ms(t->place.storage) - t->gapless_ms < GAPLESS_MOST_MS;
}

/* After a gap the next refresh asks too: another writer may keep commits for less time than the table says. */
bool delta_table_notice_gap(struct delta_table *t)
{
        const bool is_found = delta_replay_find_gap(&t->place, t->state.version, NULL) == DELTA_GAP_FOUND;

        if (is_found)
                t->gapless_ms = 0;
        return is_found;
}

/* ---- reading all again ---- */

/* Of a state that was read from a checkpoint: which file the commit is, if it still exists. */
static enum status find_last_commit(const struct delta_place *p, struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *key = delta_make_version_key(p, s->version, DELTA_COMMIT_SUFFIX);
        enum status st;

        if (*s->last_commit.etag)
                return ST_OK;
        st = key ? storage_stat(p->storage, key, &s->last_commit, err) : error_no_memory(err);
        if (st)
                s->last_commit = (struct storage_info){ 0 };
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status read_whole_log(struct delta_table *t, bool may_go_back, struct error *err)
{
        struct delta_state now;
        enum status st;

        delta_state_init(&now);
        st = delta_replay_log(&t->place, &now, err);
        if (!st)
                st = find_last_commit(&t->place, &now, err);
        if (st || (now.version < t->state.version && !may_go_back)) {
                delta_state_deinit(&now);
                return st;
        }
        delta_state_deinit(&t->state);
        t->state = now;
        t->lacks_batch_ids = true;
        return ST_OK;
}

/* ---- several commits at once ---- */

struct commits_ahead {
        size_t count;
        char *keys[DELTA_AHEAD_MOST];
        struct buf texts[DELTA_AHEAD_MOST];
        struct storage_question questions[DELTA_AHEAD_MOST];
};

static void commits_ahead_deinit(struct commits_ahead *a)
{
        for (size_t i = 0; i < a->count; i++) {
                free(a->keys[i]);
                buf_deinit(&a->texts[i]);
        }
}

/* Of a question that was answered otherwise than by the object, or that it does not exist. */
static enum status report_no_answer(const struct storage_question *q, struct error *err)
{
        if (err)
                *err = q->error;
        return q->status;
}

static enum status read_commits_ahead(struct delta_table *t, size_t count, bool *has_ended_ret, struct error *err)
{
        _cleanup_(commits_ahead_deinit) struct commits_ahead a = { 0 };
        const int64_t first = t->state.version + 1;
        enum status st = ST_OK;

        for (; a.count < count; a.count++) {
                const size_t i = a.count;

                buf_init(&a.texts[i], i ? DELTA_AHEAD_BYTES : LIMIT_DELTA_COMMIT_BYTES);
                a.keys[i] = delta_make_version_key(&t->place, first + (int64_t)i, DELTA_COMMIT_SUFFIX);
                if (!a.keys[i])
                        return error_no_memory(err);
                a.questions[i] = (struct storage_question){ .key = a.keys[i], .text = &a.texts[i] };
        }
        storage_ask(t->place.storage, a.questions, count);
        for (size_t i = 0; !st && !*has_ended_ret && i < count; i++) {
                const struct storage_question *q = &a.questions[i];

                if (i && q->status == ST_TOO_BIG)
                        break;
                *has_ended_ret = q->status == ST_NOT_FOUND;
                if (!q->status)
                        st = delta_replay_commit_text(&t->place, first + (int64_t)i, &a.texts[i], &q->info, &t->state,
                                                      err);
                else if (!*has_ended_ret)
                        st = report_no_answer(q, err);
        }
        return st;
}

static enum status read_commits_until_end(struct delta_table *t, struct error *err)
{
        bool has_ended = false;
        enum status st = ST_OK;

        for (size_t ahead = 1; !st && !has_ended; ahead = ahead < DELTA_AHEAD_MOST ? 2 * ahead : ahead)
                st = read_commits_ahead(t, ahead, &has_ended, err);
        return st;
}

enum status delta_table_catch_up(struct delta_table *t, bool *has_removed_ret, struct error *err)
{
        size_t removed;
        enum status st;

        pthread_mutex_lock(&t->lock);
        removed = t->state.removed.count;
        st = read_commits_until_end(t, err);
        *has_removed_ret = t->state.removed.count != removed;
        pthread_mutex_unlock(&t->lock);
        return st;
}

/* Those that were made since the next one was asked for. */
static enum status read_commits_after_gap(struct delta_table *t, struct error *err)
{
        const int64_t version = t->state.version;
        enum status st = read_commits_until_end(t, err);

        return !st && t->state.version == version ? read_whole_log(t, false, err) : st;
}

/* ---- a table of a round ---- */

struct look {
        struct delta_reading *reading;
        int64_t began_ms;
        int64_t version; /* of the table */
        char *next_key, *last_key;
        struct buf text;
        struct storage_question *next, *last; /* the next commit; the last one read, NULL: not asked */
};

static void look_deinit(struct look *k)
{
        free(k->next_key);
        free(k->last_key);
        buf_deinit(&k->text);
}

static enum status begin_look(struct look *k, struct storage_question *questions, size_t *count, struct error *err)
{
        const struct delta_table *t = k->reading->table;

        k->began_ms = storage_now_ms(t->place.storage);
        k->version = t->state.version;
        buf_init(&k->text, LIMIT_DELTA_COMMIT_BYTES);
        k->next_key = delta_make_version_key(&t->place, k->version + 1, DELTA_COMMIT_SUFFIX);
        k->last_key = delta_make_version_key(&t->place, k->version, DELTA_COMMIT_SUFFIX);
        if (!k->next_key || !k->last_key)
                return error_no_memory(err);
        k->next = &questions[(*count)++];
        *k->next = (struct storage_question){ .key = k->next_key, .text = &k->text };
        if (k->reading->may_be_replaced || (are_commits_young(t) && !is_surely_gapless(t))) {
                k->last = &questions[(*count)++];
                *k->last = (struct storage_question){ .key = k->last_key };
        }
        return ST_OK;
}

static enum status take_replaced_table(struct delta_reading *r, struct error *err)
{
        enum status st = read_whole_log(r->table, true, err);

        r->is_replaced = !st;
        return st;
}

static enum delta_gap find_gap_behind(const struct look *k, struct error *err)
{
        const struct delta_table *t = k->reading->table;

        if (!k->last || (!k->last->status && !are_commits_young(t)))
                return delta_replay_find_gap(&t->place, k->version, err);
        return k->last->status ? delta_replay_find_later(&t->place, k->version, err) : DELTA_GAP_NONE;
}

/* The next commit does not exist. */
static enum status take_end_of_log(struct look *k, struct error *err)
{
        struct delta_table *t = k->reading->table;
        enum status st = ST_OK;

        if (!k->last && is_surely_gapless(t))
                return ST_OK;
        switch (find_gap_behind(k, err)) {
        case DELTA_GAP_NONE:
                t->gapless_ms = k->began_ms;
                break;
        case DELTA_GAP_FOUND:
                t->gapless_ms = 0;
                st = read_commits_after_gap(t, err);
                break;
        case DELTA_GAP_LOST:
                if (k->reading->may_be_replaced && *t->state.last_commit.etag)
                        st = take_replaced_table(k->reading, err);
                break;
        case DELTA_GAP_UNKNOWN:
                if (!are_commits_young(t))
                        st = error_prefix(err, ST_OS, "cannot find out whether later commits were deleted");
                break;
        }
        return st;
}

static enum status take_next_commit(struct look *k, struct error *err)
{
        struct delta_table *t = k->reading->table;

        return delta_replay_commit_text(&t->place, k->version + 1, &k->text, &k->next->info, &t->state, err);
}

static enum status take_answers(struct look *k, struct error *err)
{
        struct delta_reading *r = k->reading;
        struct storage_info *known = &r->table->state.last_commit;

        if (r->may_be_replaced) {
                if (k->last->status && k->last->status != ST_NOT_FOUND)
                        return report_no_answer(k->last, err);
                if (!k->last->status && *known->etag && strcmp(k->last->info.etag, known->etag) != 0)
                        return take_replaced_table(r, err);
                if (!k->last->status)
                        *known = k->last->info;
        }
        if (!k->next->status)
                return take_next_commit(k, err);
        return k->next->status == ST_NOT_FOUND ? take_end_of_log(k, err) : report_no_answer(k->next, err);
}

/* ---- rounds ---- */

static enum status ask_tables(struct look *looks, size_t count, struct error *err)
{
        struct storage_question questions[2 * DELTA_READINGS_MAX];
        size_t question_count = 0;
        enum status first = ST_OK;

        for (size_t i = 0; !first && i < count; i++)
                first = begin_look(&looks[i], questions, &question_count, err);
        if (first)
                return first;
        storage_ask(looks[0].reading->table->place.storage, questions, question_count);
        for (size_t i = 0; i < count; i++) {
                struct delta_reading *r = looks[i].reading;

                r->status = take_answers(&looks[i], first ? NULL : err);
                r->has_changed = r->is_replaced || r->table->state.version != looks[i].version;
                first = first ? first : r->status;
        }
        return first;
}

enum status delta_tables_read_next(struct delta_reading *readings, size_t count, struct error *err)
{
        struct look looks[DELTA_READINGS_MAX] = { 0 };
        enum status st;

        assert(count && count <= DELTA_READINGS_MAX);
        for (size_t i = 0; i < count; i++) {
                looks[i].reading = &readings[i];
                readings[i].has_changed = readings[i].is_replaced = false;
                readings[i].status = ST_NO_MEMORY; /* unless it is asked */
                pthread_mutex_lock(&readings[i].table->lock);
        }
        st = ask_tables(looks, count, err);
        for (size_t i = 0; i < count; i++) {
                pthread_mutex_unlock(&readings[i].table->lock);
                look_deinit(&looks[i]);
        }
        return st;
}

enum status delta_table_refresh(struct delta_table *t, struct error *err)
{
        struct delta_reading r = { .table = t, .has_changed = true };
        bool unused;
        enum status st = ST_OK;

        for (unsigned round = 0; !st && r.has_changed && round < DELTA_ROUNDS_MAX; round++)
                st = delta_tables_read_next(&r, 1, err);
        return !st && r.has_changed ? delta_table_catch_up(t, &unused, err) : st;
}

void delta_table_begin_follow(struct delta_table *t)
{
        pthread_mutex_lock(&t->lock);
        (void)!find_last_commit(&t->place, &t->state, NULL); /* a later look at the log finds it, too */
        pthread_mutex_unlock(&t->lock);
}
